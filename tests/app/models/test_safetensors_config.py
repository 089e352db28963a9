"""config.json: numbers that no model can mean are refused, and a config that asks for code is noticed (S-07, S-08)."""

from __future__ import annotations

import json

import pytest

from app.models.byte_source import HeaderError
from app.models.safetensors_config import code_request, parse_config
from tests.helpers.safetensors_files import LLAMA_CONFIG


def parsed(**changes: object) -> dict[str, object]:
    return parse_config(json.dumps({**LLAMA_CONFIG, **changes}).encode())


def refusal(**changes: object) -> str:
    with pytest.raises(HeaderError) as caught:
        parsed(**changes)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_an_honest_config_is_given_as_it_is() -> None:
    assert parsed() == LLAMA_CONFIG
    assert parse_config(b"{}") == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"num_key_value_heads": None, "head_dim": None, "sliding_window": None},
        {"num_key_value_heads": [2, 4, 0, None]},  # one for each layer
        {"num_hidden_layers": 512, "vocab_size": 2**24, "max_position_embeddings": 2**31},
        {"time_step_rank": "auto"},
        {"rms_norm_eps": 1e-300, "rope_theta": 1e18, "initializer_range": 0.02},
        {"text_config": {"hidden_size": 5_120, "num_hidden_layers": 48}, "vision_config": {"hidden_size": 1_152}},
        {"hidden_act": "silu", "is_decoder": True, "eos_token_id": [1, 2, 3], "layer_types": ["full_attention"] * 48},
    ],
)
def test_what_real_models_say_is_taken(changes: dict[str, object]) -> None:
    assert parsed(**changes) == {**LLAMA_CONFIG, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 0}, "'hidden_size' in config.json is no whole number between 1 and 1,048,576"),
        ({"hidden_size": 2**20 + 1}, "'hidden_size' in config.json is no whole number"),
        ({"hidden_size": "4096"}, "'hidden_size' in config.json is no whole number"),
        ({"hidden_size": 4096.0}, "'hidden_size' in config.json is no whole number"),
        ({"hidden_size": True}, "'hidden_size' in config.json is no whole number"),
        ({"hidden_size": {"a": 1}}, "'hidden_size' in config.json is no whole number"),
        ({"num_hidden_layers": 513}, "no whole number between 1 and 512"),
        ({"num_hidden_layers": -1}, "no whole number between 1 and 512"),
        ({"vocab_size": 2**31}, "'vocab_size'"),
        ({"max_position_embeddings": 2**40}, "'max_position_embeddings'"),
        ({"num_key_value_heads": [2, "x"]}, "'num_key_value_heads'"),
        ({"num_key_value_heads": [1] * 4_097}, "lists 4,097 numbers"),
        ({"time_step_rank": ["auto"]}, "'time_step_rank'"),
        ({"text_config": {"hidden_size": -5}}, "'hidden_size'"),
        ({"a": [{"b": {"vocab_size": 0}}]}, "'vocab_size'"),
        ({"anything": 2**53 + 1}, "number of 'anything' in config.json is larger than any model needs"),
        ({"anything": -(2**70)}, "larger than any model needs"),
        ({"anything": [1, 2**80]}, "larger than any model needs"),
        ({"model_type": 7}, "kind of model in a plain word"),
        ({"model_type": "x" * 65}, "kind of model in a plain word"),
        ({"model_type": "a\nb"}, "kind of model in a plain word"),
    ],
)
def test_what_no_model_can_mean_is_refused(changes: dict[str, object], words: str) -> None:
    assert words in refusal(**changes)


def test_a_float_beyond_every_float_is_refused() -> None:
    with pytest.raises(HeaderError, match="number of 'rope_theta' in config"):
        parse_config(b'{"rope_theta": 1e999}')


def test_huge_configs_are_refused() -> None:
    with pytest.raises(HeaderError, match="holds 600,003 values; at most 500,000"):
        parse_config(b'{"a": [' + b"0," * 600_000 + b"0]}")


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ""),
        ({"auto_map": {"AutoModel": "modeling_x.X"}}, "auto_map"),
        ({"auto_map": {}}, ""),
        ({"text_config": {"auto_map": {"AutoConfig": "a.B"}}}, "auto_map"),
        ({"custom_pipelines": {"x": {"impl": "x.Y"}}}, "custom_pipelines"),
        ({"_attn_implementation": "sdpa"}, ""),
        ({"_attn_implementation": "someone/kernels"}, "_attn_implementation"),
        ({"_attn_implementation_internal": "someone/kernels:x"}, "_attn_implementation_internal"),
        ({"attn_implementation": {"text_config": "someone/kernels"}}, "attn_implementation"),
        ({"x": [{"vision_attn_implementation_y": ["a/b"]}]}, "vision_attn_implementation_y"),
        ({"architectures": ["a/b"], "transformers_version": "5/1"}, ""),
    ],
)
def test_a_config_that_asks_for_code_is_noticed(changes: dict[str, object], found: str) -> None:
    assert code_request(parsed(**changes)) == found
