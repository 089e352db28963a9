"""The comparisons as a list, newest first: the model, when, and how far each is.

Knows no folder: it is given the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QDateTime, QLocale, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.i18n import _
from ui.models.compare_words import state_words
from ui.models.model_choice import one_line
from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE
from ui.widgets.labels import plain_tooltip

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A comparison as the list shows it.

    Attributes:
        comparison_id: the name of its folder.
        title: the model's name.
        created_s: seconds since 1970.
        state: of its result: "planned", "running", "stopped", "done".
        done_runs, all_runs: how many of its runs are whole, and how many there are.
        fault: why it cannot be opened, in words; "" when it can.
    """

    comparison_id: str
    title: str
    created_s: float
    state: str
    done_runs: int
    all_runs: int
    fault: str = ""


class CompareListModel(QAbstractListModel):
    """The rows, newest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ComparisonRow] = []

    def set_rows(self, rows: Sequence[ComparisonRow]) -> None:
        """Show exactly these comparisons."""
        ordered = sorted(rows, key=lambda row: (-row.created_s, row.comparison_id))
        if [row.comparison_id for row in ordered] == [row.comparison_id for row in self._rows]:
            self._rows = ordered
            if ordered:
                self.dataChanged.emit(self.index(0), self.index(len(ordered) - 1))
            return
        self.beginResetModel()
        self._rows = ordered
        self.endResetModel()

    def put(self, row: ComparisonRow) -> None:
        """Add a comparison, or show how far it is now."""
        self.set_rows([row, *(other for other in self._rows if other.comparison_id != row.comparison_id)])

    def row_at(self, row: int) -> ComparisonRow | None:
        """Return what a row shows, or None."""
        return self._rows[row] if 0 <= row < len(self._rows) else None

    def row_of(self, comparison_id: str) -> int | None:
        """Return the row of a comparison, or None."""
        return next((row for row, told in enumerate(self._rows) if told.comparison_id == comparison_id), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of comparisons."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a row shows for a role."""
        row = self.row_at(index.row()) if index.isValid() else None
        if row is None:
            return None
        title, second = one_line(row.title), _second_line(row)
        when = date_text(row.created_s)
        if role == Qt.ItemDataRole.DisplayRole:
            return title
        if role == SECOND_ROLE:
            return second
        if role == NAME_MARK_ROLE:
            return when
        if role == FAULTY_ROLE:
            return bool(row.fault)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(filter(None, (title, when, second)))
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(f"{title}\n{_long_date(row.created_s)}\n{second}")
        return None


def date_text(seconds: float) -> str:
    """Return when something was, in short: the time of today, else the day."""
    then, now = QDateTime.fromSecsSinceEpoch(int(seconds)), QDateTime.currentDateTime()
    if then.date() == now.date():
        return QLocale().toString(then.time(), QLocale.FormatType.ShortFormat)
    return QLocale().toString(then.date(), "d MMM" if then.date().year() == now.date().year() else "MMM yyyy")


def _long_date(seconds: float) -> str:
    return QLocale().toString(QDateTime.fromSecsSinceEpoch(int(seconds)), QLocale.FormatType.ShortFormat)


def _second_line(row: ComparisonRow) -> str:
    if row.fault:
        return _("cannot be opened: {fault}").format(fault=one_line(row.fault))
    return state_words(row.state, row.done_runs, row.all_runs)
