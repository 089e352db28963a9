"""Dequantized weights under transformers' names equal what the model was written from, and what transformers reads."""

from __future__ import annotations

import gguf
import pytest
import torch
from safetensors import safe_open

from backends.errors import EngineError, ErrorCode
from backends.torch_engine import gguf_weights
from backends.torch_engine.gguf_config import transformers_config
from backends.torch_engine.gguf_reader import read_gguf
from backends.torch_engine.model_weights import LoadProgress
from tests.helpers.hf_folders import gemma_folder, smol_folder
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import tiny_gguf

_KINDS = ("llama", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3")


def silent() -> LoadProgress:
    return LoadProgress(1, lambda _event: None)


def read_all(path, dtype=torch.float32):
    file = read_gguf(path)
    weights = gguf_weights.gguf_weights(file, transformers_config(file, []), silent(), dtype)
    return {name: weight[...] for name, weight in weights.items()}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back_weight_by_weight(tmp_path, kind, tied) -> None:
    model = tiny_model(kind, tie_word_embeddings=tied)
    weights = read_all(tiny_gguf(tmp_path / "x.gguf", model))
    expected = dict(model.state_dict())
    if tied:
        expected.pop("lm_head.weight")
    assert set(weights) == set(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(weights[name], tensor, rtol=0, atol=3e-7, msg=name)


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_1])
def test_pieces_of_a_large_tensor_are_the_whole(tmp_path, monkeypatch, kind) -> None:
    path = tiny_gguf(tmp_path / "x.gguf", tiny_model("qwen2", hidden_size=64, num_attention_heads=8), kind)
    file = read_gguf(path)
    tensor = file.tensors["token_embd.weight"]
    whole = gguf_weights.read_gguf_tensor(file, tensor)
    monkeypatch.setattr(gguf_weights, "_CHUNK_ELEMENTS", 96)
    assert torch.equal(gguf_weights.read_gguf_tensor(file, tensor), whole)
    assert torch.equal(gguf_weights.read_gguf_tensor(file, tensor, torch.bfloat16), whole.bfloat16())
    judge = next(one for one in gguf.GGUFReader(path).tensors if one.name == tensor.name)
    assert torch.equal(whole, torch.from_numpy(gguf.dequantize(judge.data, judge.tensor_type)))


def test_matrices_come_in_the_model_s_dtype_and_vectors_exact(tmp_path) -> None:
    weights = read_all(tiny_gguf(tmp_path / "x.gguf", tiny_model("gemma2")), torch.bfloat16)
    assert {tensor.dtype for tensor in weights.values() if tensor.ndim == 2} == {torch.bfloat16}
    assert {tensor.dtype for tensor in weights.values() if tensor.ndim == 1} == {torch.float32}


def test_a_tensor_that_no_such_model_has_is_refused(tmp_path) -> None:
    file = read_gguf(tiny_gguf(tmp_path / "x.gguf", tiny_model("qwen3")))
    for name in ("blk.0.ssm_a", "blk.0.attn_q.scale", "v.patch_embd.weight"):
        with pytest.raises(EngineError) as caught:
            gguf_weights.transformers_name(file, name)
        assert caught.value.code is ErrorCode.LOAD_FAILED


def test_the_name_of_the_quantization_is_the_file_s_or_that_of_most(tmp_path, starter_model) -> None:
    assert gguf_weights.quantization_name(read_gguf(starter_model)) == "Q4_1"
    kind = gguf.GGMLQuantizationType.Q8_0
    assert (
        gguf_weights.quantization_name(read_gguf(tiny_gguf(tmp_path / "x.gguf", tiny_model("llama"), kind))) == "Q8_0"
    )


def some_are_transformers_own(path, folder, names) -> None:
    """The folders of the tests hold what transformers itself reads from these files, rounded to bfloat16."""
    file = read_gguf(path)
    weights = gguf_weights.gguf_weights(file, transformers_config(file, []), silent(), torch.bfloat16)
    with safe_open(folder / "model.safetensors", "pt") as judge:
        assert set(judge.keys()) == set(weights)
        for name in names or judge.keys():
            assert torch.equal(weights[name][...].bfloat16(), judge.get_tensor(name)), name


_SOME = [
    "model.norm.weight",
    *(f"model.layers.{layer}.self_attn.{part}_proj.weight" for layer in (0, 17) for part in "qkvo"),
    *(f"model.layers.3.mlp.{part}_proj.weight" for part in ("gate", "up", "down")),
    "model.layers.5.post_attention_layernorm.weight",
]


def test_the_starter_s_weights_are_those_that_transformers_reads(starter_model) -> None:
    some_are_transformers_own(starter_model, smol_folder(), _SOME)


def test_gemma_s_weights_are_those_that_transformers_reads(gemma_model) -> None:
    some_are_transformers_own(gemma_model, gemma_folder(), [*_SOME, "model.layers.2.self_attn.q_norm.weight"])


@pytest.mark.full
def test_all_weights_of_both_are_those_that_transformers_reads(starter_model, gemma_model) -> None:
    some_are_transformers_own(starter_model, smol_folder(), None)
    some_are_transformers_own(gemma_model, gemma_folder(), None)
