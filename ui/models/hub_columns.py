"""The columns of a repo's table: what each shows of a row, how its figures were got, in which colour and type.

Knows no hub and no view. Every figure is a prediction or somebody else's, so those are italic and muted; sizes are the
hub's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.errors import one_line
from app.hub.published import Published
from app.hub.types import QuantizationRow
from app.i18n import _, ngettext
from app.models.fit_types import Fit, Verdict
from app.models.fit_words import fit_sentence, fit_short
from app.units import bytes_text, count_text, number_text
from ui.models.grouped_table_model import Group
from ui.models.hub_words import row_meaning, row_name

_NOT_KNOWN: Final = "–"
_MOST_PATHS: Final = 12


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known of a row.

    Attributes:
        row: as the hub and the header say.
        fit: None while it is not known.
        published: what others measured of it; None for nothing.
    """

    row: QuantizationRow
    fit: Fit | None = None
    published: Published | None = None


@dataclass(frozen=True, slots=True)
class HubColumn:
    """One column; see ColumnFacts."""

    title: Callable[[], str]
    text: Callable[[Facts], str]
    about: Callable[[], str]
    is_number: bool = False
    rank: int = 0
    has_notes: bool = False


def _in_words(facts: Facts) -> str:
    told = row_meaning(facts.row)
    return told.words if told is not None else _NOT_KNOWN


def _bits(facts: Facts) -> str:
    if facts.row.bits_per_weight:
        return number_text(facts.row.bits_per_weight)
    told = row_meaning(facts.row)
    return number_text(told.nominal_bits) if told is not None and told.is_known else _NOT_KNOWN


def _size(facts: Facts) -> str:
    return bytes_text(facts.row.size_bytes) if facts.row.size_bytes else _NOT_KNOWN


def _here(facts: Facts) -> str:
    row = facts.row
    if row.is_broken:
        return _("cannot be used")
    if facts.fit is not None:
        return fit_short(facts.fit)
    return _("unknown") if row.state in ("failed", "read") else _("reading header…")


def _kl(facts: Facts) -> str:
    return number_text(facts.published.kl_mean) if facts.published is not None else _NOT_KNOWN


def _speed(facts: Facts) -> str:
    speed = facts.fit.decode_tokens_per_s if facts.fit is not None and not facts.row.is_broken else None
    return number_text(speed) if speed else _NOT_KNOWN


COLUMNS: Final = (
    HubColumn(
        lambda: _("Quantization"),
        lambda facts: row_name(facts.row),
        lambda: _("How the weights are stored, as the file's name and its header say."),
    ),
    HubColumn(
        lambda: _("in words"),
        _in_words,
        lambda: _("What this quantization does to the answers, as is commonly measured."),
        rank=5,
    ),
    HubColumn(
        lambda: _("bits/weight"),
        _bits,
        lambda: _(
            "Counted from the header: 8 × the bytes of all tensors ÷ the number of weights. In italics: what the name "
            "promises, until the header is read."
        ),
        is_number=True,
        rank=2,
        has_notes=True,
    ),
    HubColumn(
        lambda: _("size"),
        _size,
        lambda: _("What all files of it take, as the hub says."),
        is_number=True,
        rank=1,
    ),
    HubColumn(
        lambda: _("on this machine"),
        _here,
        lambda: _("The largest context there is room for now: computed from the header, which is read at the hub."),
        is_number=True,
    ),
    HubColumn(
        lambda: _("KL"),
        _kl,
        lambda: _(
            "Mean KL divergence from the unquantized model, in nats a token: 0 would be the same answers. Published by "
            "others, not measured here."
        ),
        is_number=True,
        rank=4,
    ),
    HubColumn(
        lambda: _("tokens/s"),
        _speed,
        lambda: _("Writing speed, predicted from this machine's memory bandwidth."),
        is_number=True,
        rank=3,
    ),
    HubColumn(lambda: "", lambda _facts: "", lambda: ""),
)
QUANTIZATION, WORDS, BITS, SIZE, HERE, KL, SPEED, ACTION = range(len(COLUMNS))


def row_group(row: QuantizationRow) -> Group:
    """Return the heading that a row stands under."""
    if row.is_broken:
        return Group.FAULTY
    told = row_meaning(row)
    if told is None or (not told.is_known and not row.bits_per_weight):
        return Group.OTHER
    return Group(told.group)


def figure_tooltip(facts: Facts, column: int) -> str:
    """Return what a figure is, or how it was got; "" where there is nothing to say."""
    row = facts.row
    if column == HERE and facts.fit is not None:
        estimated = "" if row.is_shape_exact else _("Estimated from another file of this model.")
        return f"{fit_sentence(facts.fit)} {estimated}".strip()
    if column == BITS and not row.bits_per_weight:
        return _("What the name promises; the header was not read.")
    if column == BITS and row.fallback:
        words = ngettext(
            "{count} tensor is stored in a larger type, because its rows are no whole blocks of this one.",
            "{count} tensors are stored in larger types, because their rows are no whole blocks of this one.",
            row.fallback,
        )
        return words.format(count=count_text(row.fallback))
    if column == SIZE:
        paths = [one_line(file.path, 160) for file in row.files[:_MOST_PATHS]]
        return "\n".join([*paths, *(["…"] if len(row.files) > _MOST_PATHS else [])])
    if column == SPEED and is_foreign(facts, column):
        return _("Predicted from this machine's memory bandwidth.")
    return ""


def is_foreign(facts: Facts, column: int) -> bool:
    """Return whether a figure was neither counted nor measured here."""
    if column == SPEED:
        return facts.fit is not None and not facts.fit.is_speed_measured and bool(facts.fit.decode_tokens_per_s)
    if column == BITS:
        return not facts.row.bits_per_weight
    return column == KL and facts.published is not None


def colour_role(facts: Facts, column: int) -> str:
    """Return the theme's role in which a cell is written."""
    if facts.row.is_broken:
        return "limit" if column == HERE else "muted"
    if column == HERE:
        is_large = facts.fit is not None and facts.fit.verdict is Verdict.TOO_LARGE
        return "limit" if is_large else "text" if facts.fit is not None else "muted"
    return "muted" if column in (WORDS, KL, SPEED) or is_foreign(facts, column) else "text"
