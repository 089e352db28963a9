"""quantization_config as the makers of models write it: method, bits and group size of every kind."""

from __future__ import annotations

import pytest

from app.models.byte_source import HeaderError
from app.models.safetensors_quantization import QuantizationFacts, quantization_facts

PACKED = {"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group", "symmetric": True}
FLOAT8 = {"num_bits": 8, "type": "float", "strategy": "channel", "group_size": None}

GROUP = {"_type": "PerGroup", "_version": 1, "_data": {"group_size": 32}}


def facts(found: object) -> QuantizationFacts | None:
    return quantization_facts({"model_type": "llama", "quantization_config": found})


def compressed(*weights: object) -> dict[str, object]:
    groups = {f"group_{number}": {"targets": ["Linear"], "weights": one} for number, one in enumerate(weights)}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups}


def torchao(name: str, **data: object) -> dict[str, object]:
    return {"quant_method": "torchao", "quant_type": {"default": {"_type": name, "_version": 1, "_data": data}}}


def test_no_quantization_config_is_no_quantization() -> None:
    assert quantization_facts({}) is None
    assert quantization_facts({"quantization_config": None, "text_config": {}}) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, ("awq", 4, 128, "AWQ int4 g128")),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, ("awq", 4, 64, "AWQ int4 g64")),
        ({"quant_method": "gptq", "bits": 3, "group_size": -1}, ("gptq", 3, 0, "GPTQ int3")),
        ({"bits": 4, "group_size": 32, "desc_act": False}, ("gptq", 4, 32, "GPTQ int4 g32")),
        (
            {"quant_method": "intel/auto-round", "bits": 4, "group_size": 128},
            ("intel/auto-round", 4, 128, "AutoRound int4 g128"),
        ),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, ("fp8", 8, 0, "FP8")),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8", 8, 0, "FP8 in blocks of 128×128")),
        ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, ("fbgemm_fp8", 8, 0, "FP8")),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, ("mxfp4", 4, 32, "MXFP4 g32")),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            ("bitsandbytes", 4, 64, "bitsandbytes nf4 g64"),
        ),
        ({"_load_in_4bit": True, "load_in_4bit": True}, ("bitsandbytes", 4, 64, "bitsandbytes fp4 g64")),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": True},
            ("bitsandbytes", 8, 0, "bitsandbytes int8"),
        ),
        ({"quant_method": "bitsandbytes"}, ("bitsandbytes", 0, 0, "bitsandbytes")),
        (compressed(PACKED), ("compressed-tensors", 4, 128, "compressed-tensors int4 g128")),
        (compressed(FLOAT8), ("compressed-tensors", 8, 0, "compressed-tensors float8")),
        (compressed(PACKED, None, PACKED), ("compressed-tensors", 4, 128, "compressed-tensors int4 g128")),
        (compressed(PACKED, FLOAT8), ("compressed-tensors", 8, 0, "compressed-tensors mixed")),
        ({"quant_method": "compressed-tensors"}, ("compressed-tensors", 0, 0, "compressed-tensors")),
        ({"config_groups": {}}, ("compressed-tensors", 0, 0, "compressed-tensors")),
        (torchao("Int4WeightOnlyConfig", group_size=128), ("torchao", 4, 128, "torchao int4 g128")),
        (torchao("Int8WeightOnlyConfig"), ("torchao", 8, 0, "torchao int8")),
        (torchao("Float8DynamicActivationFloat8WeightConfig"), ("torchao", 8, 0, "torchao float8")),
        (
            torchao("IntxWeightOnlyConfig", weight_dtype={"_type": "torch.dtype", "_data": "int3"}, granularity=GROUP),
            ("torchao", 3, 32, "torchao int3 g32"),
        ),
        (
            {"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 64}},
            ("torchao", 4, 64, "torchao int4 g64"),
        ),
        ({"quant_method": "torchao", "quant_type": {"default": {}}}, ("torchao", 0, 0, "torchao")),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, ("modelopt", 4, 16, "ModelOpt float4 g16")),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, ("modelopt", 8, 0, "ModelOpt float8")),
        ({"quant_method": "hqq", "nbits": 2, "group_size": 16}, ("hqq", 2, 16, "HQQ int2 g16")),
        ({"quant_method": "quanto", "weights": "int8"}, ("quanto", 8, 0, "Quanto int8")),
        ({"quant_method": "exl2", "bits": 4.65}, ("exl2", 4.65, 0, "EXL2 int4.65")),
        ({"quant_method": "New_Thing"}, ("new_thing", 0, 0, "new_thing")),
        ({}, ("unknown", 0, 0, "unknown")),
    ],
)
def test_every_method_says_bits_and_groups(found: dict[str, object], expected: tuple[str, float, int, str]) -> None:
    assert facts(found) == QuantizationFacts(*expected)


def test_older_and_nested_places_are_looked_at() -> None:
    assert quantization_facts({"compression_config": compressed(PACKED)}) == facts(compressed(PACKED))
    inner = {"quantization_config": {"quant_method": "awq", "bits": 4}}
    assert quantization_facts({"text_config": inner}) == QuantizationFacts("awq", 4, 0, "AWQ int4")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("awq", "is no object"),
        ([], "is no object"),
        ({"quant_method": 4}, "does not name its method in a plain word"),
        ({"quant_method": "x" * 41}, "does not name its method"),
        ({"quant_method": "a\nb"}, "does not name its method"),
        ({"quant_method": "awq", "bits": "4"}, "no number of bits"),
        ({"quant_method": "awq", "bits": 0}, "no number of bits"),
        ({"quant_method": "awq", "bits": 33}, "no number of bits"),
        ({"quant_method": "awq", "bits": True}, "no number of bits"),
        ({"quant_method": "awq", "bits": 4, "group_size": "128"}, "no group size"),
        ({"quant_method": "awq", "bits": 4, "group_size": -2}, "no group size"),
        ({"quant_method": "awq", "bits": 4, "group_size": 2**21}, "no group size"),
        ({"quant_method": "fp8", "weight_block_size": 128}, "no two numbers as weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [128, 0]}, "no two numbers"),
        ({"quant_method": "fp8", "weight_block_size": [128, "a"]}, "no group size"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": ["nf4"]}, "4-bit type"),
        (compressed("int4"), "weights in no object"),
        (compressed({"num_bits": -4}), "no number of bits"),
    ],
)
def test_what_no_method_can_mean_is_refused(found: object, words: str) -> None:
    with pytest.raises(HeaderError, match=words):
        facts(found)
