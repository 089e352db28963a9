"""Shapes from config.json agree with those from GGUF headers, and no config fails."""

from __future__ import annotations

import random

import msgspec
import pytest

from app.models.fit import fit
from app.models.fit_cache import KV_TYPES, cache_of
from app.models.fit_context import plan_context
from app.models.fit_words import fit_sentence
from app.models.safetensors_header import read_safetensors
from app.models.shape_config import shape_of_config
from backends.protocol import LoadParams
from tests.helpers import safetensors_files
from tests.helpers.fit_models import computer, question

LLAMA_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "max_position_embeddings": 131_072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "vocab_size": 129_280,
}


def per_token(config):
    found = shape_of_config(config, ())
    assert found.unknown == ""
    return cache_of(found.layers).kv_bytes(KV_TYPES["f16"], plan_context(LoadParams(), 256)) // 256


def test_known_models_keep_what_their_gguf_files_keep():
    assert per_token(LLAMA_8B) == 128 * 1024
    assert per_token(DEEPSEEK_V3) == 61 * 576 * 2
    assert per_token({"architectures": ["LlamaForCausalLM"], "text_config": LLAMA_8B}) == 128 * 1024


def test_the_numbers_go_into_the_shape():
    found = shape_of_config(DEEPSEEK_V3, ())
    assert (found.architecture, found.is_mla, found.embedding_length, found.head_count) == (
        "deepseek_v3",
        True,
        7168,
        128,
    )
    assert (found.feed_forward_length, found.vocabulary_tokens) == (18_432, 129_280)
    assert shape_of_config(DEEPSEEK_V3 | {"intermediate_size": 0}, ()).feed_forward_length == 8 * 2048
    assert (
        shape_of_config({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12}, ()).feed_forward_length
        == 3072
    )


def test_a_folder_is_read_and_shaped(tmp_path):
    model = read_safetensors(safetensors_files.write_model(tmp_path / "tiny"))
    found = shape_of_config(model.config, model.tensors)
    assert (found.unknown, len(found.layers), found.context_tokens) == ("", 2, 2048)
    assert found.weights_bytes == model.tensor_bytes
    assert found.layers[0].weights_bytes == 64 * 64 * 2
    assert found.input_bytes == 256 * 64 * 2


def test_what_nobody_can_tell_has_a_sentence_and_its_weights():
    found = shape_of_config({"model_type": "zamba2", "hidden_size": 64, "num_hidden_layers": 2}, ())
    assert "zamba2" in found.unknown
    assert shape_of_config({}, ()).unknown
    assert shape_of_config(LLAMA_8B | {"num_experts_per_tok": "two"}, ()).unknown == (
        "num_experts_per_tok is no whole number that a model can mean."
    )


VALUES = (
    0,
    1,
    3,
    64,
    4096,
    2**31,
    2**53,
    2**70,
    -1,
    1.5,
    "x",
    None,
    True,
    [],
    [1, 2],
    ["full_attention"] * 32,
    {},
    [None],
)
KEYS = (
    *LLAMA_8B,
    *DEEPSEEK_V3,
    "head_dim",
    "layer_types",
    "hybrid_override_pattern",
    "sliding_window",
    "sliding_window_pattern",
    "text_config",
    "linear_attn_config",
    "attn_layer_period",
    "full_attn_idxs",
    "full_attention_interval",
    "num_kv_shared_layers",
    "state_size",
    "conv_kernel",
    "conv_L_cache",
    "mamba_d_ssm",
    "linear_num_value_heads",
    "use_sliding_window",
    "multi_query",
    "tie_word_embeddings",
)
KINDS = ("llama", "mamba", "falcon_h1", "gemma3_text", "mistral", "qwen2", "gpt_oss", "", "lfm2", "nemotron_h")


def test_no_config_fails_or_gives_nan():
    for seed in range(600):
        draw = random.Random(seed)
        config = dict(draw.choice((LLAMA_8B, DEEPSEEK_V3))) | {"model_type": draw.choice(KINDS)}
        config |= {key: draw.choice(VALUES) for key in draw.sample(KEYS, draw.randint(0, 6))}
        found = shape_of_config(config, ())
        assert bool(found.unknown) == (not found.layers)
        if all(layer.state_elements < 2**63 and layer.key_length < 2**63 for layer in found.layers):
            msgspec.msgpack.encode(found)
        for backend in ("torch", "llama_cpp"):
            assert "nan" not in fit_sentence(fit(found, question(backend), computer(8))).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_of_any_kind_with_nothing_else_is_unknown(kind):
    assert shape_of_config({"model_type": kind}, ()).unknown
