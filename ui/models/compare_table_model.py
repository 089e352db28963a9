"""What a comparison found, a row for each run: how near it is to the reference, how large and how fast.

Knows no folder and no engine: it is given the plan and the result. Everything here was measured, so it stands upright.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QObject, Qt

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, RunResult
from app.i18n import _
from app.units import number_text
from ui.models.compare_words import NOT_KNOWN, kl_interval_text, ratio_text, share_text, size_text
from ui.models.grouped_table_model import (
    ACTION_ROLE,
    IS_RECOMMENDED_ROLE,
    MARK_ROLE,
    NOTE_ROLE,
    GroupedTableModel,
    alignment,
)
from ui.theme import Theme
from ui.widgets.labels import plain_tooltip

_SIGN: Final = "*"


class UseAction(enum.Enum):
    """What the button of a row does."""

    USE = "use"
    NONE = "none"  # the run failed or was not begun, or its file is no model of the library

    def words(self) -> str:
        """Return what stands on the button."""
        return _("Use") if self is UseAction.USE else ""

    @property
    def can_press(self) -> bool:
        """Whether it is a button at all."""
        return self is UseAction.USE


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of the plan and what it came to.

    Attributes:
        spec: of the plan.
        run: None while it was not begun.
        is_reference: whether the others are compared with it.
    """

    spec: RunSpec
    run: RunResult | None
    is_reference: bool


@dataclass(frozen=True, slots=True)
class Column:
    """One column, see grouped_table_model.ColumnFacts."""

    title: Callable[[], str]
    text: Callable[[Measured], str]
    about: Callable[[], str]
    is_number: bool = False
    rank: int = 0
    has_notes: bool = False


def _bits(row: Measured) -> str:
    return number_text(row.spec.bits_per_weight) if row.spec.bits_per_weight > 0 else NOT_KNOWN


def _memory(row: Measured) -> str:
    memory = row.run.memory if row.run is not None else None
    return size_text(memory.total_bytes if memory is not None else None)


def _kl(row: Measured) -> str:
    return kl_interval_text(row.run.quality if row.run is not None else None)


def _same(row: Measured) -> str:
    quality = row.run.quality if row.run is not None else None
    return share_text(quality.same_top if quality is not None else None)


def _speed(row: Measured) -> str:
    speed = row.run.speed if row.run is not None else None
    if row.is_reference and speed is not None:
        return _("1 ×")
    return ratio_text(speed.decode_ratio if speed is not None else None)


def in_words(row: Measured) -> str:
    """Return a run's verdict, or why it has none."""
    if row.run is None:
        return _("not run yet")
    if row.run.failure:
        return _("failed")
    return _("the reference") if row.is_reference else row.run.verdict or NOT_KNOWN


COLUMNS: Final = (
    Column(
        lambda: _("Quantization"),
        lambda row: row.spec.label,
        lambda: _("How the weights are stored; behind the dot, how the KV cache is kept where it is not f16."),
    ),
    Column(
        lambda: _("bits/weight"),
        _bits,
        lambda: _("Counted from the header: 8 × the bytes of all tensors ÷ the number of weights."),
        is_number=True,
        rank=5,
        has_notes=True,
    ),
    Column(
        lambda: _("size"), lambda row: size_text(row.spec.size_bytes), lambda: _("On disk."), is_number=True, rank=1
    ),
    Column(
        lambda: _("memory"),
        _memory,
        lambda: _("Measured in the run's own worker, with the context that the conditions state."),
        is_number=True,
        rank=4,
    ),
    Column(
        lambda: _("KL mean, 95 %"),
        _kl,
        lambda: _(
            "Mean Kullback-Leibler divergence of the reference's next-token distribution to this run's, nats; 0 is no "
            "difference. In brackets a 95 % interval by a bootstrap over windows."
        ),
        is_number=True,
    ),
    Column(
        lambda: _("same token"),
        _same,
        lambda: _("Share of the scored tokens at which this run finds the same next token likeliest."),
        is_number=True,
        rank=3,
    ),
    Column(
        lambda: _("writing speed"),
        _speed,
        lambda: _("How many times as fast as the reference: median of rounds that took turns, with a 95 % interval."),
        is_number=True,
        rank=2,
        has_notes=True,
    ),
    Column(
        lambda: _("in words"),
        in_words,
        lambda: _("By mean KL: below 0.002 indistinguishable, 0.01 near-lossless, 0.05 small, 0.15 noticeable."),
    ),
    Column(lambda: "", lambda _row: "", lambda: ""),
)
QUANTIZATION, BITS, SIZE, MEMORY, KL, SAME, SPEED, WORDS, ACTION = range(len(COLUMNS))


