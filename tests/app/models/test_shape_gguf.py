"""Shapes from headers: what each kind of layer keeps, to the element, and no header that fails."""

from __future__ import annotations

import random

import msgspec
import pytest

from app.models.architectures import FULL_ATTENTION_EVERY, INDEXED, RECURRENT, UNKNOWN_CACHES, WINDOWS, WITHOUT_CACHE
from app.models.fit import fit
from app.models.fit_cache import KV_TYPES, cache_of
from app.models.fit_context import plan_context
from app.models.fit_words import confirmation_words, fit_sentence, fit_short, owner_rows
from app.models.gguf_header import ArrayNote, read_header
from app.models.shape import LayerShape
from app.models.shape_gguf import shape_of_gguf
from backends.protocol import LoadParams
from tests.helpers.fit_models import (
    DEEPSEEK_V2_LITE,
    GEMMA3_270M,
    LLAMA_8B,
    MIB,
    computer,
    gguf_header,
    question,
    tensor,
)


def shape(architecture, values):
    return shape_of_gguf(gguf_header(architecture, values))


def kv_bytes(architecture, values, kv_type="f16", context_tokens=1024):
    found = shape(architecture, values)
    assert found.unknown == ""
    plan = plan_context(LoadParams(), context_tokens)
    return cache_of(found.layers).kv_bytes(KV_TYPES[kv_type], plan)


# ------------------------------------------------------------------------------------------- exact K and V


def test_the_starter_keeps_22_5_kib_a_token(starter_model):
    found = shape_of_gguf(read_header(starter_model))
    assert found.layers[0] == LayerShape(3, 64, 64, 0, 0, found.layers[0].weights_bytes, found.layers[0].read_bytes)
    assert (len(found.layers), found.context_tokens, found.vocabulary_tokens) == (30, 8192, 49_152)
    assert cache_of(found.layers).kv_bytes(KV_TYPES["f16"], plan_context(LoadParams(), 8192)) == 8192 * 23_040


@pytest.mark.parametrize(("kv_type", "kib"), [("f32", 256), ("f16", 128), ("bf16", 128), ("q8_0", 68), ("q4_0", 36)])
def test_grouped_queries_share_their_kv_heads(kv_type, kib):
    assert kv_bytes("llama", LLAMA_8B, kv_type) == 1024 * kib * 1024


def test_a_70b_llama_takes_1_34_gb_for_4096_tokens():
    values = LLAMA_8B | {"block_count": 80, "embedding_length": 8192, "attention.head_count": 64}
    assert kv_bytes("llama", values, "f16", 4096) == 1_342_177_280


def test_without_kv_heads_every_head_has_its_own():
    values = {key: value for key, value in LLAMA_8B.items() if "head_count_kv" not in key}
    assert kv_bytes("llama", values) == 4 * kv_bytes("llama", LLAMA_8B)


def test_one_kv_head_serves_all_queries():
    assert kv_bytes("falcon", LLAMA_8B | {"attention.head_count_kv": 1}) == kv_bytes("llama", LLAMA_8B) // 8


def test_heads_that_differ_by_layer_are_summed_and_none_is_none():
    values = LLAMA_8B | {"block_count": 4, "attention.head_count_kv": (8, 0, 0, 4)}
    assert kv_bytes("deci", values) == 1024 * 12 * 256 * 2


def test_own_key_and_value_lengths_count():
    values = LLAMA_8B | {"attention.key_length": 192, "attention.value_length": 128}
    assert kv_bytes("llama", values) == 1024 * 32 * 8 * (192 + 128) * 2


def test_a_latent_cache_holds_576_elements_a_layer_and_no_v():
    found = shape("deepseek2", DEEPSEEK_V2_LITE)
    assert found.is_mla
    assert {(layer.kv_heads, layer.key_length, layer.value_length) for layer in found.layers} == {(1, 576, 0)}
    assert kv_bytes("deepseek2", DEEPSEEK_V2_LITE) == 1024 * 27 * 576 * 2


