"""Background work: the one way to do something slow without stopping the window.

Give the work, what to do with its result and what to do with its error; both come back on the GUI thread. Knows
nothing of what the work is.

    right:  tasks.run(lambda: library.scan(folder), self._on_scanned)
    wrong:  a thread, a lambda that touches a widget from the work, a result that is waited for
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QRunnable, Qt, QThreadPool, Signal
from shiboken6 import Shiboken

from app.errors import AppError, Words, words_for_exception

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

# How long the end of the program waits for work in progress.
_CLOSE_S = 10.0

OnError = Callable[[Words], None]


class Tasks(QObject):
    """Runs work on a thread pool and delivers what comes of it on the GUI thread.

    A callback that is a method of a widget is dropped when the widget is gone by then.

    Attributes:
        _pool: the threads, of this object alone.
        _on_error: is told of errors that the caller does not handle.
        _pending: how much work was started and not delivered yet; GUI thread only.

    Signals:
        _delivered(deliver): work has ended; deliver() calls back.
    """

    _delivered = Signal(object)

    def __init__(self, on_error: OnError | None = None, parent: QObject | None = None, threads: int = 0) -> None:
        """Make a pool.

        Args:
            on_error: is told of errors that the caller does not handle.
            parent: owns it.
            threads: how much work goes on at a time; 0 for one for each processor. Work that waits rather than
                computes may have more.
        """
        super().__init__(parent)
        self._pool = QThreadPool(self)
        if threads:
            self._pool.setMaxThreadCount(threads)
        self._on_error = on_error
        self._pending = 0
        # queued: the worker's thread emits, the GUI thread receives, even where Qt cannot tell the two apart
        self._delivered.connect(self._on_delivered, Qt.ConnectionType.QueuedConnection)

    def run(
        self, work: Callable[[], _T], on_done: Callable[[_T], None] | None = None, on_error: OnError | None = None
    ) -> None:
        """Do the work on another thread, then call back on this one.

        Args:
            work: touches no widget.
            on_done: given the result.
            on_error: given the words for whatever the work raised; None leaves them to the program's own handler.
        """
        self._pending += 1
        self._start(lambda: self._delivered.emit(self._attempt(work, on_done, on_error)))

    def wait_all(self, timeout_s: float = _CLOSE_S) -> bool:
        """Wait for all work and deliver its results; returns whether all of it ended in time. For the end only."""
        deadline = time.monotonic() + timeout_s
        while self._pending:
            is_done = self._pool.waitForDone(max(0, int((deadline - time.monotonic()) * 1000)))
            QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall.value)
            if not is_done:
                break
        return self._pending == 0

    def _start(self, work: Callable[[], None]) -> None:
        self._pool.start(_Runnable(work))

    def _attempt(
        self, work: Callable[[], _T], on_done: Callable[[_T], None] | None, on_error: OnError | None
    ) -> Callable[[], None]:
        """Do the work and return what is to be called on the GUI thread. One of the program's three walls."""
        try:
            result = work()
        except AppError as error:  # foreseen, and nobody's mistake
            _log.info("background work was refused: %s", type(error).__name__)
            return self._calling(on_error or self._on_error, error.words)
        except Exception as error:  # noqa: BLE001 - whatever it is, the window lives on and the person is told
            _log.error("background work failed", exc_info=error)
            return self._calling(on_error or self._on_error, words_for_exception(error))
        return self._calling(on_done, result)

    def _calling(self, callback: Callable[[_T], None] | None, value: _T) -> Callable[[], None]:
        def deliver() -> None:
            if callback is not None and _is_alive(callback):
                callback(value)

        return deliver

    def _on_delivered(self, deliver: Callable[[], None]) -> None:
        self._pending -= 1
        deliver()


class SynchronousTasks(Tasks):
    """The same for tests: the work and its callback have run when run() returns."""

    def _start(self, work: Callable[[], None]) -> None:
        work()
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall.value)


class _Runnable(QRunnable):
    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._work = work

    def run(self) -> None:
        """Run the work on the pool's thread."""
        self._work()


def _is_alive(callback: Callable[..., None]) -> bool:
    """Return whether a method's object still exists in C++; anything that is no method of a QObject does."""
    owner = getattr(callback, "__self__", None)
    return not isinstance(owner, QObject) or Shiboken.isValid(owner)
