"""Which row of a table suits this machine, and why: the most bits that fit with room for a real dialogue.

Pure: the fit of every row is worked out elsewhere. What loses too much is never recommended without saying so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.hub.types import QuantizationRow
from app.i18n import _
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import context_text
from app.models.quantization import group_of, meaning
from app.units import number_text

GOOD_ROOM_TOKENS = 16_384
LEAST_ROOM_TOKENS = 8_192
# Below this a model says wrong things often; a smaller model in more bits is better.
FEWEST_BITS = 3.0
# What nearly everybody takes where nothing is known of the machine.
_USUAL_BITS = 4.9

RowFit = tuple[QuantizationRow, Fit]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to take.

    Attributes:
        key: the row's; "" when none is recommended.
        reason: why, in one or two sentences.
    """

    key: str
    reason: str


def row_bits(row: QuantizationRow) -> float:
    """Return a row's bits per weight: its own where they are known, else what its name promises; 0 for a stranger."""
    return row.bits_per_weight or (meaning(row.quantization).nominal_bits if row.quantization else 0.0)


def recommend(rows: Sequence[RowFit]) -> Recommendation:
    """Return the row to take and the reason.

    Args:
        rows: of one repo, each with whether it fits now.
    """
    usable = [(row, fit) for row, fit in rows if not row.is_broken and row_bits(row) > 0]
    if not usable:
        return Recommendation("", _("Nothing here is of a kind that Cutaway knows."))
    if all(fit.verdict is Verdict.UNKNOWN for _row, fit in usable):
        row = min(usable, key=lambda one: abs(row_bits(one[0]) - _USUAL_BITS))[0]
        return Recommendation(row.key, _("Nearly everybody's choice. Whether it fits cannot be told yet."))
    fitting = [one for one in usable if one[1].verdict is Verdict.FITS and _room(one[1]) > 0]
    for tokens in (GOOD_ROOM_TOKENS, LEAST_ROOM_TOKENS):
        roomy = [one for one in fitting if _room(one[1]) >= _wanted(one[0], tokens)]
        for group, choose in _CHOICES:
            members = [one for one in roomy if group_of(row_bits(one[0])) == group and row_bits(one[0]) >= FEWEST_BITS]
            if members:
                return _chosen(choose(_without_older(members)), group)
    return _second_best(usable, fitting)


def _most(rows: Sequence[RowFit]) -> RowFit:
    return max(rows, key=lambda one: (row_bits(one[0]), bool(one[0].imatrix)))


def _fewest(rows: Sequence[RowFit]) -> RowFit:
    return min(rows, key=lambda one: row_bits(one[0]))


_CHOICES: tuple[tuple[str, Callable[[Sequence[RowFit]], RowFit]], ...] = (
    ("balanced", _most),
    ("large", _fewest),  # where nothing is between: the smallest of the large ones loses nothing either
    ("small", _most),
)


def _chosen(found: RowFit, group: str) -> Recommendation:
    row, fit = found
    values = {"words": meaning(row.quantization, row.bits_per_weight or 0.0).words, "tokens": context_text(_room(fit))}
    if group == "small":
        words = _("The most bits that fit here, with room for {tokens} tokens. What it costs: {words}.")
    elif group == "large":
        words = _("The smallest of this model's files that keeps everything: {words}, room for {tokens} tokens.")
    else:
        words = _("The most bits of the balanced ones that leave room for {tokens} tokens here: {words}.")
    return Recommendation(row.key, words.format_map(values))


def _second_best(usable: Sequence[RowFit], fitting: Sequence[RowFit]) -> Recommendation:
    """Return what can be said where nothing fits with room for a dialogue."""
    enough = [one for one in fitting if row_bits(one[0]) >= FEWEST_BITS]
    if enough:
        row, fit = max(enough, key=lambda one: _room(one[1]))
        words = _("It fits, but with room for {tokens} tokens only: long dialogues will not go in.")
        return Recommendation(row.key, words.format(tokens=context_text(_room(fit))))
    partial = [
        one for one in usable if one[1].verdict in (Verdict.PARTIAL, Verdict.TIGHT) and row_bits(one[0]) >= FEWEST_BITS
    ]
    if partial:
        row, fit = _fewest(partial)
        if fit.verdict is Verdict.PARTIAL:
            return Recommendation(
                row.key, _("The smallest good one; some of its layers stay on the CPU, so it is slow.")
            )
        return Recommendation(row.key, _("The smallest good one; it just fits and leaves little to other programs."))
    if fitting:
        row = _most(fitting)[0]
        words = _(
            "Only this fits here, and {bits} bits a weight lose much: expect wrong facts. A smaller model in more bits "
            "is the better choice."
        )
        return Recommendation(row.key, words.format(bits=number_text(row_bits(row))))
    return Recommendation("", _("None of them fits this machine. Look for a smaller model."))


def _without_older(rows: Sequence[RowFit]) -> Sequence[RowFit]:
    """Leave out the older kinds (Q4_0, Q5_1) where there are newer ones, which lose less in the same bits."""
    newer = [one for one in rows if meaning(one[0].quantization).family != "plain"]
    return newer if newer and group_of(row_bits(newer[0][0])) != "large" else rows


def _wanted(row: QuantizationRow, tokens: int) -> int:
    """Return how much room is wanted: no more than the model can use."""
    trained = row.shape.context_tokens if row.shape is not None else 0
    return min(tokens, trained) if trained > 0 else tokens


def _room(fit: Fit) -> int:
    return fit.max_context_tokens.get("f16") or 0
