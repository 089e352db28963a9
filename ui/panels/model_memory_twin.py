"""The table twin of the memory bars: the same numbers, for the keyboard and a screen reader.

A prediction stands in italics and muted, a measurement upright (design.md, "figures shown"). Knows no model.
"""

from __future__ import annotations

from typing import Any, Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QSizePolicy, QTableView, QWidget

from app.i18n import _
from app.telemetry.export import Table
from ui.models.model_memory_table import OWNER, PREDICTED
from ui.plots.table_twin import TableTwinModel
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex

_ROW_PX: Final = 28
_NO_ROWS: Final = Table("model_memory", "", ())


class MemoryTwinModel(TableTwinModel):
    """A table whose second column is predicted."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_NO_ROWS, parent)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self.table.num_rows:
            self.dataChanged.emit(self.index(0, 0), self.index(self.table.num_rows - 1, len(self.table.columns) - 1))

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a cell; predictions look different."""
        if index.isValid() and index.column() == PREDICTED:
            if role == Qt.ItemDataRole.FontRole:
                font = QFont()
                font.setItalic(True)
                return font
            if role == Qt.ItemDataRole.ForegroundRole:
                return self._theme.color("muted")
        return super().data(index, role)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name, on the side of its cells."""
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation is Qt.Orientation.Horizontal:
            side = Qt.AlignmentFlag.AlignLeft if section == OWNER else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return super().headerData(section, orientation, role)


class MemoryTwin(QTableView):
    """The table.

    Attributes:
        numbers: its model.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.numbers = MemoryTwinModel(theme, self)
        self.setModel(self.numbers)
        self.setProperty("kind", "framed")
        self.setAccessibleName(_("Memory by owner"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)  # Tab leaves the table; arrows move in it
        self.setShowGrid(False)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(max(_ROW_PX, self.fontMetrics().height() + 10))
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setSectionsClickable(False)

    def set_table(self, table: Table) -> None:
        """Show these numbers; the chosen row stays chosen."""
        row = self.currentIndex().row()
        self.numbers.set_table(table)
        if 0 <= row < table.num_rows:
            self.selectRow(row)
        self.updateGeometry()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.numbers.set_theme(theme)

    def sizeHint(self) -> QSize:
        """Return the height of all rows."""
        rows = self.numbers.rowCount() * self.verticalHeader().defaultSectionSize()
        return QSize(240, self.horizontalHeader().sizeHint().height() + rows + 2 * self.frameWidth())

    def minimumSizeHint(self) -> QSize:
        """Return the same: no row is cut."""
        return QSize(0, self.sizeHint().height())
