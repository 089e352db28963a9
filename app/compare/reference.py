"""Which model the others are compared with, and why; which ones can be compared with it.

The nearest to the original weights is taken that is at hand and fits into memory. What stands in for a better one is
said in words, and stays on the result. Knows no engine and no widget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.compare.plan import RunSpec
from app.compare.provenance import Provenance, check_file
from app.errors import one_line
from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import fit_short
from app.units import number_text

ORIGINALS = (("F32", "FP32", "FLOAT32"), ("F16", "BF16", "FP16", "FLOAT16", "BFLOAT16"))
STAND_IN = "Q8_0"
_EXACT_KV = "f16"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._+-]+")
_MAX_NAME_CHARACTERS = 60
_LEAST_BITS = 8.0  # a reference with fewer is said to be a poor one


@dataclass(frozen=True, slots=True)
class Proposal:
    """The model to compare with.

    Attributes:
        entry: of the library.
        reason: why this one, a sentence.
        warnings: what a person must know of it; they stay on the result.
        is_stand_in: whether it stands in for the original weights.
        passed_over: better ones that do not fit into memory.
    """

    entry: ModelEntry
    reason: str
    warnings: tuple[str, ...] = ()
    is_stand_in: bool = False
    passed_over: tuple[ModelEntry, ...] = ()


def propose_reference(
    entries: Sequence[ModelEntry],
    fits: Mapping[str, Fit] | None = None,
    check: Callable[[Path], Provenance] = check_file,
) -> Proposal | None:
    """Return the best reference of one model's quantizations; None where none of them can be loaded.

    F32, else 16 bits, else Q8_0, else the largest bits per weight. Of equals, one whose weights are its own, then one
    in the format that most of the others have: two engines round differently.

    Args:
        entries: all of one model, see candidates_for().
        fits: whether each fits, by key; None asks nobody.
        check: looks where a model's weights come from; reads files.
    """
    usable = [entry for entry in entries if not entry.fault]
    if not usable:
        return None
    ranked = sorted(usable, key=lambda entry: _rank(entry, usable))
    passed_over = [entry for entry in ranked if _is_too_large(entry, fits)]
    fitting = [entry for entry in ranked if entry not in passed_over]
    if not fitting:  # nothing fits: the least that is asked of the machine is the smallest
        fitting, passed_over = [min(ranked, key=lambda entry: entry.size_bytes)], []
    group = [entry for entry in fitting if _class_of(entry) == _class_of(fitting[0])]
    found = {entry.key: check(entry.path) for entry in group[: 1 if _class_of(fitting[0]) > 1 else 3]}
    best = next((entry for entry in group if entry.key in found and not found[entry.key].is_requantized), group[0])
    passed_over = [entry for entry in passed_over if _rank(entry, usable)[:2] < _rank(best, usable)[:2]]
    warnings = [*_step_words(passed_over, fits), *_quality_words(best), *_origin_words(found[best.key])]
    if _is_too_large(best, fits):
        warnings.append(_("It may not fit into memory: {fit}.").format(fit=fit_short(_fit_of(best, fits))))
    return Proposal(best, _reason(best), tuple(warnings), _class_of(best) > 1, tuple(passed_over))


def candidates_for(entry: ModelEntry, entries: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """Return the other quantizations of the same model that can be compared with it, largest first.

    Same name and, where both are known, the same owner, number of weights and vocabulary. Publishers who quantize the
    models of others are owners too: of another owner's files only those with the same number of weights are taken.
    """
    others = (other for other in entries if other.key != entry.key and other.path != entry.path and not other.fault)
    found = [other for other in others if is_same_model(entry, other)]
    return tuple(sorted(found, key=lambda other: (-other.bits_per_weight, -other.size_bytes, other.key)))


def is_same_model(first: ModelEntry, second: ModelEntry) -> bool:
    """Return whether two entries are one model in two quantizations, as far as their headers tell."""
    if _folded_name(first) != _folded_name(second):
        return False
    counts = (first.parameters_count, second.parameters_count)
    if all(counts) and abs(counts[0] - counts[1]) > _allowed_difference(first, second):
        return False
    if first.owner and second.owner and first.owner.casefold() != second.owner.casefold() and not all(counts):
        return False
    sizes = (_vocabulary(first), _vocabulary(second))
    return not all(sizes) or sizes[0] == sizes[1]


def make_run_spec(
    entry: ModelEntry,
    kv_type: str = _EXACT_KV,
    backend: str = "llama_cpp",
    taken: Collection[str] = (),
    note: str = "",
) -> RunSpec:
    """Return the run of a model in a plan.

    Args:
        entry: the model.
        kv_type: how K and V are kept.
        backend: by which backend.
        taken: run_ids of the plan so far, so that this one is another.
        note: what a person must know of it.
    """
    label = entry.quantization or entry.name
    run_id = _NOT_IN_NAMES.sub("-", label).strip("-._+")[:_MAX_NAME_CHARACTERS] or "run"
    if kv_type != _EXACT_KV:
        label = _("{quantization} · KV {kv_type}").format(quantization=label, kv_type=kv_type)
        run_id = f"{run_id}-kv-{_NOT_IN_NAMES.sub('-', kv_type)}"
    used = {name.casefold() for name in taken}  # two names that differ in case only are one file for some systems
    number, first = 1, run_id
    while run_id.casefold() in used:
        number += 1
        run_id = f"{first}-{number}"
    if number > 1:
        label = f"{label} ({entry.owner or number})"
    return RunSpec(
        run_id=run_id,
        label=one_line(label, _MAX_NAME_CHARACTERS),
        key=entry.key,
        path=str(entry.path),
        backend=backend,
        quantization=entry.quantization,
        kv_type=kv_type,
        size_bytes=entry.size_bytes,
        bits_per_weight=entry.bits_per_weight,
        fallback_tensors=entry.fallback_tensors,
        note=note,
    )


# ----------------------------------------------------------------------------------------------------- helpers


def _class_of(entry: ModelEntry) -> int:
    """Return 0 for 32 bits, 1 for 16, 2 for the stand-in, 3 for anything else."""
    name = entry.quantization.upper()
    for number, names in enumerate(ORIGINALS):
        if name in names:
            return number
    return 2 if name == STAND_IN else 3


def _rank(entry: ModelEntry, entries: Sequence[ModelEntry]) -> tuple[float, ...]:
    same_format = sum(other.format == entry.format for other in entries)
    return (_class_of(entry), -round(entry.bits_per_weight, 1), -same_format, -entry.size_bytes)


def _fit_of(entry: ModelEntry, fits: Mapping[str, Fit] | None) -> Fit:
    assert fits is not None
    return fits[entry.key]


def _is_too_large(entry: ModelEntry, fits: Mapping[str, Fit] | None) -> bool:
    return fits is not None and entry.key in fits and fits[entry.key].verdict is Verdict.TOO_LARGE


def _reason(entry: ModelEntry) -> str:
    name = entry.quantization or entry.name
    match _class_of(entry):
        case 0:
            return _("{name}: 32 bits for a weight, the nearest to the original that is at hand.").format(name=name)
        case 1:
            return _("{name}: 16 bits for a weight, as models are published.").format(name=name)
        case 2:
            return _("{name}: a stand-in for the original weights, with 8.5 bits for a weight.").format(name=name)
    if not entry.bits_per_weight:
        return _("{name}: the largest that is at hand.").format(name=name)
    words = _("{name}: the most bits per weight that are at hand, {bits}.")
    return words.format(name=name, bits=number_text(entry.bits_per_weight))


def _step_words(passed_over: Sequence[ModelEntry], fits: Mapping[str, Fit] | None) -> list[str]:
    words = _("{name} would be the better reference, but does not fit into memory: {fit}.")
    return [words.format(name=one.quantization, fit=fit_short(_fit_of(one, fits))) for one in passed_over]


def _quality_words(entry: ModelEntry) -> list[str]:
    if _class_of(entry) < 2:
        return []
    if _class_of(entry) == 2:
        return [
            _("The reference is Q8_0, not the original: the little that Q8_0 itself loses is in none of the figures.")
        ]
    words = _(
        "The reference is a quantization itself ({name}): the figures say how much the others differ from it, not from "
        "the original."
    )
    found = [words.format(name=entry.quantization or entry.name)]
    if 0 < entry.bits_per_weight < _LEAST_BITS:
        found.append(_("Larger quantizations than the reference could look worse than they are."))
    return found


def _origin_words(provenance: Provenance) -> list[str]:
    if not provenance.is_requantized:
        return [provenance.detail] if provenance.detail else []
    harm = _(
        "Figures made with such a reference are biased: quantizations on a similar grid look better than they are."
    )
    return [f"{provenance.detail} {harm}"]


def _folded_name(entry: ModelEntry) -> str:
    return one_line(entry.name).casefold()


def _allowed_difference(first: ModelEntry, second: ModelEntry) -> int:
    """Return by how many weights two files of one model may differ: one may store the output matrix apart."""
    shapes = [entry.shape for entry in (first, second) if entry.shape is not None]
    embedding = max((shape.vocabulary_tokens * shape.embedding_length for shape in shapes), default=0)
    return max(embedding, first.parameters_count // 50)


def _vocabulary(entry: ModelEntry) -> int:
    return entry.shape.vocabulary_tokens if entry.shape is not None else 0
