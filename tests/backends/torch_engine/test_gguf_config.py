"""A GGUF's metadata as a config: the six kinds, and what is refused rather than left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_config import BUILDERS, transformers_config
from backends.torch_engine.gguf_reader import GgufFile, GgufTensor, read_gguf
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import GGUF_NAMES, tiny_gguf

_KINDS = ("llama", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3")
_SAME = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "max_position_embeddings", "tie_word_embeddings",
)  # fmt: skip


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> GgufFile:
    return read_gguf(tiny_gguf(tmp_path_factory.mktemp("gguf") / "llama.gguf", tiny_model("llama")))


def with_metadata(file: GgufFile, **changes: object) -> GgufFile:
    return replace(
        file, metadata={**file.metadata, **{key.replace("__", "."): value for key, value in changes.items()}}
    )


def test_every_kind_that_is_built_is_tested() -> None:
    assert {GGUF_NAMES.get(kind, kind) for kind in _KINDS} == set(BUILDERS)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_config_comes_back(tmp_path, kind) -> None:
    model = tiny_model(kind)
    made = transformers_config(read_gguf(tiny_gguf(tmp_path / "x.gguf", model)), [])
    assert made["model_type"] == kind
    for key in _SAME:
        assert made[key] == getattr(model.config, key), key
    assert made["rms_norm_eps"] == pytest.approx(model.config.rms_norm_eps)


def test_gemma_3_has_a_base_of_its_own_for_windows(tmp_path) -> None:
    types = ["full_attention" if layer == 5 else "sliding_attention" for layer in range(6)]
    model = tiny_model("gemma3_text", num_hidden_layers=6, layer_types=types)
    made = transformers_config(read_gguf(tiny_gguf(tmp_path / "x.gguf", model)), [])
    assert made["layer_types"] == types
    ropes = made["rope_parameters"]
    assert (ropes["full_attention"]["rope_theta"], ropes["sliding_attention"]["rope_theta"]) == (1_000_000, 10_000)


def test_llama_3_s_stretching_is_known_by_its_frequencies(llama) -> None:
    # Llama 3.1's: 64 frequencies from a base of 500,000, of which the highest 29 stay and the lowest 26 are 8 x slower.
    file = with_metadata(llama, llama__rope__freq_base=500_000.0)
    factors = [1.0] * 64
    wavelengths = [2 * 3.141592653589793 * 500_000 ** (index / 64) for index in range(64)]
    for index, wavelength in enumerate(wavelengths):
        if wavelength > 8192:
            factors[index] = 8.0
        elif wavelength >= 2048:
            smooth = (8192 / wavelength - 1) / 3
            factors[index] = 1 / ((1 - smooth) / 8 + smooth)
    made = transformers_config(file, factors)["rope_parameters"]
    assert (made["rope_type"], made["factor"], made["original_max_position_embeddings"]) == ("llama3", 8.0, 8192)
    with pytest.raises(EngineError):
        transformers_config(file, [1.0, 3.0, *factors[2:]])


def test_stretched_positions_are_told_or_refused(llama) -> None:
    linear = with_metadata(llama, llama__rope__scaling__type="linear", llama__rope__scaling__factor=4.0)
    assert transformers_config(linear, [])["rope_parameters"] == {
        "rope_type": "linear",
        "rope_theta": 10_000,
        "factor": 4,
    }
    with pytest.raises(EngineError) as caught:
        transformers_config(with_metadata(llama, llama__rope__scaling__type="new"), [])
    assert caught.value.code is ErrorCode.LOAD_FAILED


def test_what_this_engine_does_not_build_is_unknown(llama) -> None:
    for changes in ({"general__architecture": "mamba9"}, {"general__architecture": ""}, {"llama__expert_count": 8}):
        with pytest.raises(EngineError) as caught:
            transformers_config(with_metadata(llama, **changes), [])
        assert caught.value.code is ErrorCode.UNKNOWN_ARCHITECTURE


def test_numbers_that_cannot_be_are_refused(llama) -> None:
    for key in ("llama__block_count", "llama__embedding_length", "llama__context_length"):
        for value in (0, -1, 2**40):
            with pytest.raises(EngineError):
                transformers_config(with_metadata(llama, **{key: value}), [])
    with pytest.raises(EngineError):
        transformers_config(replace(llama, tensors={}), [])


def test_phi_3_with_long_factors_is_refused() -> None:
    tensor = GgufTensor("rope_factors_long.weight", (4,), GGMLQuantizationType.F32, 0, 16)
    embedding = GgufTensor("token_embd.weight", (8, 8), GGMLQuantizationType.F32, 0, 256)
    metadata = {"general.architecture": "phi3"} | {
        f"phi3.{key}": 8
        for key in ("context_length", "embedding_length", "feed_forward_length", "block_count", "attention.head_count")
    }
    metadata["phi3.attention.layer_norm_rms_epsilon"] = 1e-5
    file = GgufFile(Path("x.gguf"), metadata, {tensor.name: tensor, embedding.name: embedding})
    with pytest.raises(EngineError):
        transformers_config(file, [])
