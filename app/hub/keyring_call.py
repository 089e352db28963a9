"""Calls into the system's keyring with a limit of time: a locked one asks a person, who may not be there.

The call itself cannot be ended: it goes on, on a thread that the end of the program does not wait for. As long as it
does, the keyring is asked nothing more. Knows no keyring.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")

# Long enough to type a password into the keyring's own window, and to see that nobody does.
LIMIT_S = 30.0


class KeyringFailedError(Exception):
    """The system's keyring cannot be used now: there is none, or it is locked, or refused."""


class KeyringSilentError(KeyringFailedError):
    """The system's keyring has not answered in time."""


class KeyringCalls:
    """Makes one call at a time. Any thread may call.

    Args:
        limit_s: how long an answer may take.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._open: _Call[object] | None = None
        self._is_over = False

    def __call__(self, work: Callable[[], _T]) -> _T:
        """Do the work on another thread and return what it does.

        Raises:
            KeyringSilentError: it takes too long, or an earlier call still does.
            KeyringFailedError: the work did.
        """
        with self._lock:
            if self._is_over or (self._open is not None and not self._open.has_ended):
                raise KeyringSilentError("an earlier question is not answered yet")
            call: _Call[_T] = _Call(work)
            self._open = call  # type: ignore[assignment]
            threading.Thread(target=call.run, name="keyring", daemon=True).start()
            call.woken.wait(self._limit_s)
            if not call.has_ended:
                raise KeyringSilentError("no answer in time")
            self._open = None
        return call.result()

    def close(self) -> None:
        """Let whoever waits go at once, and ask nothing any more."""
        self._is_over = True
        call = self._open
        if call is not None:
            call.woken.set()


class _Call(Generic[_T]):
    """One call: its work, and what came of it."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self.woken = threading.Event()
        self.has_ended = False
        self._work = work
        self._found: list[_T] = []
        self._error: KeyringFailedError | None = None

    def run(self) -> None:
        try:
            self._found.append(self._work())
        except KeyringFailedError as error:
            self._error = error
        finally:
            self.has_ended = True
            self.woken.set()

    def result(self) -> _T:
        if not self._found:
            raise self._error or KeyringFailedError("the keyring's library failed")
        return self._found[0]
