"""config.json: numbers that no model means are refused, and so is everything that asks for code."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_config import check_config, every_value, parse_object, without_steering
from tests.helpers.safetensors_files import LLAMA_CONFIG, dumped, mutated

MODEL = Path("/models/one")


def code_of(**changes: object) -> ErrorCode:
    with pytest.raises(EngineError) as caught:
        check_config({**LLAMA_CONFIG, **changes}, MODEL)
    return caught.value.code


def test_an_honest_config_passes() -> None:
    check_config(LLAMA_CONFIG, MODEL)
    check_config({**LLAMA_CONFIG, "_attn_implementation": "sdpa", "auto_map": None}, MODEL)


@pytest.mark.parametrize(
    "changes",
    [
        {"auto_map": {"AutoModel": "x--y.Z"}},
        {"custom_pipelines": {"x": {}}},
        {"_attn_implementation": "someone/kernel"},
        {"_attn_implementation_internal": "someone/kernel"},
        {"_attn_implementation_internal": "kernel_that_nobody_knows"},
        {"attn_implementation": {"text_config": "a/b:c"}},
        {"attn_implementation": 7},
        {"experts_implementation": "a/b"},
        {"text_config": {"_attn_implementation_internal": "a/b"}},
        {"list": [{"auto_map": {"AutoModel": "x.Y"}}]},
    ],
)
def test_what_asks_for_code_is_refused(changes) -> None:
    assert code_of(**changes) is ErrorCode.RUNS_CODE


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": 2**40},
        {"hidden_size": 0},
        {"hidden_size": 1.5},
        {"hidden_size": True},
        {"vocab_size": 2**31},
        {"num_hidden_layers": 100_000},
        {"num_attention_heads": -1},
        {"max_position_embeddings": 2**40},
        {"num_hidden_layers": [2] * 5_000},
        {"num_local_experts": 8_000, "num_hidden_layers": 100},
        {"rope_theta": 10**30},
        {"text_config": {"head_dim": 2**20}},
    ],
)
def test_absurd_numbers_are_refused(changes) -> None:
    assert code_of(**changes) is ErrorCode.HEADER_INVALID


def test_a_config_without_a_kind_is_unknown_and_quantized_weights_are_named() -> None:
    assert code_of(model_type=None) is ErrorCode.UNKNOWN_ARCHITECTURE
    assert code_of(model_type="x" * 100) is ErrorCode.UNKNOWN_ARCHITECTURE
    with pytest.raises(EngineError) as caught:
        check_config({**LLAMA_CONFIG, "quantization_config": {"quant_method": "gptq"}}, MODEL)
    assert (caught.value.code, caught.value.parameters["detail"]) == (ErrorCode.WEIGHTS_UNSUPPORTED, "gptq")


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"\xff\xfe", b'{"a":' * 40_000 + b"1" + b"}" * 40_000, b'{"a":[' + b"1," * 600_000 + b"1]}"],
)
def test_what_is_no_object_is_refused(data) -> None:
    with pytest.raises(EngineError) as caught:
        parse_object(data, "config.json", MODEL)
    assert caught.value.code is ErrorCode.HEADER_INVALID


def test_python_s_infinity_becomes_nothing() -> None:
    assert parse_object(b'{"a": Infinity, "b": NaN}', "x", MODEL) == {"a": None, "b": None}


def test_what_steers_a_load_is_left_out_wherever_it_stands() -> None:
    config = {"hidden_size": 4, "_name_or_path": "a/b", "transformers_weights": "x.safetensors", "fusion_config": {}}
    config["text_config"] = {"_attn_implementation": "sdpa", "head_dim": 2}
    assert without_steering(config) == {"hidden_size": 4, "text_config": {"head_dim": 2}}


def test_every_value_is_seen() -> None:
    found = dict(every_value({"a": {"b": [{"c": 1}]}}))
    assert set(found) == {"a", "b", "c"}


@pytest.mark.parametrize("seed", range(100))
def test_a_mutated_config_is_refused_or_passes(seed) -> None:
    data = dumped(mutated(LLAMA_CONFIG, random.Random(seed)))
    try:
        config = parse_object(data, "config.json", MODEL)
        check_config(config, MODEL)
    except EngineError:
        return
    json.dumps(without_steering(config))
