"""Predictions from the header alone equal what llama.cpp allocates, or are None."""

from __future__ import annotations

import pytest

from app.models.fit import kv_bytes_per_token, weights_bytes
from app.models.gguf_header import GgufHeader, read_header

LLAMA_8B = {
    "general.architecture": "llama",
    "llama.block_count": 32,
    "llama.embedding_length": 4096,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
}


def header(metadata: dict[str, object]) -> GgufHeader:
    return GgufHeader(version=3, alignment=32, metadata=metadata, tensors=(), data_offset=0, file_bytes=0)


def test_the_starter_s_cache_is_predicted_to_the_byte(starter_model) -> None:
    # 30 layers x 3 KV heads x (64 + 64) x 2 bytes
    assert kv_bytes_per_token(read_header(starter_model), "f16") == 23_040
    assert weights_bytes(read_header(starter_model)) == 96_576_768


@pytest.mark.parametrize(
    ("kv_type", "per_token"), [("f16", 131_072), ("q8_0", 69_632), ("q4_0", 36_864), ("f32", 262_144)]
)
def test_grouped_queries_share_their_kv_heads(kv_type, per_token) -> None:
    assert kv_bytes_per_token(header(LLAMA_8B), kv_type) == per_token


def test_a_70b_llama_takes_1_34_gb_for_4096_tokens() -> None:
    shape = LLAMA_8B | {"llama.block_count": 80, "llama.embedding_length": 8192, "llama.attention.head_count": 64}
    assert 4096 * kv_bytes_per_token(header(shape), "f16") == pytest.approx(1.34e9, rel=0.005)


def test_without_kv_heads_every_head_has_its_own() -> None:
    shape = {key: value for key, value in LLAMA_8B.items() if "head_count_kv" not in key}
    assert kv_bytes_per_token(header(shape), "f16") == 4 * 131_072


def test_heads_that_differ_by_layer_are_summed() -> None:
    shape = LLAMA_8B | {"llama.block_count": 4, "llama.attention.head_count_kv": (8, 0, 0, 4)}
    assert kv_bytes_per_token(header(shape), "f16") == 12 * 256 * 2


def test_own_key_and_value_lengths_count() -> None:
    shape = LLAMA_8B | {"llama.attention.key_length": 192, "llama.attention.value_length": 128}
    assert kv_bytes_per_token(header(shape), "f16") == 32 * 8 * (192 + 128) * 2


@pytest.mark.parametrize("key", ["attention.sliding_window", "attention.kv_lora_rank", "ssm.state_size"])
def test_other_kinds_of_cache_are_unknown_and_not_guessed(key) -> None:
    assert kv_bytes_per_token(header(LLAMA_8B | {f"llama.{key}": 512}), "f16") is None


def test_an_unknown_type_or_shape_is_unknown() -> None:
    assert kv_bytes_per_token(header(LLAMA_8B), "f4") is None
    assert kv_bytes_per_token(header({"general.architecture": "llama"}), "f16") is None
    assert kv_bytes_per_token(header(LLAMA_8B | {"llama.attention.head_count_kv": "eight"}), "f16") is None
