"""From the name of a quantization to what it means for a person, and what a file's header says about the real thing.

A name is a promise: `effective_bits` and `fallback_tensors` tell whether the file keeps it. Where rows are no whole
blocks of 256 weights (SmolLM2 135M, Gemma 3 270M, Qwen2.5 0.5B) "Q2_K" takes 5 bits a weight, and is said to.
Knows headers and no file; the figures in its sentences are computed from the header that is asked about.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import PureWindowsPath
from typing import Literal

from app.errors import one_line
from app.i18n import _, ngettext
from app.models.ggml_types import FILE_TYPES
from app.models.gguf_header import GgufHeader, TensorInfo
from app.models.quantization_mixes import (
    BLOCK_BITS,
    FALLBACKS,
    LAST_RESORT,
    MIXES,
    MixFacts,
    fits,
    mix_types,
    stored_type,
)
from app.models.quantization_roles import is_quantized
from app.models.quantization_safetensors import bits_of_safetensors, quantization_of_safetensors
from app.models.quantization_torch import layer_bits, loss_of_bits, torch_name
from app.models.quantization_words import EFFECTS, GGUF_NAMES, LOSS_WORDS, Family, Known, gguf_name
from app.units import count_text, number_text

__all__ = [
    "Group",
    "QuantizationMeaning",
    "bits_of_safetensors",
    "effective_bits",
    "fallback_tensors",
    "group_of",
    "group_title",
    "has_importance_matrix",
    "importance_words",
    "meaning",
    "meaning_of_header",
    "quantization_of_safetensors",
    "quantization_rank",
    "quantized_tensors",
    "words_for",
]

Group = Literal["small", "balanced", "large"]

SMALL_BITS = 4.25  # at most
BALANCED_BITS = 6.25  # at most
# A file with less than this share of the bits of its main type is not what its name says.
_BROKEN_PROMISE = 0.85
_MAX_NAME_CHARACTERS = 64
_MAX_DATASET_CHARACTERS = 60
_GUESSED_FILE_TYPE = 1024  # a flag of llama.cpp on top of the file type


@dataclass(frozen=True, slots=True)
class QuantizationMeaning:
    """What a quantization is, for a table and its tooltips.

    Attributes:
        name: in its usual spelling; a stranger's as it came, made one line.
        words: what is lost, for a table cell: "small differences".
        sentence: how it stores weights and what a person will notice.
        group: by bits per weight; "balanced" where neither name nor file tells them.
        nominal_bits: per weight, as the name promises for a model whose rows fit; 0 for a stranger.
        is_weight_only: whether computing goes on in 16 bits or more, as far as the format says.
        family: how it came to be; "" for a stranger.
    """

    name: str
    words: str
    sentence: str
    group: Group
    nominal_bits: float
    is_weight_only: bool
    family: Family

    @property
    def is_known(self) -> bool:
        """Whether the name is understood."""
        return self.nominal_bits > 0


# ------------------------------------------------------------------------------------------------------ names


def meaning(name: str, bits_per_weight: float = 0.0, fell_back: int | None = None) -> QuantizationMeaning:
    """Return what a quantization means, in any spelling; a stranger's name is said to be one.

    Args:
        name: such as "Q4_K_M", "UD-Q4_K_XL", "bf16" or "AWQ-int4-g128".
        bits_per_weight: effective, of a certain file; 0 to ask about the name alone. Where they differ a lot from what
            the name promises they decide the words.
        fell_back: how many of the file's tensors did; None when that is not known.
    """
    known = _known(name)
    if known is None:
        return _stranger(name, bits_per_weight)
    is_file = _is_number(bits_per_weight)
    as_named = QuantizationMeaning(
        known.name,
        LOSS_WORDS[known.loss](),
        _sentence(known),
        group_of(bits_per_weight if is_file else known.bits),
        known.bits,
        known.is_weight_only,
        known.family,
    )
    if not is_file:
        return as_named
    if _has_fallen_back(known, bits_per_weight, fell_back):
        fallback = GGUF_NAMES[FALLBACKS[MIXES[known.base].main]]
        sentence = _fallen_sentence(known, bits_per_weight, fell_back or 0)
        return replace(as_named, words=LOSS_WORDS[fallback.loss](), sentence=sentence)
    if bits_per_weight < _BROKEN_PROMISE * _main_bits(known):
        sentence = _("Its name promises about {nominal} bits a weight, and the file has {bits}.").format(
            nominal=number_text(known.bits), bits=number_text(bits_per_weight)
        )
        return replace(as_named, words=LOSS_WORDS[loss_of_bits(bits_per_weight)](), sentence=sentence)
    return as_named


def words_for(name: str, bits_per_weight: float, fell_back: int | None = None) -> str:
    """Return what is lost, for a table cell; see `meaning`."""
    return meaning(name, bits_per_weight, fell_back).words


def group_of(bits_per_weight: float) -> Group:
    """Return the group of files with so many bits per weight; "balanced" when that is not known."""
    if not _is_number(bits_per_weight):
        return "balanced"
    if bits_per_weight <= SMALL_BITS:
        return "small"
    return "balanced" if bits_per_weight <= BALANCED_BITS else "large"


def group_title(group: Group) -> str:
    """Return the heading of a group."""
    return {"small": _("Small"), "balanced": _("Balanced"), "large": _("Large")}[group]


def quantization_rank(name: str) -> tuple[float, str]:
    """Return what to sort a model's quantizations by: few bits first, then the name; strangers last."""
    known = _known(name)
    return (known.bits, known.name) if known else (math.inf, name.casefold())


