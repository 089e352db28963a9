"""The torch backend: KV in blocks, activations of one step."""

from __future__ import annotations

import pytest

from app.models.fit_torch import as_loaded, torch_memory
from app.models.fit_types import FitQuestion
from app.models.shape import LayerShape, ModelShape
from backends.protocol import LoadParams
from tests.helpers.fit_models import llama_8b


@pytest.mark.parametrize(
    ("kv_type", "per_token"),
    [("bf16", 131_072), ("f32", 262_144), ("int8", 73_728), ("q4_0", 40_960), ("int2", 24_576)],
)
def test_kv_takes_its_bits_with_scale_and_zero(kv_type, per_token):
    assert torch_memory(llama_8b(), LoadParams(), kv_type, 1600).kv_bytes == (1600 + 16) * per_token


def test_blocks_are_whole_and_one_is_spare():
    assert torch_memory(llama_8b(), LoadParams(), "f16", 17).kv_bytes == (32 + 16) * 131_072


QUANTIZED = ModelShape(
    architecture="llama",
    parameters_count=1000,
    weights_bytes=500,
    input_bytes=100,
    other_bytes=50,
    copied_bytes=300,
    read_bytes=400,
    layers=(LayerShape(kv_heads=1, weights_bytes=350, read_bytes=300),),
)


@pytest.mark.parametrize(("dtype", "size_bytes"), [("", 2000), ("bfloat16", 2000), ("float32", 4000)])
def test_a_quantized_model_is_written_out_and_nothing_is_kept_twice(dtype, size_bytes):
    found = as_loaded(QUANTIZED, FitQuestion("torch", LoadParams(dtype=dtype)))
    factor = size_bytes // 500
    assert (found.weights_bytes, found.copied_bytes) == (size_bytes, 0)
    assert (found.input_bytes, found.other_bytes, found.read_bytes) == (100 * factor, 50 * factor, 400 * factor)
    assert (found.layers[0].weights_bytes, found.layers[0].read_bytes) == (350 * factor, 300 * factor)


def test_wider_weights_stay_and_other_backends_take_the_file_as_it_is():
    wide = ModelShape(architecture="llama", parameters_count=1000, weights_bytes=4000)
    assert as_loaded(wide, FitQuestion("torch")) is wide
    assert as_loaded(wide, FitQuestion("torch", LoadParams(dtype="float16"))).weights_bytes == 2000
    assert as_loaded(QUANTIZED, FitQuestion("llama_cpp")) is QUANTIZED


def test_a_step_keeps_gate_and_up_and_four_of_the_model_s_width():
    found = torch_memory(llama_8b(), LoadParams(max_sequences=2), "f16", 8192)
    assert found.compute_bytes == 512 * (2 * 14_336 + 4 * 4096) * 2
    assert found.output_bytes == 2 * 128_256 * 4


def test_absurd_params_are_no_reason_to_fail():
    found = torch_memory(llama_8b(vocabulary_tokens=-1), LoadParams(micro_batch_tokens=-1, max_sequences=-1), "?", -5)
    assert (found.kv_bytes, found.output_bytes) == (32 * 131_072, 0)


def test_code_and_tokenizer_take_as_much_as_was_measured_of_two_models():
    for vocabulary, least, most in ((49_152, 99, 117), (262_144, 209, 241)):
        found = torch_memory(llama_8b(vocabulary_tokens=vocabulary), LoadParams(), "f16", 8192)
        assert least <= found.tables_bytes / 2**20 <= most