def test_an_old_file_of_a_latent_model_keeps_whole_heads():
    """Without the lengths of MLA llama.cpp runs the decompressed model."""
    values = {key: value for key, value in DEEPSEEK_V2_LITE.items() if "_mla" not in key}
    values |= {"attention.head_count_kv": 16, "attention.key_length": 192, "attention.value_length": 128}
    found = shape("deepseek2", values)
    assert not found.is_mla
    assert kv_bytes("deepseek2", values) == 1024 * 27 * 16 * 320 * 2


def test_windows_bound_gemma_s_cache():
    """Field report 14 and quant.md 3.2: 39 MiB at 8,192 tokens, where a full cache would take 144 MiB."""
    assert kv_bytes("gemma3", GEMMA3_270M, "f16", 8192) == 39 * MIB
    assert kv_bytes("llama", GEMMA3_270M, "f16", 8192) == 144 * MIB


def test_windowed_layers_may_have_heads_of_another_length():
    values = GEMMA3_270M | {"attention.key_length_swa": 128, "attention.value_length_swa": 64}
    lengths = [(layer.window_tokens, layer.key_length, layer.value_length) for layer in shape("gemma3", values).layers]
    assert lengths[4:6] == [(512, 128, 64), (0, 256, 256)]


def test_layers_that_share_k_and_v_keep_none():
    values = GEMMA3_270M | {"block_count": 30}
    assert [bool(layer.kv_heads) for layer in shape("gemma3n", values).layers] == [True] * 20 + [False] * 10
    shared = values | {
        "attention.shared_kv_layers": 12,
        "attention.sliding_window_pattern": (True,) * 30,
        "block_count": 30,
    }
    assert [bool(layer.kv_heads) for layer in shape("gemma4", shared).layers] == [True] * 18 + [False] * 12


def test_layers_that_draft_ahead_are_not_run():
    found = shape("glm4moe", LLAMA_8B | {"nextn_predict_layers": 1})
    assert len(found.layers) == 31


def test_encoders_keep_nothing():
    found = shape("bert", LLAMA_8B)
    assert (found.unknown, {layer.kv_heads for layer in found.layers}) == ("", {0})


def test_a_model_that_runs_its_layers_in_loops_keeps_k_and_v_of_every_loop():
    assert len(shape("nanbeige", LLAMA_8B | {"num_loops": 3}).layers) == 96
    assert shape("nanbeige", LLAMA_8B | {"num_loops": 300}).unknown
    assert shape("graniteswitch", LLAMA_8B).layers[-1] == LayerShape(1, 128, 128)


# -------------------------------------------------------------------------------------------- recurrent state


MAMBA = {
    "block_count": 4,
    "embedding_length": 2560,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 5120,
    "ssm.state_size": 128,
    "ssm.group_count": 1,
}


def test_mamba_keeps_its_convolution_and_its_state():
    found = shape("mamba2", MAMBA)
    assert {layer.state_elements for layer in found.layers} == {3 * (5120 + 2 * 128) + 128 * 5120}
    assert {layer.kv_heads for layer in found.layers} == {0}


def test_of_a_hybrid_only_the_attention_layers_keep_k_and_v():
    """Field report 14: the largest number of heads times all layers was 40 to 67 % too much."""
    values = MAMBA | {"attention.head_count": 32, "attention.head_count_kv": (0, 8, 0, 0)}
    for architecture in ("jamba", "granitehybrid"):
        layers = shape(architecture, values).layers
        assert [layer.kv_heads for layer in layers] == [0, 8, 0, 0]
        assert [bool(layer.state_elements) for layer in layers] == [True, False, True, True]


def test_a_layer_that_is_feed_forward_only_keeps_neither():
    values = MAMBA | {"attention.head_count": 32, "attention.head_count_kv": (0, 8, 0, 0)}
    layers = shape("nemotron_h", values | {"feed_forward_length": (0, 0, 64, 0)}).layers
    assert [(layer.kv_heads, bool(layer.state_elements)) for layer in layers] == [
        (0, True),
        (8, False),
        (0, False),
        (0, True),
    ]


def test_falcon_h1_keeps_both_in_every_layer():
    layers = shape("falcon-h1", MAMBA | {"attention.head_count": 8, "attention.head_count_kv": 2}).layers
    assert all(layer.kv_heads == 2 and layer.state_elements for layer in layers)


