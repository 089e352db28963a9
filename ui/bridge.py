"""The one thread hop: what engine and session threads report is re-emitted on the GUI thread.

A signal emitted from another thread is queued by Qt and delivered where this object lives. Text of a running answer is
collected here and handed on once a frame, so that painting costs the same at any token rate. Readings and steps are not
forwarded at all: the telemetry store has them, and plots look there when they redraw.
"""

from __future__ import annotations

import threading
import time

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.chat.session_events import SessionEvent, TextAppended
from app.engines.supervisor import EngineEvent
from backends import protocol

FRAME_MS = 33  # thirty insertions a second read as a steady stream; more only costs time

_NOT_FORWARDED = (protocol.StepDone, protocol.TokensCounted)


class Bridge(QObject):
    """Hands events of other threads to the GUI thread, in order.

    Signals:
        engine_event(object): an EngineEvent that is no step and no reading.
        session_event(object): a SessionEvent other than TextAppended.
        text_appended(object, object, int, str): chat id, message id, how many characters the answer had before, and
            the text of one frame.
        telemetry_moved(): the telemetry store has a new reading; ten times a second while an engine lives.
    """

    engine_event = Signal(object)
    session_event = Signal(object)
    text_appended = Signal(object, object, int, str)
    telemetry_moved = Signal()
    _text_arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: dict[tuple[int, int], tuple[int, list[str]]] = {}
        self._is_closed = False
        self._flushed_s = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.flush)
        self._text_arrived.connect(self._on_text_arrived, Qt.ConnectionType.QueuedConnection)

    def on_engine_event(self, event: EngineEvent) -> None:
        """Take an event of the engine, on any thread."""
        if self._is_closed:
            return
        if isinstance(event, protocol.MemoryRead):
            self.telemetry_moved.emit()
        elif not isinstance(event, _NOT_FORWARDED):
            self.engine_event.emit(event)

    def on_session_event(self, event: SessionEvent) -> None:
        """Take an event of a session, on any thread."""
        if self._is_closed:
            return
        if not isinstance(event, TextAppended):
            self.session_event.emit(event)
            return
        with self._lock:
            is_first = not self._pending
            self._pending.setdefault((event.chat_id, event.message_id), (event.start, []))[1].append(event.text)
        if is_first:
            self._text_arrived.emit()

    def close(self) -> None:
        """Forward nothing any more; the window is going."""
        self._is_closed = True
        self._timer.stop()

    @Slot()
    def flush(self) -> None:
        """Hand on the text that has arrived since the last frame."""
        self._flushed_s = time.monotonic()
        with self._lock:
            pending, self._pending = self._pending, {}
        for (chat_id, message_id), (start, texts) in pending.items():
            self.text_appended.emit(chat_id, message_id, start, "".join(texts))

    @Slot()
    def _on_text_arrived(self) -> None:
        """Hand the text on at once, or with the next frame when the last one is younger than a frame."""
        if self._is_closed or self._timer.isActive():
            return
        wait_ms = FRAME_MS - (time.monotonic() - self._flushed_s) * 1000
        if wait_ms <= 0:
            self.flush()
        else:
            self._timer.start(round(wait_ms))
