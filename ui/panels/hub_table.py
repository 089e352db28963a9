"""The table of a repo's quantizations: Enter downloads or uses, Space pauses and goes on, Delete cancels.

Knows no hub and no queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from ui.models.download_words import is_pausable, is_resumable
from ui.models.hub_columns import KL
from ui.models.hub_table_model import HubTableModel
from ui.panels.grouped_table import GroupedTable
from ui.panels.hub_table_delegate import HubTableDelegate
from ui.theme import Theme

# Below this width the last column holds the percentage and the button only.
_COMPACT_PX: Final = 760
_TICK_MS: Final = 1000


class HubTable(GroupedTable):
    """The view of a HubTableModel.

    Attributes:
        quantizations: its model.
        _chosen: the key that stays chosen when the rows are placed anew.

    Signals:
        pause_requested(key): Space was pressed on a row whose download can be paused or can go on.
    """

    pause_requested = Signal(object)

    def __init__(self, theme: Theme, now: Callable[[], float] = time.time, parent: QWidget | None = None) -> None:
        quantizations = HubTableModel(theme, now)
        delegate = HubTableDelegate(theme)
        super().__init__(quantizations, delegate, parent)
        self.quantizations = quantizations
        self._hub_delegate = delegate
        self._chosen = ""
        self._tick = QTimer(self)
        self._tick.setInterval(_TICK_MS)
        self._tick.timeout.connect(quantizations.tell_times)
        self.entry_chosen.connect(self._on_entry_chosen)
        quantizations.modelReset.connect(self._on_placed)

    def choose(self, key: str) -> bool:
        """Choose a row without a signal; returns whether it is there."""
        is_there = super().choose(key)
        self._chosen = key if is_there else self._chosen
        return is_there

    def has_words(self, column: int) -> bool:
        """Return whether a column has anything to show: published figures are rare."""
        return column != KL or self.quantizations.has_figures

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pause and go on with Space; everything else is as in every table."""
        download = self.quantizations.download(self.chosen_key)
        is_space = event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.NoModifier
        if is_space and download is not None and (is_pausable(download) or is_resumable(download)):
            self.pause_requested.emit(self.chosen_key)
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show less of a download where there is little room."""
        self._hub_delegate.is_compact = self.viewport().width() < _COMPACT_PX
        super().resizeEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        """Count down where something waits for a time."""
        super().showEvent(event)
        self._tick.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Count nothing that nobody sees."""
        super().hideEvent(event)
        self._tick.stop()

    def _on_entry_chosen(self, key: str) -> None:
        self._chosen = key

    def _on_placed(self) -> None:
        if self._chosen:
            self.choose(self._chosen)
