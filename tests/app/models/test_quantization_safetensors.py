"""Names and effective bits of safetensors models, with layouts as the libraries write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.models.quantization_safetensors import (
    bits_of_safetensors,
    quantization_of_safetensors,
    weights_of_safetensors,
)
from app.models.safetensors_header import QuantizationFacts, SafeTensor, SafetensorsModel
from app.models.safetensors_quantization import quantization_facts
from app.models.safetensors_tensors import DTYPE_BITS

OUT, IN = 256, 512
WEIGHTS = OUT * IN
EMBEDDING = 1_000 * IN


def tensor(name: str, dtype: str, *dims: int) -> SafeTensor:
    """Return a tensor of the size that follows from its type."""
    elements = 1
    for dim in dims:
        elements *= dim
    return SafeTensor(name, dtype, dims, elements * DTYPE_BITS[dtype] // 8)


def model(
    *tensors: SafeTensor, quantization: Mapping[str, object] | None = None, facts: QuantizationFacts | None = None
) -> SafetensorsModel:
    """Return a model with these tensors and an embedding at 16 bits."""
    config = {"quantization_config": quantization} if quantization else {}
    every = (tensor("model.embed_tokens.weight", "BF16", 1_000, IN), *tensors)
    found = facts or quantization_facts(config)
    return SafetensorsModel(every, config, found, (Path("model.safetensors"),), 0, "")


Q = "model.layers.0.self_attn.q_proj"


def gptq(bits: int, group: int) -> SafetensorsModel:
    """Return a GPTQ model: columns packed in int32, zero points too, scales, and the order of the groups."""
    return model(
        tensor(f"{Q}.qweight", "I32", IN * bits // 32, OUT),
        tensor(f"{Q}.qzeros", "I32", IN // group, OUT * bits // 32),
        tensor(f"{Q}.scales", "F16", IN // group, OUT),
        tensor(f"{Q}.g_idx", "I32", IN),
        quantization={"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": True},
    )


def awq() -> SafetensorsModel:
    """Return an AWQ model: rows packed in int32."""
    return model(
        tensor(f"{Q}.qweight", "I32", IN, OUT // 8),
        tensor(f"{Q}.qzeros", "I32", IN // 128, OUT // 8),
        tensor(f"{Q}.scales", "F16", IN // 128, OUT),
        quantization={"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"},
    )


def nf4() -> SafetensorsModel:
    """Return a bitsandbytes model: two weights a byte, scales in two stages."""
    return model(
        tensor(f"{Q}.weight", "U8", WEIGHTS // 2, 1),
        tensor(f"{Q}.weight.absmax", "U8", WEIGHTS // 64),
        tensor(f"{Q}.weight.quant_map", "F32", 16),
        tensor(f"{Q}.weight.nested_absmax", "F32", WEIGHTS // 64 // 256),
        tensor(f"{Q}.weight.nested_quant_map", "F32", 256),
        tensor(f"{Q}.weight.quant_state.bitsandbytes__nf4", "U8", 90),
        quantization={"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    )


def packed_w4a16() -> SafetensorsModel:
    """Return a compressed-tensors model: weights packed along the row, with their shape beside them."""
    group = {"weights": {"num_bits": 4, "type": "int", "group_size": 128}, "input_activations": None}
    return model(
        tensor(f"{Q}.weight_packed", "I32", OUT, IN // 8),
        tensor(f"{Q}.weight_scale", "BF16", OUT, IN // 128),
        tensor(f"{Q}.weight_shape", "I64", 2),
        quantization={"quant_method": "compressed-tensors", "config_groups": {"group_0": group}},
    )


def w8a8() -> SafetensorsModel:
    """Return a compressed-tensors model of plain int8 that computes in int8."""
    group = {"weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8, "dynamic": True}}
    return model(
        tensor(f"{Q}.weight", "I8", OUT, IN),
        tensor(f"{Q}.weight_scale", "BF16", OUT, 1),
        quantization={"quant_method": "compressed-tensors", "config_groups": {"group_0": group}},
    )


def nvfp4() -> SafetensorsModel:
    """Return a ModelOpt model: two weights a byte, an FP8 scale for 16 of them and one for the tensor."""
    return model(
        tensor(f"{Q}.weight", "U8", OUT, IN // 2),
        tensor(f"{Q}.weight_scale", "F8_E4M3", OUT, IN // 16),
        tensor(f"{Q}.weight_scale_2", "F32"),
        tensor(f"{Q}.input_scale", "F32"),
        quantization={"quant_method": "modelopt", "quant_algo": "NVFP4"},
    )


def gpt_oss() -> SafetensorsModel:
    """Return experts as gpt-oss has them: blocks of 16 bytes for 32 weights, and a byte of scale each."""
    experts = "model.layers.0.mlp.experts.gate_up_proj"
    return model(
        tensor(f"{experts}_blocks", "U8", 4, OUT // 4, IN // 32, 16),
        tensor(f"{experts}_scales", "U8", 4, OUT // 4, IN // 32),
        quantization={"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
    )


def fp8() -> SafetensorsModel:
    """Return an FP8 model with a scale for each square of weights."""
    return model(
        tensor(f"{Q}.weight", "F8_E4M3", OUT, IN),
        tensor(f"{Q}.weight_scale_inv", "F32", OUT // 128, IN // 128),
        quantization={"quant_method": "fp8", "weight_block_size": [128, 128]},
    )


def exl2() -> SafetensorsModel:
    """Return an EXL2 model: a fraction of bits on average."""
    return model(
        tensor(f"{Q}.q_weight", "I32", IN * 5 // 32, OUT),
        tensor(f"{Q}.q_scale", "I32", 4, OUT // 8),
        tensor(f"{Q}.q_scale_max", "F16", 4),
        tensor(f"{Q}.q_groups", "I16", 8),
        tensor(f"{Q}.q_invperm", "I16", IN),
        quantization={"quant_method": "exl2", "bits": 5.0},
    )


@pytest.mark.parametrize(
    ("made", "name", "layer_bits"),
    [
        (gptq(4, 128), "GPTQ-int4-g128", 4 + 20 / 128 + 32 / OUT),
        (gptq(4, 32), "GPTQ-int4-g32", 4 + 20 / 32 + 32 / OUT),
        (gptq(8, 128), "GPTQ-int8-g128", 8 + 24 / 128 + 32 / OUT),
        (awq(), "AWQ-int4-g128", 4 + 20 / 128),
        (nf4(), "NF4", 4 + 8 / 64 + 32 / 64 / 256 + 8 * (64 + 1_024 + 90) / WEIGHTS),
        (packed_w4a16(), "W4A16-g128", 4 + 16 / 128 + 128 / WEIGHTS),
        (w8a8(), "W8A8", 8 + 16 / IN),
        (nvfp4(), "NVFP4", 4 + 8 / 16 + 64 / WEIGHTS),
        (gpt_oss(), "MXFP4", 4.25),
        (fp8(), "FP8", 8 + 32 / 128 / 128),
        (exl2(), "EXL2-5bpw", 5 + 8 * (4 * OUT // 2 + 8 + 16 + 2 * IN) / WEIGHTS),
    ],
)
def test_packed_weights_are_counted_one_by_one_and_scales_as_their_cost(
    made: SafetensorsModel, name: str, layer_bits: float
) -> None:
    assert quantization_of_safetensors(made) == name
    assert weights_of_safetensors(made) == EMBEDDING + WEIGHTS
    expected = (EMBEDDING * 16 + WEIGHTS * layer_bits) / (EMBEDDING + WEIGHTS)
    assert bits_of_safetensors(made) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("BF16", "BF16"), ("F16", "F16"), ("F32", "F32"), ("F8_E4M3", "FP8"), ("F8_E5M2", "FP8-E5M2"), ("I8", "int8")],
)
def test_without_a_quantization_the_most_common_type_gives_the_name(dtype: str, name: str) -> None:
    made = model(tensor("model.layers.0.mlp.up_proj.weight", dtype, 4_000, IN))
    assert quantization_of_safetensors(made) == name
    assert weights_of_safetensors(made) == 5_000 * IN
    assert bits_of_safetensors(made) == pytest.approx((16 + 4 * DTYPE_BITS[dtype]) / 5)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (QuantizationFacts("bitsandbytes", 8, 0, "bitsandbytes int8"), "int8"),
        (QuantizationFacts("bitsandbytes", 4, 64, "bitsandbytes fp4 g64"), "FP4"),
        (QuantizationFacts("torchao", 4, 64, "torchao int4 g64"), "int4-g64"),
        (QuantizationFacts("torchao", 8, 0, "torchao float8"), "FP8"),
        (QuantizationFacts("compressed-tensors", 8, 32, "compressed-tensors float8 g32"), "MXFP8"),
        (QuantizationFacts("compressed-tensors", 4, 16, "compressed-tensors float4 g16"), "NVFP4"),
        (QuantizationFacts("intel/auto-round", 4, 128, "AutoRound int4 g128"), "AutoRound-int4-g128"),
        (QuantizationFacts("eetq", 8, 0, "EETQ int8"), "EETQ-int8"),
        (QuantizationFacts("exl3", 4.05, 0, "EXL3 int4.05"), "EXL3-4.05bpw"),
        (QuantizationFacts("compressed-tensors", 8, 0, "compressed-tensors mixed"), "W8A16"),
        (QuantizationFacts("bitnet", 0, 0, "BitNet"), "BitNet"),
        (QuantizationFacts("aqlm", 2, 0, "AQLM int2"), "AQLM int2"),
        (QuantizationFacts("awq", 0, 0, "AWQ"), "AWQ"),
        (QuantizationFacts("gptq", 31, 0, "GPTQ int31"), "GPTQ-int31"),
    ],
)
def test_facts_become_one_name(facts: QuantizationFacts, name: str) -> None:
    assert quantization_of_safetensors(model(facts=facts)) == name


def test_weights_whose_packing_nobody_tells_are_not_counted() -> None:
    made = model(tensor(f"{Q}.qweight", "I32", 64, OUT), facts=QuantizationFacts("unknown", 0, 0, "unknown"))
    assert (weights_of_safetensors(made), bits_of_safetensors(made)) == (0, 0.0)


def test_a_strange_config_gives_no_activation_bits_and_no_error() -> None:
    facts = QuantizationFacts("compressed-tensors", 4, 128, "compressed-tensors int4 g128")
    inputs = {"a": {"input_activations": {"num_bits": "x"}}}
    strange: list[object] = [None, 3, [], {"a": None}, {"a": {"input_activations": 3}}, inputs]
    for groups in strange:
        made = model(quantization={"quant_method": "compressed-tensors", "config_groups": groups}, facts=facts)
        assert quantization_of_safetensors(made) == "W4A16-g128"
