"""What the layers of transformers' models keep, kind by kind."""

from __future__ import annotations

import pytest

from app.models.config_layers import layers_of_config
from app.models.config_values import ConfigValues
from app.models.gguf_keys import BadKeyError

BASE = {"num_hidden_layers": 4, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4}


def layers(**config):
    return list(layers_of_config(ConfigValues(BASE | config), 512))


def kinds(**config):
    """f: full, w: window, s: state, b: both, -: neither."""
    letters = []
    for heads, _key, _value, window, state in layers(**config):
        letters.append("b" if heads and state else "s" if state else "w" if window else "f" if heads else "-")
    return "".join(letters)


def test_grouped_heads_of_the_width_divided():
    assert layers(model_type="llama") == [(4, 128, 128, 0, 0)] * 4
    assert layers(model_type="qwen3", head_dim=64)[0] == (4, 64, 64, 0, 0)


def test_without_kv_heads_every_head_has_its_own_and_multi_query_one():
    config = {key: value for key, value in BASE.items() if key != "num_key_value_heads"}
    plain = layers_of_config(ConfigValues(config | {"model_type": "gpt_neox"}), 512)
    shared = layers_of_config(ConfigValues(config | {"model_type": "falcon", "multi_query": True}), 512)
    assert (plain[0][0], shared[0][0]) == (16, 1)


def test_a_latent_vector_and_its_position_are_one_head_without_v():
    for kind in ("deepseek_v2", "deepseek_v3", "kimi_k2"):
        assert layers(model_type=kind, kv_lora_rank=512, qk_rope_head_dim=64) == [(1, 576, 0, 0, 0)] * 4


@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("llama", {}, "ffff"),
        ("mistral", {}, "wwww"),
        ("phi3", {}, "wwww"),
        ("gemma2", {}, "wfwf"),
        ("gemma3_text", {"sliding_window_pattern": 2}, "wfwf"),
        ("gemma3_text", {}, "wwww"),
        ("gpt_oss", {}, "wfwf"),
        ("cohere2", {}, "wwwf"),
        ("exaone4", {"sliding_window_pattern": "LLLG"}, "wwwf"),
        ("qwen2", {}, "ffff"),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 3}, "fffw"),
        (
            "any",
            {"layer_types": ["full_attention", "sliding_attention", "chunked_attention", "full_attention"]},
            "fwwf",
        ),
    ],
)
def test_windows_follow_the_kind_or_the_config_s_own_list(kind, config, expected):
    assert kinds(model_type=kind, sliding_window=1024, **config) == expected


def test_no_window_means_no_windows():
    assert kinds(model_type="mistral", sliding_window=None) == "ffff"


@pytest.mark.parametrize(
    ("kind", "config", "expected"),
    [
        ("mamba", {}, "ssss"),
        ("mamba2", {"expand": 2}, "ssss"),
        ("falcon_h1", {"mamba_d_ssm": 3072, "mamba_d_state": 256}, "bbbb"),
        ("granitemoehybrid", {"layer_types": ["mamba", "mamba", "attention", "mamba"]}, "ssfs"),
        ("nemotron_h", {"hybrid_override_pattern": "M-*M"}, "s-fs"),
        ("jamba", {"attn_layer_period": 2, "attn_layer_offset": 1}, "sfsf"),
        ("lfm2", {"layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 3}, "ssfs"),
        ("lfm2", {"full_attn_idxs": [2], "conv_L_cache": 3}, "ssfs"),
        ("qwen3_next", {"full_attention_interval": 4, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
                        "linear_key_head_dim": 128, "linear_num_key_heads": 16}, "sssf"),
        ("kimi_linear", {"linear_attn_config": {"kda_layers": [1, 2, 3], "head_dim": 128, "num_heads": 32}}, "sssf"),
    ],
)  # fmt: skip
def test_recurrent_layers_keep_a_state_in_place_of_k_and_v(kind, config, expected):
    assert kinds(model_type=kind, **config) == expected


@pytest.mark.parametrize(
    ("config", "elements"),
    [
        ({"model_type": "mamba", "intermediate_size": 4096, "state_size": 16, "conv_kernel": 4}, 3 * 4096 + 16 * 4096),
        ({"model_type": "mamba2", "expand": 2, "state_size": 128, "n_groups": 1}, 3 * (4096 + 256) + 128 * 4096),
        (
            {"model_type": "falcon_h1", "mamba_d_ssm": 3072, "mamba_d_state": 256, "mamba_n_groups": 1},
            3 * (3072 + 512) + 256 * 3072,
        ),
        (
            {"model_type": "bamba", "attn_layer_indices": [3], "mamba_n_heads": 64, "mamba_d_head": 64,
             "mamba_d_state": 128},
            3 * 4096 + 128 * 4096,
        ),
        ({"model_type": "lfm2", "full_attn_idxs": [3], "conv_L_cache": 3}, 2 * 2048),
        (
            {"model_type": "qwen3_next", "full_attention_interval": 4, "linear_num_value_heads": 32,
             "linear_value_head_dim": 128, "linear_key_head_dim": 128, "linear_num_key_heads": 16},
            3 * (2 * 2048 + 4096) + 32 * 128 * 128,
        ),
        (
            {"model_type": "kimi_linear", "linear_attn_config": {"kda_layers": [1], "head_dim": 128, "num_heads": 32}},
            3 * 3 * 4096 + 128 * 4096,
        ),
    ],
)  # fmt: skip
def test_each_kind_of_state_has_its_size(config, elements):
    assert layers(**config)[0][4] == elements


def test_shared_layers_keep_nothing_of_their_own():
    assert kinds(model_type="gemma3n_text", num_kv_shared_layers=2) == "ff--"


def test_heads_may_differ_by_layer():
    assert [
        layer[0] for layer in layers(model_type="openelm", num_kv_heads=[3, 4, 5, 6], num_key_value_heads=None)
    ] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "rwkv"},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": 513},
        {"hidden_size": 0},
        {"layer_types": ["full_attention"]},
        {"layer_types": ["full_attention", "new kind", "mamba", "mamba"]},
        {"hybrid_override_pattern": "MMM"},
    ],
)
def test_what_is_not_known_is_said_and_not_guessed(config):
    with pytest.raises(BadKeyError):
        layers(**config)
