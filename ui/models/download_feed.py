"""Downloads as the screen is told of them: whatever their speed, at most four times a second, and only what changed.

The queue tells from its own threads; what it told is kept here and handed over on the GUI thread. Knows no widget.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.downloads.types import Download

_INTERVAL_MS: Final = 250


class DownloadFeed(QObject):
    """Gathers changes and tells them together.

    Attributes:
        _waiting: what changed since the last time, by id; the newest counts. Guarded by _lock.
        _is_woken: whether the GUI thread was told that something waits. Guarded by _lock.

    Signals:
        changed(list of Download): these are different now; on the GUI thread.
        _woken(): from another thread: something waits.
    """

    changed = Signal(object)
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._waiting: dict[str, Download] = {}
        self._is_woken = False
        self._is_closed = False
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)

    def tell(self, download: Download) -> None:
        """Take a change; any thread may call, as often as it likes."""
        with self._lock:
            if self._is_closed:
                return
            self._waiting[download.download_id] = download
            if self._is_woken:
                return
            self._is_woken = True
        self._woken.emit()

    def close(self) -> None:
        """Tell nothing any more."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
        self._timer.stop()

    @Slot()
    def _on_woken(self) -> None:
        """Tell the first change at once, and the next ones when the timer says so."""
        if not self._timer.isActive():
            self._hand_over()
            self._timer.start()

    @Slot()
    def _on_timeout(self) -> None:
        if not self._hand_over():
            self._timer.stop()
            with self._lock:
                self._is_woken = bool(self._waiting)
            if self._is_woken:  # told between the two
                self._timer.start()

    def _hand_over(self) -> bool:
        with self._lock:
            told: Sequence[Download] = list(self._waiting.values())
            self._waiting.clear()
        if told:
            self.changed.emit(told)
        return bool(told)
