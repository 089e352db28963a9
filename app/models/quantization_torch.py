"""What the names of quantizations outside GGUF mean: integers and floats of few bits, with AWQ, GPTQ and the like.

Knows names only, no file. Bits are those of a whole model, Llama 3.1 8B, whose embedding and output stay at 16 bits
as these methods leave them: 86.9 % of its weights are in the layers. Losses are judged as in quantization_words.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.i18n import _
from app.models.quantization_words import GGUF_NAMES, Known, Loss, Words

_LAYERS_SHARE = 0.8691
_KEPT_BITS = 16
_USUAL_GROUP = 128
_NF4_BITS = 4.127  # with scales of 8 bits for 64 weights, which have a scale of 32 bits for 256 of their own
_MAX_BITS = 8


def whole_model_bits(bits: float) -> float:
    """Return the bits per weight of the whole model from those in its layers."""
    return round(_LAYERS_SHARE * bits + (1 - _LAYERS_SHARE) * _KEPT_BITS, 2)


def layer_bits(model_bits: float) -> float:
    """Return the bits per weight in the layers from those of the whole model."""
    return (model_bits - (1 - _LAYERS_SHARE) * _KEPT_BITS) / _LAYERS_SHARE


def _float_like(name: str, loss: Loss, bits: float, storage: Words, *, is_weight_only: bool) -> Known:
    return Known(name, loss, whole_model_bits(bits), "torch", storage, is_weight_only)


_FIXED: Mapping[str, Known] = MappingProxyType(
    {
        known.name: known
        for known in (
            _float_like(
                "FP8",
                "near",
                8,
                lambda: _("8-bit floats (E4M3) with a scale for each row or block"),
                is_weight_only=False,
            ),
            _float_like(
                "FP8-E5M2",
                "small",
                8,
                lambda: _("8-bit floats with two bits of precision (E5M2)"),
                is_weight_only=False,
            ),
            _float_like(
                "MXFP8", "small", 8.25, lambda: _("8-bit floats, 32 of them share a scale"), is_weight_only=False
            ),
            _float_like(
                "NF4",
                "small",
                _NF4_BITS,
                lambda: _("4 bits on steps made for the usual spread of weights"),
                is_weight_only=True,
            ),
            _float_like(
                "FP4", "noticeable", _NF4_BITS, lambda: _("4-bit floats, 64 of them share a scale"), is_weight_only=True
            ),
        )
    }
)
_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("fp32", "float32", "float"), "F32"),
        **dict.fromkeys(("fp16", "float16", "half"), "F16"),
        **dict.fromkeys(("bf16", "bfloat16"), "BF16"),
        "float64": "F64",
        **dict.fromkeys(("fp8", "f8", "float8", "e4m3", "e4m3fn", "e4m3fnuz"), "FP8"),
        **dict.fromkeys(("e5m2", "e5m2fnuz"), "FP8-E5M2"),
        "mxfp8": "MXFP8",
        "mxfp4": "MXFP4",
        "nvfp4": "NVFP4",
        "nf4": "NF4",
        "fp4": "FP4",
    }
)
_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "awq": "AWQ",
        "gptq": "GPTQ",
        "gptqmodel": "GPTQ",
        "autoround": "AutoRound",
        "hqq": "HQQ",
        "quanto": "Quanto",
        "mlx": "MLX",
        "eetq": "EETQ",
    }
)
# What they add or who made them, which changes nothing of the meaning.
_FILLING = frozenset(
    (
        *(
            "torch",
            "torchao",
            "modelopt",
            "ct",
            "weight",
            "weights",
            "only",
            "wo",
            "dynamic",
            "static",
            "group",
            "size",
        ),
        *("row", "rowwise", "wise", "channel", "per", "tensor", "token", "block", "quantized", "sym", "asym"),
        *("actorder", "order", "desc", "act", "true", "false"),
    )
)
_BITSANDBYTES = ("bnb", "bitsandbytes")
_CALIBRATED = frozenset(("AWQ", "GPTQ", "AutoRound"))
_PARTS = re.compile(r"[-_ ,/()+:]+")
_INTEGER = re.compile(r"u?int([1-8])|([1-8])bits?")
_GROUP = re.compile(r"(?:g|gs)(\d{1,5})|(\d{1,5})g")
_WEIGHTS_AND_ACTIVATIONS = re.compile(r"w([1-8])a([1-9]|1[0-6])")
_BITS_PER_WEIGHT = re.compile(r"(?:(exl2|exl3)[-_ ]?)?(\d{1,2}(?:\.\d{1,4})?) ?bpw(?:[-_ ]?h\d)?", re.IGNORECASE)


@dataclass
class _Found:
    """What the parts of a name said.

    Attributes:
        fixed: one of the formats without further parts; "" for none.
        method: such as "AWQ"; "" for none.
        bits: of a weight; 0 when not said. Likewise activation_bits.
        group: how many weights share a scale; 0 when not said.
        is_weight_only: whether the name says so. Likewise is_bitsandbytes.
    """

    fixed: str = ""
    method: str = ""
    bits: int = 0
    activation_bits: int = 0
    group: int = 0
    is_weight_only: bool = False
    is_bitsandbytes: bool = False


def torch_name(spelled: str) -> Known | None:
    """Return what this name of a quantization outside GGUF stands for, in any usual spelling; None for a stranger."""
    exact = _BITS_PER_WEIGHT.fullmatch(spelled.strip())
    if exact is not None:
        return _of_exact_bits(exact[1] or "", float(exact[2]))
    found = _Found()
    parts = [part for part in _PARTS.split(spelled.lower().replace("auto-round", "autoround")) if part]
    for part in parts:
        if not _read_part(found, part.removeprefix("torch.")):
            return None
    if found.is_bitsandbytes and found.bits == 4:
        found.fixed = found.fixed or "NF4"
    if found.fixed in GGUF_NAMES:
        return GGUF_NAMES[found.fixed]
    if found.fixed:
        known = _FIXED[found.fixed]
        return replace(known, is_weight_only=known.is_weight_only or found.is_weight_only)
    if found.activation_bits and not found.method:
        return _of_activations(found)
    if found.method or found.bits:
        return _of_integers(found)
    return None


def _read_part(found: _Found, part: str) -> bool:
    """Take in one part of a name; False when it is a stranger."""
    integer, group = _INTEGER.fullmatch(part), _GROUP.fullmatch(part)
    both = _WEIGHTS_AND_ACTIVATIONS.fullmatch(part)
    if part in _SPELLINGS:
        if found.fixed != "FP8-E5M2":  # "fp8" beside it says less
            found.fixed = _SPELLINGS[part]
    elif part in _METHODS:
        found.method = _METHODS[part]
    elif integer is not None:
        found.bits = int(integer[1] or integer[2])
    elif group is not None:
        found.group = int(group[1] or group[2])
    elif both is not None:
        found.bits, found.activation_bits = int(both[1]), int(both[2])
    elif part in _BITSANDBYTES:
        found.is_bitsandbytes = True
    elif part in _FILLING:
        found.is_weight_only |= part in ("only", "wo")
    else:
        return False
    return True


def _of_integers(found: _Found) -> Known:
    bits = found.bits or (8 if found.method == "EETQ" else 4)
    parts = (found.method, f"int{bits}", f"g{found.group}" if found.group else "")
    name = "-".join(part for part in parts if part)
    loss = _integer_loss(bits, found.method in _CALIBRATED)
    return Known(name, loss, _integer_bits(bits, found.group), "torch", _storage(bits, found.group))


def _of_activations(found: _Found) -> Known:
    name = f"W{found.bits}A{found.activation_bits}" + (f"-g{found.group}" if found.group else "")
    is_weight_only = found.activation_bits >= _KEPT_BITS
    loss = _integer_loss(found.bits, is_calibrated=True) if is_weight_only else _activation_loss(found)
    storage = _storage(found.bits, found.group) if is_weight_only else _computing(found.bits, found.activation_bits)
    return Known(name, loss, _integer_bits(found.bits, found.group), "torch", storage, is_weight_only)


def _activation_loss(found: _Found) -> Loss:
    if found.bits >= 8 and found.activation_bits >= 8:
        return "small"
    return "noticeable" if found.activation_bits >= 8 and found.bits >= 4 else "heavy"


def _integer_loss(bits: int, is_calibrated: bool) -> Loss:
    losses: dict[int, Loss] = {8: "indistinguishable", 7: "near", 6: "near", 5: "small"}
    if bits in losses:
        return losses[bits]
    if bits == 4:
        return "small" if is_calibrated else "noticeable"
    return "noticeable" if bits == 3 and is_calibrated else "heavy"


def _integer_bits(bits: int, group: int) -> float:
    """Return the bits of a whole model; a group has a scale of 16 bits and a zero point, and 8 bits need no groups."""
    group = group or (_USUAL_GROUP if bits < _MAX_BITS else 0)
    return whole_model_bits(bits + (16 + bits) / group if group else bits)


def _storage(bits: int, group: int) -> Words:
    if group:
        return lambda: _("Whole numbers of {bits} bits, {group} weights share a scale").format(bits=bits, group=group)
    if bits < _MAX_BITS:
        return lambda: _("Whole numbers of {bits} bits that share scales").format(bits=bits)
    return lambda: _("Whole numbers of {bits} bits with a scale for each row").format(bits=bits)


def _computing(bits: int, activation_bits: int) -> Words:
    return lambda: _("Weights in whole numbers of {bits} bits, computing in {activation_bits}").format(
        bits=bits, activation_bits=activation_bits
    )


def _of_exact_bits(method: str, bits: float) -> Known | None:
    if not 1 <= bits <= 16:
        return None
    name = f"{method.upper()}-{bits:g}bpw" if method else f"{bits:g}bpw"
    return Known(
        name, loss_of_bits(bits), bits, "torch", lambda: _("{bits} bits a weight on average").format(bits=f"{bits:g}")
    )


def loss_of_bits(bits: float) -> Loss:
    """Return how much is lost with so many bits a weight, when nothing else is known."""
    bands: tuple[tuple[float, Loss], ...] = (
        (15.5, "reference"),
        (8.0, "indistinguishable"),
        (6.3, "near"),
        (4.4, "small"),
        (3.45, "noticeable"),
    )
    return next((loss for least, loss in bands if bits >= least), "heavy")
