"""What the quantization_config of a config.json says: which method stored the weights, and in how many bits.

Knows the words of the methods, not their arithmetic.
Reference: https://github.com/huggingface/transformers, src/transformers/utils/quantization_config.py, and the formats
of compressed-tensors and torchao.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.models.byte_source import HeaderError

MAX_BITS = 32
MAX_GROUP = 2**20
_WHERE = "The quantization_config in config.json"
_METHOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,39}")
# "Int4WeightOnlyConfig", "float8_dynamic_activation", "uint4", "nvfp4": the last letters and the first number.
_TYPE_BITS = re.compile(r"(u?int|float|mxfp|nvfp|fp)([1-8])(?![0-9])", re.IGNORECASE)
_NAMES = {
    "awq": "AWQ",
    "gptq": "GPTQ",
    "auto-round": "AutoRound",
    "intel/auto-round": "AutoRound",
    "autoround": "AutoRound",
    "fp8": "FP8",
    "fbgemm_fp8": "FP8",
    "compressed-tensors": "compressed-tensors",
    "torchao": "torchao",
    "bitsandbytes": "bitsandbytes",
    "mxfp4": "MXFP4",
    "hqq": "HQQ",
    "eetq": "EETQ",
    "quanto": "Quanto",
    "aqlm": "AQLM",
    "vptq": "VPTQ",
    "bitnet": "BitNet",
    "exl2": "EXL2",
    "exl3": "EXL3",
    "modelopt": "ModelOpt",
}
_BNB_BLOCK = 64  # bitsandbytes' own block of 4-bit weights
_MXFP4_BLOCK = 32
_NVFP4_BLOCK = 16


@dataclass(frozen=True, slots=True)
class QuantizationFacts:
    """How the weights of a safetensors model are stored.

    Attributes:
        method: the file's own word, such as "awq", "compressed-tensors" or "bitsandbytes".
        bits: of one weight, without its scales; 0 when the file does not say. EXL2 has fractions.
        group_size: how many weights share a scale; 0 when a whole row, a whole tensor or a square does, or when the
            file does not say.
        description: in the words of the field, such as "AWQ int4 g128".
    """

    method: str
    bits: float
    group_size: int
    description: str


def quantization_facts(config: Mapping[str, object]) -> QuantizationFacts | None:
    """Return what a checked config.json says of its quantization; None when it says nothing.

    Raises:
        HeaderError: what it says is of a wrong type or impossible.
    """
    found = config.get("quantization_config", config.get("compression_config"))
    if found is None:
        inner = config.get("text_config")
        return quantization_facts(inner) if isinstance(inner, Mapping) else None
    if not isinstance(found, Mapping):
        raise HeaderError(f"{_WHERE} is no object.")
    method = _method(found)
    read = _READERS.get(method, _plain)
    bits, group_size, kind = read(found)
    words = [_NAMES.get(method, method), kind, f"g{group_size}" if group_size else ""]
    return QuantizationFacts(method, bits, group_size, " ".join(word for word in words if word))


def _method(found: Mapping[str, object]) -> str:
    method = found.get("quant_method")
    if method is None:  # older files of bitsandbytes and GPTQ do not say
        if found.get("load_in_4bit") or found.get("load_in_8bit"):
            return "bitsandbytes"
        if "config_groups" in found:
            return "compressed-tensors"
        method = "gptq" if "desc_act" in found else "unknown"
    if not isinstance(method, str) or not _METHOD.fullmatch(method):
        raise HeaderError(f"{_WHERE} does not name its method in a plain word.")
    return method.lower()


_Facts = tuple[float, int, str]


def _plain(found: Mapping[str, object]) -> _Facts:
    """AWQ, GPTQ, AutoRound, HQQ and whatever else says bits and group_size."""
    bits = _bits(found.get("bits", found.get("w_bit", found.get("nbits"))))
    if not bits and isinstance(found.get("weights"), str):  # Quanto: "int4"
        bits = _type_bits(str(found["weights"]))
    group = _group(found.get("group_size", found.get("q_group_size")))
    return bits, group, f"int{bits:g}" if bits else ""


def _fp8(found: Mapping[str, object]) -> _Facts:
    block = found.get("weight_block_size")
    if block is None:
        return 8, 0, ""
    if not isinstance(block, list) or len(block) != 2 or any(_group(one) < 1 for one in block):
        raise HeaderError(f"{_WHERE} gives no two numbers as weight_block_size.")
    return 8, 0, f"in blocks of {block[0]}×{block[1]}"


def _mxfp4(_found: Mapping[str, object]) -> _Facts:
    return 4, _MXFP4_BLOCK, ""


def _bitsandbytes(found: Mapping[str, object]) -> _Facts:
    if found.get("load_in_4bit") or found.get("_load_in_4bit"):
        kind = found.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise HeaderError(f"{_WHERE} names a 4-bit type that bitsandbytes does not have.")
        return 4, _BNB_BLOCK, str(kind)
    if found.get("load_in_8bit") or found.get("_load_in_8bit"):
        return 8, 0, "int8"
    return 0, 0, ""


def _compressed(found: Mapping[str, object]) -> _Facts:
    groups = found.get("config_groups")
    if not isinstance(groups, Mapping):
        return 0, 0, ""
    facts: list[_Facts] = []
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if weights is None:  # activations only
            continue
        if not isinstance(weights, Mapping):
            raise HeaderError(f"{_WHERE} describes weights in no object.")
        bits = _bits(weights.get("num_bits"))
        kind = {"int": "int", "float": "float"}.get(str(weights.get("type", "int")), "")
        facts.append((bits, _group(weights.get("group_size")), f"{kind}{bits:g}" if bits else ""))
    if not facts:
        return 0, 0, ""
    if len(set(facts)) > 1:
        return max(bits for bits, _size, _kind in facts), 0, "mixed"
    return facts[0]


def _modelopt(found: Mapping[str, object]) -> _Facts:
    algorithm = str(found.get("quant_algo", ""))
    bits = _type_bits(algorithm)
    is_nvfp4 = algorithm.upper() == "NVFP4"
    return bits, _NVFP4_BLOCK if is_nvfp4 else _group(found.get("group_size")), f"float{bits}" if bits else ""


def _torchao(found: Mapping[str, object]) -> _Facts:
    kind = found.get("quant_type")
    if isinstance(kind, str):
        given = found.get("quant_type_kwargs")
        values: object = given if isinstance(given, Mapping) else {}
    else:
        inner = kind.get("default") if isinstance(kind, Mapping) else None
        kind = inner.get("_type") if isinstance(inner, Mapping) else None
        values = inner.get("_data") if isinstance(inner, Mapping) else None
    if not isinstance(kind, str):
        return 0, 0, ""
    values = values if isinstance(values, Mapping) else {}
    bits = _type_bits(str(_inner_data(values.get("weight_dtype")) or kind))
    granularity = values.get("granularity")
    group = values.get("group_size", _inner_data(granularity, "group_size"))
    name = "float" if re.search(r"fp|float", kind, re.IGNORECASE) else "int"
    return bits, _group(group), f"{name}{bits}" if bits else ""


def _type_bits(words: str) -> int:
    """Return the bits of the weights: the first number behind the name of a type."""
    match = _TYPE_BITS.search(words)
    return int(match[2]) if match else 0


def _inner_data(value: object, key: str = "") -> object:
    """Return `_data` of torchao's {"_type": …, "_data": …}, or a value in it."""
    data = value.get("_data") if isinstance(value, Mapping) else value
    if not key:
        return data if isinstance(data, str) else None
    return data.get(key) if isinstance(data, Mapping) else None


def _bits(value: object) -> float:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MAX_BITS:
        raise HeaderError(f"{_WHERE} gives no number of bits between 1 and {MAX_BITS}.")
    return value


def _group(value: object) -> int:
    if value is None or value == -1:
        return 0
    if type(value) is not int or not 0 <= value <= MAX_GROUP:
        raise HeaderError(f"{_WHERE} gives no group size between 1 and {MAX_GROUP:,}.")
    return value


_READERS = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "torchao": _torchao,
    "modelopt": _modelopt,
}
