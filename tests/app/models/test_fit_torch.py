"""The torch backend: KV in blocks, activations of one step."""

from __future__ import annotations

import pytest

from app.models.fit_torch import torch_memory
from backends.protocol import LoadParams
from tests.helpers.fit_models import llama_8b


@pytest.mark.parametrize(
    ("kv_type", "per_token"),
    [("bf16", 131_072), ("f32", 262_144), ("int8", 73_728), ("q4_0", 40_960), ("int2", 24_576)],
)
def test_kv_takes_its_bits_with_scale_and_zero(kv_type, per_token):
    assert torch_memory(llama_8b(), LoadParams(), kv_type, 1600).kv_bytes == 1600 * per_token


def test_blocks_are_whole():
    assert torch_memory(llama_8b(), LoadParams(), "f16", 17).kv_bytes == 32 * 131_072


def test_a_step_keeps_gate_and_up_and_four_of_the_model_s_width():
    found = torch_memory(llama_8b(), LoadParams(max_sequences=2), "f16", 8192)
    assert found.compute_bytes == 512 * (2 * 14_336 + 4 * 4096) * 2
    assert found.output_bytes == 2 * 128_256 * 4


def test_absurd_params_are_no_reason_to_fail():
    found = torch_memory(llama_8b(vocabulary_tokens=-1), LoadParams(micro_batch_tokens=-1, max_sequences=-1), "?", -5)
    assert (found.kv_bytes, found.output_bytes) == (16 * 131_072, 0)
