"""What each quantization of GGUF files is called, how it stores weights and what a person will notice, in words.

Knows names only, no file. Bits are those of a whole model, Llama 3.1 8B, whose rows fit every type: computed from
quantization_mixes.py, they are the bits per weight that llama.cpp's own table gives for that model. The words stand
for bands of the mean KL divergence from the unquantized model (below 0.002 nats indistinguishable, 0.01 near-lossless,
0.05 small differences, 0.15 noticeable, above heavy loss), as published for Llama 3 8B; smaller models lose more.
References: tools/quantize/README.md and tools/perplexity/README.md of llama.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from app.i18n import _

Loss = Literal["reference", "indistinguishable", "near", "small", "noticeable", "heavy", "special", "unknown"]
Family = Literal["plain", "k", "i", "float", "ternary", "torch", ""]
Words = Callable[[], str]

LOSS_WORDS: Mapping[Loss, Words] = MappingProxyType(
    {
        "reference": lambda: _("reference"),
        "indistinguishable": lambda: _("indistinguishable"),
        "near": lambda: _("near-lossless"),
        "small": lambda: _("small differences"),
        "noticeable": lambda: _("noticeable"),
        "heavy": lambda: _("heavy loss"),
        "special": lambda: _("for special models"),
        "unknown": lambda: _("unknown"),
    }
)
# The second half of the sentence: what a person will notice.
EFFECTS: Mapping[Loss, Words] = MappingProxyType(
    {
        "reference": lambda: _("the others are compared with it"),
        "indistinguishable": lambda: _("nobody will notice a difference"),
        "near": lambda: _("you are unlikely to notice a difference"),
        "small": lambda: _("wording differs now and then, the sense rarely"),
        "noticeable": lambda: _("slips in code, numbers and rarer languages show"),
        "heavy": lambda: _("expect wrong facts and broken code, so only if nothing larger fits"),
        "special": lambda: _("only models trained for it stay usable"),
        "unknown": lambda: _("how much it loses is not known here"),
    }
)


@dataclass(frozen=True, slots=True)
class Known:
    """One quantization whose name is understood.

    Attributes:
        name: in its usual spelling.
        loss: how far its answers are from the unquantized model's.
        bits: per weight, of a whole model.
        family: how it came to be.
        storage: the first half of the sentence, how it stores weights.
        is_weight_only: whether computing goes on in 16 bits or more, as far as the format says.
        effect: the second half of the sentence where it is not the usual one.
        base: the mix of llama.cpp that it is or resembles; "" for none.
    """

    name: str
    loss: Loss
    bits: float
    family: Family
    storage: Words
    is_weight_only: bool = True
    effect: Words | None = None
    base: str = ""


def _k_only(bits: int) -> Words:
    return lambda: _("Blocks of 256 weights at {bits} bits each").format(bits=bits)


def _k_first(bits: int, more: int) -> Words:
    return lambda: _("Blocks of 256 weights at {bits} bits each, some of the first layers at {more}").format(
        bits=bits, more=more
    )


def _k_some(bits: int, more: int) -> Words:
    return lambda: _("Blocks of 256 weights at {bits} bits each, half of the sensitive ones at {more}").format(
        bits=bits, more=more
    )


def _k_sensitive(bits: int, more: int) -> Words:
    return lambda: _("Blocks of 256 weights at {bits} bits each, the sensitive ones at {more}").format(
        bits=bits, more=more
    )


def _scaled(bits: int) -> Words:
    return lambda: _("Blocks of 32 weights at {bits} bits each that share a scale").format(bits=bits)


def _offset(bits: int) -> Words:
    return lambda: _("Blocks of 32 weights at {bits} bits each that share a scale and an offset").format(bits=bits)


def _patterns(bits: int) -> Words:
    return lambda: _("Groups of weights from a table of patterns, about {bits} bits each").format(bits=bits)


def _patterns_below_two() -> str:
    return _("Groups of weights from a small table of patterns, below 2 bits each")


def _uneven(count: int) -> Words:
    return lambda: _("4 bits on uneven steps, in blocks of {count} weights").format(count=count)


def _floats(bits: int) -> Words:
    return lambda: _("Every weight as a {bits}-bit float").format(bits=bits)


def _integers(bits: int) -> Words:
    return lambda: _("Whole numbers of {bits} bits, for tables rather than weights").format(bits=bits)


def _helper() -> str:
    return _("Blocks of weights at 8 bits, an intermediate step of computing")


def _mxfp4_effect() -> str:
    return _("for gpt-oss it is the original")


def _helper_effect() -> str:
    return _("no model keeps its weights so")


_Row = tuple[Loss, float, Family, Words]

_ROWS: Mapping[str, _Row] = {
    "F64": ("reference", 64.0, "float", _floats(64)),
    "F32": ("reference", 32.0, "float", _floats(32)),
    "F16": ("reference", 16.0, "float", _floats(16)),
    "BF16": ("reference", 16.0, "float", lambda: _("Every weight as a 16-bit float with the range of 32 bits")),
    "Q8_0": ("indistinguishable", 8.5, "plain", _scaled(8)),
    "Q5_1": ("small", 6.04, "plain", _offset(5)),
    "Q5_0": ("small", 5.57, "plain", _scaled(5)),
    "Q4_1": ("noticeable", 5.1, "plain", _offset(4)),
    "Q4_0": ("noticeable", 4.64, "plain", _scaled(4)),
    "Q6_K": ("near", 6.56, "k", _k_only(6)),
    "Q5_K_M": ("small", 5.7, "k", _k_some(5, 6)),
    "Q5_K_S": ("small", 5.57, "k", _k_only(5)),
    "Q5_K": ("small", 5.5, "k", _k_only(5)),
    "Q4_K_M": ("small", 4.89, "k", _k_some(4, 6)),
    "Q4_K_S": ("small", 4.67, "k", _k_first(4, 5)),
    "Q4_K": ("small", 4.5, "k", _k_only(4)),
    "Q3_K_L": ("noticeable", 4.3, "k", _k_sensitive(3, 5)),
    "Q3_K_M": ("noticeable", 4.0, "k", _k_sensitive(3, 4)),
    "Q3_K_S": ("heavy", 3.64, "k", _k_only(3)),
    "Q3_K": ("heavy", 3.44, "k", _k_only(3)),
    "Q2_K": ("heavy", 3.16, "k", _k_sensitive(2, 3)),
    "Q2_K_S": ("heavy", 2.97, "k", _k_first(2, 4)),
    "IQ4_NL": ("small", 4.68, "i", _uneven(32)),
    "IQ4_XS": ("small", 4.46, "i", _uneven(256)),
    "IQ3_M": ("noticeable", 3.76, "i", _patterns(3)),
    "IQ3_S": ("noticeable", 3.66, "i", _patterns(3)),
    "IQ3_XS": ("noticeable", 3.5, "i", _patterns(3)),
    "IQ3_XXS": ("heavy", 3.25, "i", _patterns(3)),
    "IQ2_M": ("heavy", 2.93, "i", _patterns(2)),
    "IQ2_S": ("heavy", 2.74, "i", _patterns(2)),
    "IQ2_XS": ("heavy", 2.59, "i", _patterns(2)),
    "IQ2_XXS": ("heavy", 2.38, "i", _patterns(2)),
    "IQ1_M": ("heavy", 2.15, "i", _patterns_below_two),
    "IQ1_S": ("heavy", 2.0, "i", _patterns_below_two),
    "TQ2_0": ("special", 2.52, "ternary", lambda: _("Each weight is -1, 0 or 1, in 2 bits")),
    "TQ1_0": ("special", 2.19, "ternary", lambda: _("Each weight is -1, 0 or 1, five of them in 8 bits")),
    "Q2_0": ("special", 2.68, "plain", lambda: _("Blocks of 64 weights at 2 bits each that share a scale")),
    "Q1_0": ("special", 1.48, "plain", lambda: _("Blocks of 128 weights at 1 bit each that share a scale")),
    "MXFP4": ("small", 4.25, "float", lambda: _("4-bit floats, 32 of them share a scale")),
    "MXFP4_MOE": ("small", 4.62, "float", lambda: _("Experts as 4-bit floats, everything else at 8 bits")),
    "NVFP4": ("noticeable", 6.01, "float", lambda: _("4-bit floats, 16 of them share an 8-bit scale")),
    "Q8_1": ("indistinguishable", 9.0, "plain", _helper),
    "Q8_K": ("indistinguishable", 9.125, "k", _helper),
    "I8": ("unknown", 8.0, "plain", _integers(8)),
    "I16": ("unknown", 16.0, "plain", _integers(16)),
    "I32": ("unknown", 32.0, "plain", _integers(32)),
    "I64": ("unknown", 64.0, "plain", _integers(64)),
}
_EFFECTS_OF_THEIR_OWN: Mapping[str, Words] = {
    **dict.fromkeys(("MXFP4", "MXFP4_MOE"), _mxfp4_effect),
    **dict.fromkeys(("Q8_1", "Q8_K", "I8", "I16", "I32", "I64"), _helper_effect),
}

GGUF_NAMES: Mapping[str, Known] = MappingProxyType(
    {
        name: Known(name, *row, effect=_EFFECTS_OF_THEIR_OWN.get(name), base="MXFP4_MOE" if name == "MXFP4" else name)
        for name, row in _ROWS.items()
    }
)

# Publishers' own mixes: the mix of llama.cpp they start from, and the bits with embedding and output at 8 (at 16
# where the mix itself is at 8).
_WIDER: Mapping[str, tuple[str, float]] = {
    "Q2_K_L": ("Q2_K", 3.67),
    "Q3_K_XL": ("Q3_K_L", 4.76),
    "Q4_K_L": ("Q4_K_M", 5.28),
    "Q5_K_L": ("Q5_K_M", 6.03),
    "Q6_K_L": ("Q6_K", 6.82),
    "Q8_K_XL": ("Q8_0", 9.48),
}
_MIXES_OF_A_TYPE: Mapping[str, str] = {
    "Q2": "Q2_K",
    "Q3": "Q3_K_M",
    "Q4": "Q4_K_M",
    "Q5": "Q5_K_M",
    "Q6": "Q6_K",
    "Q8": "Q8_0",
}
_OWN_MIX = re.compile(r"(Q[2-68])_K_([A-Z]{1,4})")
_REPACKED = re.compile(r"(Q4_0|IQ4_NL)_\d_\d")
_DYNAMIC = "UD-"


def gguf_name(spelled: str) -> Known | None:
    """Return what this name of a GGUF quantization stands for; None for a stranger.

    Args:
        spelled: in any case, with `-`, `.`, a space or `_` between its parts, perhaps with a publisher's prefix: `UD-`
            (bits distributed anew for each model) or `i1-` (with an importance matrix).
    """
    plain = re.sub(r"[-. _]+", "_", spelled.upper()).strip("_")
    for prefix in ("I1_", "IMATRIX_", "IMAT_"):
        plain = plain.removeprefix(prefix)
    if plain.startswith("UD_"):
        return _dynamic(plain.removeprefix("UD_"))
    return GGUF_NAMES.get(plain) or _wider(plain) or _own_mix(plain) or _repacked(plain)


def _dynamic(plain: str) -> Known | None:
    # The smallest of them borrows the name of a ternary type and is none.
    known = GGUF_NAMES["IQ1_S"] if plain == "TQ1_0" else GGUF_NAMES.get(plain) or _own_mix(plain)
    if known is None:
        return None

    def storage() -> str:
        return _("{base} with its bits moved to the tensors that need them").format(base=known.base)

    bits = _WIDER[plain][1] if plain == "Q8_K_XL" else known.bits
    return replace(known, name=_DYNAMIC + plain, bits=bits, storage=storage)


def _wider(plain: str) -> Known | None:
    if plain not in _WIDER:
        return None
    base, bits = _WIDER[plain]

    def storage() -> str:
        return _("{base} with more bits for its embedding and output").format(base=base)

    return replace(GGUF_NAMES[base], name=plain, bits=bits, storage=storage, base=base)


def _own_mix(plain: str) -> Known | None:
    found = _OWN_MIX.fullmatch(plain)
    if found is None:
        return None
    base = _MIXES_OF_A_TYPE[found[1]]

    def storage() -> str:
        return _("A publisher's own mix around {base}").format(base=base)

    return replace(GGUF_NAMES[base], name=plain, storage=storage, base=base)


def _repacked(plain: str) -> Known | None:
    found = _REPACKED.fullmatch(plain)
    if found is None:
        return None
    base = found[1]

    def storage() -> str:
        return _("{base} in an order for ARM processors that llama.cpp no longer reads").format(base=base)

    def effect() -> str:
        return _("take {base} instead").format(base=base)

    return replace(GGUF_NAMES[base], name=plain, storage=storage, effect=effect, base=base)
