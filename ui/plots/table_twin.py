"""The same numbers as a plot, as a table that the keyboard and a screen reader reach, with CSV export.

Knows no series: it shows the table it is given, and a new one when the person asks for the newest numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app import units
from app.i18n import _, ngettext
from app.telemetry.export import Table, write_csv
from ui.widgets.labels import MutedLabel

_Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class TableTwinModel(QAbstractTableModel):
    """A table of telemetry for a view; cells are worded when they are shown.

    Attributes:
        table: what is shown.
    """

    def __init__(self, table: Table, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = table

    def set_table(self, table: Table) -> None:
        """Show another table."""
        self.beginResetModel()
        self.table = table
        self.endResetModel()

    def rowCount(self, parent: _Index = _NO_INDEX) -> int:
        """Return the number of readings."""
        return 0 if parent.isValid() else self.table.num_rows

    def columnCount(self, parent: _Index = _NO_INDEX) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self.table.columns)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a value with its unit; numbers stand at the right."""
        if not index.isValid():
            return None
        column = self.table.columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.cell_text(index.row())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            is_text = isinstance(column.values, tuple)
            side = Qt.AlignmentFlag.AlignLeft if is_text else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name, or a row's number."""
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        return self.table.columns[section].title if orientation is Qt.Orientation.Horizontal else str(section + 1)


class TableTwinDialog(QDialog):
    """A window with the numbers of one plot; it stays open beside the plot.

    Attributes:
        model: the numbers shown.
        view: the table.
    """

    def __init__(self, read: Callable[[], Table], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._read = read
        table = read()
        self.model = TableTwinModel(table)
        self.model.setParent(self)
        self.setWindowTitle(table.title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._status = MutedLabel()
        self._build(table)
        self._tell_rows()

    def export_to(self, path: Path) -> None:
        """Write what is shown to a CSV file and say whether it worked."""
        self._status.setText(export_table(self.model.table, path))

    def status_text(self) -> str:
        """Return the sentence under the table."""
        return self._status.text()

    def _build(self, table: Table) -> None:
        self.view = QTableView(self)
        self.view.setModel(self.model)
        self.view.setAccessibleName(table.title)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setTabKeyNavigation(False)  # Tab leaves the table; arrows move in it
        self.view.setShowGrid(False)
        self.view.verticalHeader().hide()
        header = self.view.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setResizeContentsPrecision(50)  # a day's table must open at once
        newest = QPushButton(_("Newest numbers"), self)
        newest.clicked.connect(self._on_newest)
        export = QPushButton(_("Export CSV…"), self)
        export.clicked.connect(self._on_export)
        close = QPushButton(_("Close"), self)
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self._status, 1)
        for button in (newest, export, close):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(12)
        column.addWidget(self.view, 1)
        column.addLayout(buttons)
        self.resize(860, 520)
        self.view.setFocus()

    def _on_newest(self) -> None:
        self.model.set_table(self._read())
        if self.model.table.is_over_time:
            self.view.scrollToBottom()
        self._tell_rows()

    def _on_export(self) -> None:
        ask_for_file(self, self.model.table, self.export_to)

    def _tell_rows(self) -> None:
        rows = self.model.table.num_rows
        if self.model.table.is_over_time:
            words = ngettext("{count} reading", "{count} readings", rows)
        else:
            words = ngettext("{count} row", "{count} rows", rows)
        self._status.setText(words.format(count=units.count_text(rows)))


def ask_for_file(parent: QWidget, table: Table, write: Callable[[Path], None]) -> QFileDialog:
    """Ask where a table's CSV file goes, without stopping the window; `write` gets the path."""
    dialog = QFileDialog(parent, _("Export CSV"), f"{table.name}.csv", _("CSV files (*.csv)"))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix("csv")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(name: str) -> None:
        write(Path(name))

    dialog.fileSelected.connect(on_selected)
    dialog.open()
    return dialog


def export_table(table: Table, path: Path) -> str:
    """Write a table to a CSV file; return a sentence that says whether it worked."""
    try:
        write_csv(table, path)
    except OSError as error:
        reason = error.strerror or str(error)
        return _("The file was not written: {reason}. Choose another folder.").format(reason=reason)
    return _("Saved as {name}.").format(name=path.name)
