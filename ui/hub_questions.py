"""Questions to the hub as a window asks them: on threads that may wait, and only the newest of each kind counts.

Knows neither what is asked nor what is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtCore import QObject, QTimer

from app.errors import Words
from app.hub.hub_errors import HubError, HubErrorKind
from ui.tasks import Tasks

_T = TypeVar("_T")

# So long a person waits without a word.
_SLOW_MS: Final = 4_000
# A search, a repo, its headers and its publishers may all be waiting at once.
_THREADS: Final = 6

Fault = HubError | Words


def fault_words(fault: Fault) -> Words:
    """Return the words for why there is no answer."""
    return fault if isinstance(fault, Words) else fault.words


class Latest:
    """The newest question of one kind: a new one takes back the one before."""

    def __init__(self) -> None:
        self._cancel = threading.Event()

    def begin(self) -> threading.Event:
        """Take back the question before and return what ends the new one."""
        self._cancel.set()
        self._cancel = threading.Event()
        return self._cancel

    def end(self) -> None:
        """Take back the question."""
        self._cancel.set()


class HubQuestions(QObject):
    """Asks, and delivers answers on the GUI thread.

    Attributes:
        _waiting: the threads, of this object alone: no other background work waits behind the network.
    """

    def __init__(self, parent: QObject | None = None, waiting: Tasks | None = None) -> None:
        super().__init__(parent)
        self._waiting = waiting or Tasks(None, self, _THREADS)

    def ask(
        self,
        question: threading.Event,
        work: Callable[[], _T],
        on_done: Callable[[_T], None],
        on_fault: Callable[[Fault], None],
        on_slow: Callable[[], None] | None = None,
    ) -> None:
        """Ask; what was taken back meanwhile is dropped.

        Args:
            question: ends it.
            work: asks; touches no widget.
            on_done: given the answer.
            on_fault: given why there is none.
            on_slow: called when no answer has come for a while.
        """
        timer = self._started_timer(question, on_slow)

        def attempt() -> _T | HubError:
            try:
                return work()
            except HubError as error:
                return error

        def take(result: _T | HubError) -> None:
            _stop(timer)
            is_over = isinstance(result, HubError) and result.kind is HubErrorKind.CANCELLED
            if question.is_set() or is_over:
                return
            if isinstance(result, HubError):
                on_fault(result)
            else:
                on_done(result)

        def fail(words: Words) -> None:
            _stop(timer)
            if not question.is_set():
                on_fault(words)

        self._waiting.run(attempt, take, fail)

    def wait_all(self) -> None:
        """Wait for what still runs; for the end only."""
        self._waiting.wait_all()

    def _started_timer(self, question: threading.Event, on_slow: Callable[[], None] | None) -> QTimer | None:
        if on_slow is None:
            return None
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(lambda: None if question.is_set() else on_slow())
        timer.start(_SLOW_MS)
        return timer


def _stop(timer: QTimer | None) -> None:
    if timer is not None:
        timer.stop()
        timer.deleteLater()
