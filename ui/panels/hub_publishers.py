"""The line under a repo's table, and the other publishers of the same model side by side when a person asks for them.

Knows no hub: every wish is a signal.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSizePolicy,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.hub.types import Publisher, RepoDetail
from app.i18n import _
from ui.models.hub_publishers_model import HubPublishersModel
from ui.models.hub_words import publisher_line
from ui.widgets.labels import ElidedLabel

_ROW_PX: Final = 30
_MOST_ROWS_SHOWN: Final = 8


class HubPublishers(QWidget):
    """Who published what is shown, and who else did.

    Attributes:
        button: asks for the others, and hides them again.
        table: the others.

    Signals:
        publishers_requested(): a person wants to see who else offers this model.
        repo_chosen(repo): a person wants another publisher's files.
    """

    publishers_requested = Signal()
    repo_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._detail: RepoDetail | None = None
        self._line = ElidedLabel()
        self._words = ElidedLabel()
        self.button = QPushButton(_("Other publishers"))
        self.publishers = HubPublishersModel(self)
        self.table = _PublisherTable()
        self._build()
        self.button.toggled.connect(self._on_toggled)
        self.table.activated.connect(self._on_activated)

    def set_detail(self, detail: RepoDetail, now: datetime.datetime) -> None:
        """Show who published this; the others are hidden where it is another model."""
        before, self._detail = self._detail, detail
        self._line.setText(publisher_line(detail, None, now))
        if before is None or before.summary.repo != detail.summary.repo:
            self.button.setChecked(False)

    def show_looking(self) -> None:
        """Say that the others are being asked for."""
        self._words.setText(_("Asking who else offers this model…"))
        self._words.setVisible(self.button.isChecked())
        self.table.hide()

    def show_words(self, words: str) -> None:
        """Say why there are none."""
        self._words.setText(words)
        self._words.setVisible(self.button.isChecked())
        self.table.hide()

    def set_publishers(self, publishers: Sequence[Publisher], now: datetime.datetime) -> None:
        """Show the publishers, this one among them."""
        if not self.button.isChecked() or self._detail is None:
            return
        repo = self._detail.summary.repo
        if not any(one.repo != repo for one in publishers):
            self.show_words(_("Nobody else is known to offer this model."))
            return
        self._words.hide()
        self.publishers.set_publishers(publishers, repo, now)
        self.table.show_rows()

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.button.setCheckable(True)
        self.button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._words.hide()
        self.table.setModel(self.publishers)
        self.table.hide()
        line = QHBoxLayout()
        line.setSpacing(12)
        line.addWidget(self._line, 1)
        line.addWidget(self.button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(line)
        column.addWidget(self._words)
        column.addWidget(self.table)

    def _on_toggled(self, is_open: bool) -> None:
        if is_open:
            self.publishers_requested.emit()
        else:
            self._words.hide()
            self.table.hide()

    def _on_activated(self, index: QModelIndex) -> None:
        repo = self.publishers.repo_at(index.row())
        if repo and self._detail is not None and repo != self._detail.summary.repo:
            self.repo_chosen.emit(repo)


class _PublisherTable(QTableView):
    """The publishers; Enter or a double click opens one, Tab leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "framed")
        self.setAccessibleName(_("Publishers of this model"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(max(_ROW_PX, self.fontMetrics().height() + 12))
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setFixedHeight(max(_ROW_PX, header.fontMetrics().height() + 14))

    def show_rows(self) -> None:
        """Take the height of the rows, up to a bound, and let the last column take what is left."""
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(self.model().columnCount() - 1, QHeaderView.ResizeMode.Stretch)
        rows = min(self.model().rowCount(), _MOST_ROWS_SHOWN)
        as_needed, never = Qt.ScrollBarPolicy.ScrollBarAsNeeded, Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(as_needed if self.model().rowCount() > rows else never)
        height = header.height() + rows * self.verticalHeader().defaultSectionSize() + 2 * self.frameWidth() - 1
        self.setFixedHeight(height)
        self.show()
        if self.model().rowCount():
            self.selectRow(0)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open with Enter on every system."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.activated.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)
