"""How a safetensors model is quantized, in one name, and how many bits each of its weights really takes.

Quantized files pack several weights into one element and bring scales beside them; here a weight is counted as a
weight and a scale as a cost. Knows headers only.
References: the layouts of AutoGPTQ, AutoAWQ, bitsandbytes, compressed-tensors, ModelOpt, torchao, EXL2 and EXL3, and
of gpt-oss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from app.models.quantization_torch import torch_name
from app.models.safetensors_header import QuantizationFacts, SafetensorsModel

_DTYPE_NAMES: Mapping[str, str] = MappingProxyType({"F8_E4M3": "FP8", "F8_E5M2": "FP8-E5M2", "I8": "int8"})
_METHOD_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "awq": "AWQ",
        "gptq": "GPTQ",
        **dict.fromkeys(("auto-round", "autoround", "intel/auto-round"), "AutoRound"),
        "hqq": "HQQ",
        "quanto": "Quanto",
        "eetq": "EETQ",
        "torchao": "",
        "compressed-tensors": "",
    }
)
_FLOAT4_GROUPS: Mapping[int, str] = MappingProxyType({16: "NVFP4", 32: "MXFP4"})
_MX_GROUP = 32

# Elements of these are containers; one of I8 or of a float is a weight.
_PACKED_DTYPES = frozenset(("U8", "I16", "U16", "I32", "U32", "I64"))
_PACKED = re.compile(r"(^|[.:_])(weight|qweight|q_weight|packed|blocks|qdata|W_q|trellis)$")
# What stands beside packed weights: scales, zero points, orders, tables, marks.
_BESIDE = re.compile(
    r"(^|[.:_])(scales?|scale_inv|scale_2|scale_max|global_scale|zeros?|zero_point|qzeros|g_idx|perm|invperm|groups"
    r"|group_map|shape|absmax|quant_map|SCB|weight_format|suh|svh|su|sv|mcg|mul1|meta)$|\.quant_state\."
)


def quantization_of_safetensors(model: SafetensorsModel) -> str:
    """Return how the weights are stored: "BF16", "FP8", "NF4", "AWQ-int4-g128"; the file's own words for a stranger."""
    facts = model.quantization
    if facts is None:
        return _most_common_dtype(model)
    name = _name_of(facts, model.config)
    known = torch_name(name) if name else None
    return known.name if known else name or facts.description


def weights_of_safetensors(model: SafetensorsModel) -> int:
    """Return the number of weights, packed ones counted one by one; 0 when nothing says how they are packed."""
    if model.quantization is None:
        return sum(tensor.elements for tensor in model.tensors)
    bits = model.quantization.bits
    total = 0
    for tensor in model.tensors:
        if _BESIDE.search(tensor.name):
            continue
        if tensor.dtype in _PACKED_DTYPES and _PACKED.search(tensor.name):
            if bits <= 0:
                return 0
            total += round(8 * tensor.size_bytes / bits)
        else:
            total += tensor.elements
    return total


def bits_of_safetensors(model: SafetensorsModel) -> float:
    """Return the effective bits per weight, scales and tables included; 0 when the weights cannot be counted."""
    weights = weights_of_safetensors(model)
    return 8 * model.tensor_bytes / weights if weights else 0.0


def _most_common_dtype(model: SafetensorsModel) -> str:
    weights: Counter[str] = Counter()
    for tensor in model.tensors:
        weights[tensor.dtype] += tensor.elements
    dtype = weights.most_common(1)[0][0] if weights else ""
    return _DTYPE_NAMES.get(dtype, dtype)


def _name_of(facts: QuantizationFacts, config: Mapping[str, object]) -> str:
    """Return a name that quantization_torch understands; "" when the facts give none."""
    bits, method = facts.bits, facts.method
    if method in ("exl2", "exl3"):
        return f"{method}-{bits:g}bpw" if bits else ""
    if bits != int(bits) or not bits:
        return ""
    if method == "bitsandbytes":
        return {4: "NF4" if "nf4" in facts.description else "FP4", 8: "int8"}.get(int(bits), "")
    if "float" in facts.description or method in ("fp8", "fbgemm_fp8", "mxfp4"):
        return _float_name(int(bits), facts.group_size)
    group = f"-g{facts.group_size}" if facts.group_size else ""
    if method == "compressed-tensors":
        return f"W{bits}A{_activation_bits(config)}{group}"
    if method in _METHOD_NAMES:
        return f"{_METHOD_NAMES[method]}-int{bits}{group}".removeprefix("-")
    return ""


def _float_name(bits: int, group_size: int) -> str:
    if bits == 8:
        return "MXFP8" if group_size == _MX_GROUP else "FP8"
    return _FLOAT4_GROUPS.get(group_size, "") if bits == 4 else ""


def _activation_bits(config: Mapping[str, object]) -> int:
    """Return in how many bits a compressed-tensors model computes; 16 when it does not say."""
    found = config.get("quantization_config", config.get("compression_config"))
    groups = found.get("config_groups") if isinstance(found, Mapping) else None
    for group in groups.values() if isinstance(groups, Mapping) else ():
        inputs = group.get("input_activations") if isinstance(group, Mapping) else None
        bits = inputs.get("num_bits") if isinstance(inputs, Mapping) else None
        if type(bits) is int and 1 <= bits <= 16:
            return bits
    return 16