def test_one_layer_in_four_attends_unless_the_file_says_otherwise():
    values = MAMBA | {"attention.head_count": 8, "attention.head_count_kv": 2}
    assert [layer.kv_heads for layer in shape("qwen3next", values).layers] == [0, 0, 0, 2]
    assert [layer.kv_heads for layer in shape("qwen3next", values | {"full_attention_interval": 2}).layers] == [
        0,
        2,
        0,
        2,
    ]
    listed = values | {"attention.recurrent_layers": (False, True, True, True)}
    assert [layer.kv_heads for layer in shape("qwen35", listed).layers] == [2, 0, 0, 0]


@pytest.mark.parametrize(
    ("architecture", "values", "elements"),
    [
        ("rwkv6", {"wkv.head_size": 64}, 2048 * (2 + 64)),
        ("arwkv7", {"wkv.head_size": 64, "token_shift_count": 1}, 2048 * (1 + 64)),
        ("lfm2", {"shortconv.l_cache": 3, "attention.head_count_kv": 0}, 2048 * 2),
        (
            "kimi-linear",
            {"kda.head_dim": 128, "ssm.conv_kernel": 4, "attention.head_count_kv": 0},
            3 * 3 * 16 * 128 + 128 * 128 * 16,
        ),
        ("minimax-01", {"full_attention_interval": 2}, 128 * 128 * 16),
    ],
)
def test_each_kind_of_state_has_its_size(architecture, values, elements):
    base = {"block_count": 2, "embedding_length": 2048, "attention.head_count": 16}
    assert shape(architecture, base | values).layers[0].state_elements == elements


def test_an_indexer_caches_its_key_beside_the_rest():
    indexer = {"attention.indexer.top_k": 2048, "attention.indexer.key_length": 128}
    assert shape("deepseek32", DEEPSEEK_V2_LITE | indexer).layers[0].key_length == 576 + 128
    listed = indexer | {"attention.indexer.types": (1,) + (0,) * 26}
    assert [layer.key_length for layer in shape("glm-dsa", DEEPSEEK_V2_LITE | listed).layers[:2]] == [704, 576]
    long = DEEPSEEK_V2_LITE | indexer | {"context_length": 1_048_576}
    lengths = [layer.key_length for layer in shape("glm-dsa", long).layers[:8]]
    assert lengths == [704, 704, 704, 576, 576, 576, 704, 576]
    sparse = LLAMA_8B | indexer | {"leading_dense_block_count": 1}
    first, second = shape("minimax-m3", sparse).layers[:2]
    assert (first.kv_heads * first.key_length, second.kv_heads * second.key_length) == (1024, 1024 + 128)
    assert second.kv_heads * second.value_length == 1024 + 128


# --------------------------------------------------------------------------------------- what nobody can tell


@pytest.mark.parametrize("architecture", sorted(UNKNOWN_CACHES))
def test_caches_that_only_the_engine_can_size_are_unknown_and_not_guessed(architecture):
    found = shape(architecture, LLAMA_8B)
    assert found.unknown == UNKNOWN_CACHES[architecture]
    assert found.layers == ()


@pytest.mark.parametrize(
    "change",
    [
        {"block_count": 0},
        {"block_count": 513},
        {"block_count": 10**9},
        {"block_count": "32"},
        {"embedding_length": 0},
        {"attention.head_count_kv": "eight"},
        {"attention.head_count_kv": (8, 8)},
        {"attention.head_count": -1},
        {"attention.key_length": 2**40},
        {"nextn_predict_layers": 32},
    ],
)
def test_a_header_that_makes_no_sense_says_so(change):
    found = shape("llama", LLAMA_8B | change)
    assert found.unknown.endswith(".")
    assert found.layers == ()


def test_an_architecture_nobody_knows_follows_the_common_keys():
    found = shape("brand-new", LLAMA_8B)
    assert (found.unknown, found.layers) == ("", shape("llama", LLAMA_8B).layers)
    assert shape("brand-new", {}).unknown


