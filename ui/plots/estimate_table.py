"""Estimate beside measurement: what was predicted for each owner of memory, what it took, and how far off that was.

A prediction is not ours to call true: it stands in italics and muted, the measurement upright (design.md, "figures
shown"). Knows not where either number comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app import units
from app.i18n import _
from ui.theme import Theme

_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()
_OWNER, _PREDICTED, _MEASURED, _OFF = range(4)


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One owner of memory.

    Attributes:
        owner: its name for people, such as "weights".
        predicted_bytes: what was expected; None when nothing was.
        measured_bytes: what it took; None before a load.
        source: how the prediction was made, in words.
    """

    owner: str
    predicted_bytes: float | None
    measured_bytes: float | None = None
    source: str = ""

    @property
    def off(self) -> float | None:
        """How far the measurement lies above the prediction, as a part of it."""
        if not self.predicted_bytes or self.measured_bytes is None:
            return None
        return self.measured_bytes / self.predicted_bytes - 1


class EstimateModel(QAbstractTableModel):
    """Owner, predicted, measured, off.

    Attributes:
        rows: what is shown.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[EstimateRow] = []
        self._theme: Theme | None = None

    def set_rows(self, rows: Sequence[EstimateRow]) -> None:
        """Show these rows."""
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, _OFF))

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        """Return the number of owners."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: _Index = _NO_INDEX) -> int:
        """Return the four columns."""
        return 0 if parent.isValid() else 4

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell's words, side, type, colour or tooltip."""
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], index.column()
        is_predicted = column == _PREDICTED
        if role == Qt.ItemDataRole.DisplayRole:
            return _cell_text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.FontRole and is_predicted:
            font = QFont()
            font.setItalic(True)
            return font
        if role == Qt.ItemDataRole.ForegroundRole and is_predicted and self._theme is not None:
            return self._theme.color("muted")
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.source if is_predicted else _("Measured here.") if column == _MEASURED else None
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return (_("Owner"), _("predicted"), _("measured"), _("off"))[section]
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None


class EstimateTable(QTableView):
    """The table of estimates.

    Attributes:
        estimates: its model.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.estimates = EstimateModel()
        self.estimates.setParent(self)
        self.setModel(self.estimates)
        self.setAccessibleName(_("Estimate beside measurement"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(32)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.estimates.set_theme(theme)


def _cell_text(row: EstimateRow, column: int) -> str:
    if column == _OWNER:
        return row.owner
    if column == _PREDICTED:
        return units.bytes_text(row.predicted_bytes)
    if column == _MEASURED:
        return units.bytes_text(row.measured_bytes) if row.measured_bytes is not None else "–"
    return units.percent_text(row.off, signed=True) if row.off is not None else "–"


def _alignment(column: int) -> int:
    side = Qt.AlignmentFlag.AlignLeft if column == _OWNER else Qt.AlignmentFlag.AlignRight
    return int(side | Qt.AlignmentFlag.AlignVCenter)