@functools.lru_cache(maxsize=1024)
def _known(name: str) -> Known | None:
    if len(name) > _MAX_NAME_CHARACTERS:
        return None
    return gguf_name(name) or torch_name(name)


def _stranger(name: str, bits_per_weight: float) -> QuantizationMeaning:
    return QuantizationMeaning(
        one_line(name, _MAX_NAME_CHARACTERS),
        LOSS_WORDS["unknown"](),
        _("Cutaway does not know this quantization, so it cannot say how much is lost."),
        group_of(bits_per_weight),
        0.0,
        True,
        "",
    )


def _sentence(known: Known) -> str:
    effect = (known.effect or EFFECTS[known.loss])()
    return _("{storage}; {effect}.").format(storage=known.storage(), effect=effect)


def _main_bits(known: Known) -> float:
    """Return the bits of the type that most weights are in; a large model comes close to it."""
    if known.base in MIXES:
        return BLOCK_BITS[MIXES[known.base].main]
    return layer_bits(known.bits) if known.family == "torch" else known.bits


def _has_fallen_back(known: Known, bits: float, fell_back: int | None) -> bool:
    """Whether the file is rather what its types fall back to; without a count only bits as high as that tell."""
    fallback = FALLBACKS.get(MIXES[known.base].main) if known.base in MIXES else None
    if fallback is None or fell_back == 0:
        return False
    fallback_bits = GGUF_NAMES[fallback].bits
    return bits >= (fallback_bits if fell_back is None else (known.bits + fallback_bits) / 2)


def _fallen_sentence(known: Known, bits: float, fell_back: int, of_tensors: int = 0) -> str:
    if not fell_back:
        words = _("Its rows are no whole blocks of 256 weights, so larger types hold them: {bits} bits a weight.")
        return words.format(bits=number_text(bits))
    if of_tensors:
        words = ngettext(
            "{count} of {total} tensors fell back to a larger type: {bits} bits a weight instead of about {nominal}.",
            "{count} of {total} tensors fell back to larger types: {bits} bits a weight instead of about {nominal}.",
            fell_back,
        )
    else:
        words = ngettext(
            "{count} tensor fell back to a larger type: {bits} bits a weight instead of about {nominal}.",
            "{count} tensors fell back to larger types: {bits} bits a weight instead of about {nominal}.",
            fell_back,
        )
    return words.format(
        count=count_text(fell_back),
        total=count_text(of_tensors),
        bits=number_text(bits),
        nominal=number_text(known.bits),
    )


def _is_number(bits: float) -> bool:
    return math.isfinite(bits) and bits > 0


# ------------------------------------------------------------------------------------------------------ headers


def effective_bits(header: GgufHeader) -> float:
    """Return the bits per weight of the whole file, scales and unquantized tensors included; 0 without weights."""
    weights = header.parameters_count
    return 8 * header.tensor_bytes / weights if weights else 0.0