class CompareTableModel(GroupedTableModel):
    """The runs of a comparison, the reference first, then from the largest to the smallest.

    Attributes:
        _measured: by run_id.
        _recommended: the run that is marked; "" for none.
        _usable: run_ids that the library has a model for.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, theme, parent)
        self._measured: dict[str, Measured] = {}
        self._recommended = ""
        self._usable: frozenset[str] = frozenset()

    def set_result(self, plan: ComparisonPlan, result: ComparisonResult) -> None:
        """Show what a comparison found so far."""
        candidates = sorted(plan.candidates, key=lambda run: (-run.bits_per_weight, -run.size_bytes, run.run_id))
        rows = [Measured(plan.reference, result.run(plan.reference.run_id), is_reference=True)]
        rows += [Measured(spec, result.run(spec.run_id), is_reference=False) for spec in candidates]
        keys = [row.spec.run_id for row in rows]
        self._measured = {row.spec.run_id: row for row in rows}
        self._recommended = result.recommended
        if keys == self.keys():
            self._tell_all()
        else:
            self._show_plain_rows(keys)

    def set_usable(self, run_ids: frozenset[str]) -> None:
        """Offer to chat with these runs' models."""
        self._usable = run_ids
        self._tell_all()

    def measured_of(self, run_id: str) -> Measured | None:
        """Return a run and what it came to, or None."""
        return self._measured.get(run_id)

    def action_of_key(self, key: str) -> UseAction:
        """Return what the button of a run does."""
        row = self._measured.get(key)
        is_measured = row is not None and row.run is not None and not row.run.failure
        return UseAction.USE if is_measured and key in self._usable else UseAction.NONE

    def cell_data(self, key: str, column: int, role: int) -> Any:
        """Return what a cell shows for a role."""
        row = self._measured[key]
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[column].text(row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[column])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(_tooltip(row, column)) or None
        if role == Qt.ItemDataRole.ForegroundRole:
            return self.theme.color(_colour_role(row, column))
        if role == MARK_ROLE and column == QUANTIZATION:
            return self._mark(row)
        if role == IS_RECOMMENDED_ROLE:
            return key == self._recommended
        if role == ACTION_ROLE:
            return self.action_of_key(key)
        return _note(row, column) if role == NOTE_ROLE else None

    def _mark(self, row: Measured) -> str:
        if row.spec.run_id == self._recommended:
            return _("recommended")
        return _("reference") if row.is_reference else ""

    def _spoken(self, row: Measured, column: int) -> str:
        text = COLUMNS[column].text(row)
        if column == QUANTIZATION:
            return " ".join(filter(None, (text, self._mark(row))))
        if column == ACTION:
            action = self.action_of_key(row.spec.run_id)
            return f"{action.words()} {row.spec.label}" if action.can_press else ""
        return f"{COLUMNS[column].title()}: {text}"


def _note(row: Measured, column: int) -> str:
    if column == BITS and row.spec.fallback_tensors:
        return _SIGN
    is_noisy = row.run is not None and row.run.speed is not None and row.run.speed.is_noisy
    return _SIGN if column == SPEED and is_noisy else ""


def _tooltip(row: Measured, column: int) -> str:
    if row.run is not None and row.run.failure and column in (QUANTIZATION, WORDS):
        return row.run.failure
    if column == QUANTIZATION:
        return row.spec.note
    if _note(row, column):
        if column == BITS:
            return _("Some tensors are stored in a larger type, because their rows are no whole blocks of this one.")
        return _("* The machine did something else during these rounds.")
    return COLUMNS[column].about()


def _colour_role(row: Measured, column: int) -> str:
    if row.run is not None and row.run.failure and column == WORDS:
        return "limit"
    has_nothing = COLUMNS[column].text(row) == NOT_KNOWN or (column == WORDS and row.run is None)
    return "muted" if has_nothing or (row.is_reference and column == WORDS) else "text"
