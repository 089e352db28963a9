"""Nothing is left behind: the threads, child processes, timers and windows that a test started and did not end.

Each watcher is made before a test and asked afterwards; it answers with a line for each thing left, with the place
that started it where that is known. Qt is imported only by QtWatch.
"""

from __future__ import annotations

import gc
import subprocess
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

# How long the end of a test's things may take: a thread that was told to stop needs a moment to be seen dead.
GRACE_S = 2.0
# Their modules start threads and processes for others; the line that matters is the caller's.
_MIDDLEMEN = (threading.__file__, subprocess.__file__, __file__)
# Python's own helper process; it lives as long as the interpreter.
_HARMLESS_PROCESS = "multiprocessing.resource_tracker"
# Qt's hidden helpers, windows only in name.
_HARMLESS_WINDOWS = {"QTipLabel", "QDesktopWidget"}


def starting_line() -> str:
    """Return `file:line` of the code outside the standard library's middlemen that is calling us."""
    for frame in reversed(traceback.extract_stack()):
        if frame.filename not in _MIDDLEMEN and "concurrent/futures" not in frame.filename:
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "unknown"


def wait_until(is_done: Callable[[], bool], grace_s: float = GRACE_S) -> bool:
    """Wait for a condition, at most the grace time; returns whether it holds."""
    deadline = time.monotonic() + grace_s
    while not is_done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


class ThreadWatch:
    """Remembers the threads of before and where later ones were started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._before = set(threading.enumerate())
        self._lines: weakref.WeakKeyDictionary[threading.Thread, str] = weakref.WeakKeyDictionary()
        start = threading.Thread.start

        def record_and_start(thread: threading.Thread) -> None:
            self._lines[thread] = starting_line()
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", record_and_start)

    def left(self, grace_s: float = GRACE_S) -> list[str]:
        """Return a line for each thread that still runs."""
        wait_until(lambda: not self._new(), grace_s)
        return [f"thread {t.name!r}, started at {self._lines.get(t, 'unknown')}" for t in self._new()]

    def _new(self) -> list[threading.Thread]:
        # A dummy stands for a thread that Python did not start, such as one of Qt's pool: QtWatch looks at those.
        found = set(threading.enumerate()) - self._before
        return [thread for thread in found if not isinstance(thread, threading._DummyThread)]


class ProcessWatch:
    """Remembers the child processes of before and where later ones were started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._before = _children()
        self._lines: dict[int, str] = {}
        start = subprocess.Popen.__init__

        def record_and_start(process: subprocess.Popen[Any], *args: Any, **kwargs: Any) -> None:
            start(process, *args, **kwargs)
            self._lines[process.pid] = starting_line()

        monkeypatch.setattr(subprocess.Popen, "__init__", record_and_start)

    def left(self, grace_s: float = GRACE_S) -> list[str]:
        """Return a line for each child that still runs, or ended and was never waited for; ends those that run."""
        wait_until(lambda: not self._new(), grace_s)
        left = self._new()
        lines = [self._describe(process) for process in left]
        for process in left:
            process.kill()  # the next test must not suffer from it
        return lines

    def _describe(self, process: psutil.Process) -> str:
        words = " ".join(_command_line(process)) or process.name()
        state = " (ended, never waited for)" if process.status() == psutil.STATUS_ZOMBIE else ""
        return f"process {process.pid}{state}: {words[:200]}, started at {self._lines.get(process.pid, 'unknown')}"

    def _new(self) -> list[psutil.Process]:
        found = _children() - self._before
        return [process for process in found if not _is_harmless(process)]


def _children() -> set[psutil.Process]:
    """Return the processes below this one, ended ones that nobody waited for too.

    Nearly every test has none: Linux tells that in microseconds, where reading the whole process table takes
    milliseconds, twice a test.
    """
    try:
        if not any(file.read_text() for file in Path("/proc/self/task").glob("*/children")):
            return set()
    except OSError:  # a thread ended while it was read, or this kernel has no such file
        pass
    return set(psutil.Process().children(recursive=True))


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # a zombie has none
        return []


def _is_harmless(process: psutil.Process) -> bool:
    return not process.is_running() or any(_HARMLESS_PROCESS in word for word in _command_line(process))


class QtWatch:
    """Remembers Qt's windows of before and the timers started since.

    Timers that C++ starts, and QTimer.singleShot's, are not seen.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from PySide6 import QtCore, QtWidgets  # only tests of the window may load Qt

        self._core, self._widgets = QtCore, QtWidgets
        self._before = set(self._window_keys())
        self._timers: list[tuple[weakref.ref[Any], str]] = []
        start = QtCore.QTimer.start

        def record_and_start(timer: Any, *args: Any) -> None:
            self._timers.append((weakref.ref(timer), starting_line()))
            start(timer, *args)

        monkeypatch.setattr(QtCore.QTimer, "start", record_and_start)

    def left(self) -> list[str]:
        """Return a line for each window, running timer and busy pool thread left."""
        self._settle()
        if self._new_windows() or self._running_timers():
            gc.collect()  # a cycle that waits for the collector is no leak
            self._settle()
        lines = [f"window {words}" for words in self._new_windows().values()]
        lines += [f"running timer, started at {line}" for line in self._running_timers()]
        if not self._core.QThreadPool.globalInstance().waitForDone(int(GRACE_S * 1000)):
            lines.append("work in Qt's thread pool")
        return lines

    def _settle(self) -> None:
        if self._widgets.QApplication.instance() is not None:
            self._core.QCoreApplication.sendPostedEvents(None, self._core.QEvent.Type.DeferredDelete.value)

    def _window_keys(self) -> dict[int, str]:
        """Return the parentless windows: the address of the C++ object, since wrappers come and go, and its words."""
        from shiboken6 import Shiboken

        if self._widgets.QApplication.instance() is None:
            return {}
        return {
            Shiboken.getCppPointer(widget)[0]: f"{type(widget).__name__} {widget.objectName()!r}"
            for widget in self._widgets.QApplication.topLevelWidgets()
            if widget.parent() is None and widget.metaObject().className() not in _HARMLESS_WINDOWS
        }

    def _new_windows(self) -> dict[int, str]:
        return {key: words for key, words in self._window_keys().items() if key not in self._before}

    def _running_timers(self) -> list[str]:
        from shiboken6 import Shiboken

        alive = [(reference(), line) for reference, line in self._timers]
        return [line for timer, line in alive if timer is not None and Shiboken.isValid(timer) and timer.isActive()]
