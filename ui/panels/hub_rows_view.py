"""The list of what a hub has, by mouse and keys: Enter goes on from a row to its table, the last row asks for more.

Knows no hub.
"""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

from ui.models.hub_list_model import MORE, HubListModel
from ui.panels.list_row_delegate import ListRowDelegate
from ui.theme import Theme
from ui.widgets.list_selection import select_row


class HubRowsView(QListView):
    """The view of a HubListModel.

    Attributes:
        rows: its model.
        _chosen: the repo that is open, marked whenever the list has it.
        _is_syncing: the selection is being set by us and is no choice of a person.

    Signals:
        repo_chosen(repo): a person chose a row; not sent by choose().
        entered(): a person wants to go on from the list to the table.
        more_requested(): a person wants more rows.
    """

    repo_chosen = Signal(str)
    entered = Signal()
    more_requested = Signal()

    def __init__(self, spoken: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = HubListModel(self)
        self._delegate = ListRowDelegate(theme, self)
        self._chosen = ""
        self._is_syncing = False
        self.setModel(self.rows)
        self.setItemDelegate(self._delegate)
        self.setAccessibleName(spoken)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setMouseTracking(True)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self.clicked.connect(self._on_clicked)
        self.rows.modelReset.connect(self.sync)

    def choose(self, repo: str) -> None:
        """Mark a repo without a signal; "" for none."""
        self._chosen = repo
        self.sync()

    def sync(self) -> None:
        """Select the row of the chosen repo where the list has it, and nothing else."""
        self._is_syncing = True
        select_row(self, self.rows.row_of(self._chosen) if self._chosen else None)
        self._is_syncing = False

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._delegate.theme = theme
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose with Enter, and go on from what is chosen."""
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
            return
        key = self.rows.key_at(self.currentIndex().row())
        if key == MORE:
            self.more_requested.emit()
        elif key and key == self._chosen:
            self.entered.emit()
        elif key:
            self.choose(key)
            self.repo_chosen.emit(key)

    def _on_selection_changed(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        indexes = self.selectionModel().selectedIndexes()
        if self._is_syncing or not indexes:
            return
        key = self.rows.key_at(indexes[0].row())
        if key not in ("", MORE, self._chosen):
            self._chosen = key
            self.repo_chosen.emit(key)

    def _on_clicked(self, index: QModelIndex) -> None:
        if self.rows.key_at(index.row()) == MORE:
            self.more_requested.emit()