def fallback_tensors(header: GgufHeader) -> int:
    """Return how many tensors are stored in another type than the file's mix gives them, as their rows do not fit it.

    The same number as llama.cpp's own "n of m tensor(s) required fallback quantization" while it quantizes.
    """
    mix = _mix_of(header)
    if not mix:
        return 0
    chosen = mix_types(mix, header.tensors, _facts_of(header))
    return sum(_fell_back(tensor, chosen[tensor.name]) for tensor in header.tensors if tensor.name in chosen)


def quantized_tensors(header: GgufHeader) -> int:
    """Return how many tensors a quantization chooses the type of; norms, biases and the like it leaves alone."""
    return sum(is_quantized(tensor, header.architecture) for tensor in header.tensors)


def meaning_of_header(header: GgufHeader) -> QuantizationMeaning:
    """Return what a file's quantization means, with its own bits and fallbacks."""
    bits, fell_back = effective_bits(header), fallback_tensors(header)
    found = meaning(header.quantization, bits, fell_back)
    known = _known(header.quantization)
    if known is None or not _has_fallen_back(known, bits, fell_back):
        return found
    return replace(found, sentence=_fallen_sentence(known, bits, fell_back, quantized_tensors(header)))


def has_importance_matrix(header: GgufHeader) -> bool:
    """Whether the file says that it was quantized with an importance matrix."""
    return bool(_matrix_text(header, "file") or _matrix_text(header, "dataset")) or any(
        header.number(f"quantize.imatrix.{key}") > 0 for key in ("entries_count", "chunks_count")
    )


def importance_words(header: GgufHeader) -> str:
    """Return where the importance matrix comes from, on one line; "" without one."""
    if not has_importance_matrix(header):
        return ""
    dataset = _file_name(_matrix_text(header, "dataset") or _matrix_text(header, "file"))
    chunks = max(0, header.number("quantize.imatrix.chunks_count"))
    pieces = ngettext("{count} piece of text", "{count} pieces of text", chunks).format(count=count_text(chunks))
    if dataset and chunks:
        return _("importance matrix from {dataset}, {pieces}").format(dataset=dataset, pieces=pieces)
    if dataset:
        return _("importance matrix from {dataset}").format(dataset=dataset)
    if chunks:
        return _("importance matrix from {pieces}").format(pieces=pieces)
    return _("importance matrix of unknown origin")


def _mix_of(header: GgufHeader) -> str:
    """Return the mix that the file names; "" when it names none, or one that no rules are known for."""
    name = FILE_TYPES.get(header.number("general.file_type", absent=-1) & ~_GUESSED_FILE_TYPE, "")
    return name if name in MIXES else ""


def _facts_of(header: GgufHeader) -> MixFacts:
    heads = _first_number(header, "attention.head_count")
    kv_heads = _first_number(header, "attention.head_count_kv", absent=heads)
    return MixFacts(
        architecture=header.architecture,
        layers=header.block_count,
        experts=_first_number(header, "expert_count"),
        heads_per_kv=heads // kv_heads if kv_heads > 0 else 0,
        has_importance_matrix=has_importance_matrix(header),
    )


def _first_number(header: GgufHeader, key: str, absent: int = 0) -> int:
    """Return the number under a key of the architecture; of one for each layer the first."""
    value = header.metadata.get(f"{header.architecture}.{key}")
    if isinstance(value, tuple) and value:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else absent


def _fell_back(tensor: TensorInfo, chosen: str) -> bool:
    """Whether the tensor's rows do not fit the chosen type, and it is stored as llama.cpp then stores it.

    Which of the fallbacks it is may depend on an importance matrix that nobody wrote down; a tensor that its maker
    stored in another type on purpose is none.
    """
    row_elements = tensor.dims[0]
    if fits(chosen, row_elements):
        return False
    if stored_type(chosen, row_elements) == LAST_RESORT:
        return tensor.type_name == LAST_RESORT
    return tensor.type_name in FALLBACKS.values()


def _matrix_text(header: GgufHeader, key: str) -> str:
    return header.text(f"quantize.imatrix.{key}").strip()


def _file_name(path: str) -> str:
    """Return the last part of a publisher's path, which may be of any system, fit for a sentence."""
    return one_line(PureWindowsPath(path).name, _MAX_DATASET_CHARACTERS)