def test_the_weights_count_though_the_layers_are_unknown():
    tensors = [tensor("blk.0.attn_q.weight", [8, 8], size_bytes=10), tensor("output.weight", [8, 8], size_bytes=5)]
    found = shape_of_gguf(gguf_header("deepseek4", LLAMA_8B, tensors))
    assert (found.weights_bytes, found.output_bytes, found.other_bytes, found.read_bytes) == (15, 5, 10, 15)


# ------------------------------------------------------------------------------------------------ hostile ones


NUMBERS = (0, 1, 2, 3, 7, 32, 64, 4096, 2**31 - 1, 2**32 - 1, 2**32, 2**63, 2**64, 10**40, -1, -(2**31))
NAMES = sorted(
    {"llama", "falcon-h1", "nemotron_h", "lfm2", "nanbeige", "graniteswitch", "gemma4", "", "no such", "plamo2"}
    | set(WINDOWS)
    | set(FULL_ATTENTION_EVERY)
    | INDEXED
    | RECURRENT
    | WITHOUT_CACHE
)
KEYS = (
    *LLAMA_8B,
    *DEEPSEEK_V2_LITE,
    *MAMBA,
    "vocab_size",
    "nextn_predict_layers",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "attention.recurrent_layers",
    "attention.key_length_swa",
    "attention.indexer.top_k",
    "attention.indexer.key_length",
    "attention.indexer.types",
    "full_attention_interval",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "kda.head_dim",
    "wkv.head_size",
    "shortconv.l_cache",
    "num_loops",
    "token_shift_count",
)


def _value(draw):
    kind = draw.randrange(10)
    if kind < 6:
        return draw.choice(NUMBERS)
    if kind == 6:
        return draw.choice((1.5, float("nan"), float("inf"), "text", "", True, ArrayNote("int32", 10**9)))
    return tuple(draw.choice((*NUMBERS, 1.5, True, "x")) for _ in range(draw.choice((0, 1, 2, 4, 32))))


def _hostile(seed):
    """Return a header with some keys that make sense and some that do not."""
    draw = random.Random(seed)
    values = dict(draw.choice((LLAMA_8B, DEEPSEEK_V2_LITE, GEMMA3_270M, MAMBA)))
    values |= {key: _value(draw) for key in draw.sample(KEYS, draw.randint(0, 6))}
    tensors = [
        tensor(
            draw.choice(
                ("blk.0.ffn_up_exps.weight", "blk.511.x", "blk.9999.y", "output.weight", "token_embd.weight", "z")
            ),
            [draw.choice((1, 8, 256, 2**40)) for _ in range(draw.randint(1, 4))],
            draw.choice(("Q4_K", "F16", "MXFP4")),
            draw.choice((0, 1, 2**40, 2**62)),
        )
        for _ in range(draw.randint(0, 4))
    ]
    return gguf_header(draw.choice(NAMES), values, tensors), draw


def _ask(seed):
    header, draw = _hostile(seed)
    found = shape_of_gguf(header)
    assert len(found.layers) <= 512 + 1
    assert bool(found.unknown) == (not found.layers)
    if found.weights_bytes < 2**63 and found.parameters_count < 2**63:  # what the library keeps
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=type(found)) == found
    params = {
        "context_tokens": draw.choice((0, -5, 1, 512, 2**31 - 1, 2**62)),
        "kv_type": draw.choice((*KV_TYPES, "f4", "")),
        "micro_batch_tokens": draw.choice((0, -1, 512, 2**31)),
        "max_sequences": draw.choice((1, 0, -3, 4, 10**9)),
        "kv_mode": draw.choice(("chat", "streams", "x")),
    }
    answer = fit(found, question(**params), computer(draw.choice((-3, 0, 4, 10**9)), bandwidth=draw.choice((0, 1e9))))
    words = f"{fit_sentence(answer)} {fit_short(answer)} {confirmation_words(answer)} {owner_rows(answer, None)}"
    assert "nan" not in words.lower()


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_header_fails_or_gives_nan(first):
    for seed in range(first, first + 100):
        _ask(seed)


@pytest.mark.full
@pytest.mark.parametrize("first", range(400, 5400, 500))
def test_none_of_5000_headers_fails_or_gives_nan(first):
    for seed in range(first, first + 500):
        _ask(seed)
