"""Looks for models in a child process: starts it, hands on what it finds, ends it.

The one place in the program that starts the scan child. Blocks; call it on a background thread. Knows no library:
what is found goes to a callback.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from app.i18n import _
from app.models.scan_messages import (
    ModelsSeen,
    ScanBatch,
    ScanFinished,
    ScanLimits,
    ScanMessageError,
    ScanRequest,
    ScanRoot,
    ScanSummary,
    from_disk,
    known_on_disk,
    read_told,
    write_message,
)
from app.models.sources import Source

__all__ = ["ScanBatch", "ScanLimits", "ScanSummary", "scan"]

_SCRIPT = Path(__file__).resolve().with_name("scan_child.py")
# All that the child gets of the program's environment: the language, and what Windows cannot do without.
_KEPT_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LC_CTYPE", "LANG", "SYSTEMROOT", "LD_LIBRARY_PATH")
_WATCH_EVERY_S = 0.1
_LEAVE_LIMIT_S = 2.0
# A child that is killed in the middle of a read from a dead drive does not end before the drive answers.
_END_LIMIT_S = 5.0


def scan(
    roots: Iterable[Source],
    known: Mapping[str, str],
    on_found: Callable[[ScanBatch], None],
    cancel: threading.Event | None = None,
    *,
    limits: ScanLimits | None = None,
    language: str = "",
    command: Sequence[str] = (),
) -> ScanSummary:
    """Look through folders for models; return how it went, whatever happens to the child.

    Args:
        roots: see Source; a file that lies in two of them is told once, for the first.
        known: the stamps of models that need not be read again, by path.
        on_found: told what was found, a few models at a time, on the calling thread. What it raises ends the scan.
        cancel: when set, the child is ended and what was told counts.
        limits: of time and number; None for the usual.
        language: of faults and problems; "" for the system's.
        command: what to run in place of the scan child.
    """
    began_s = time.monotonic()
    sources = list(roots)
    cancel = cancel or threading.Event()
    request = ScanRequest(
        roots=tuple(_root_message(source) for source in sources),
        known=known_on_disk(known),
        limits=limits or ScanLimits(),
        language=language,
    )
    run = _Run(sources, on_found)
    fault = ""
    if not cancel.is_set():  # a child might be quicker than the look at it
        fault = run.run(list(command) or [sys.executable, "-I", str(_SCRIPT)], request, cancel)
    finished = run.finished
    problems = (*(finished.problems if finished else ()), *([fault] if fault and not cancel.is_set() else []))
    return ScanSummary(
        found_count=run.found_count,
        unchanged_count=run.unchanged_count,
        skipped_count=finished.skipped_count if finished else 0,
        seconds=time.monotonic() - began_s,
        complete_roots=tuple(str(sources[number].folder) for number in run.complete_roots()),
        problems=problems,
        is_cancelled=finished is None and cancel.is_set(),
    )


class _Run:
    """One child from its start to its end.

    Attributes:
        finished: its last word; None when it did not come to that.
        found_count: models handed on.
        unchanged_count: paths handed on.
    """

    def __init__(self, sources: Sequence[Source], on_found: Callable[[ScanBatch], None]) -> None:
        self.finished: ScanFinished | None = None
        self.found_count = 0
        self.unchanged_count = 0
        self._sources = sources
        self._on_found = on_found

    def run(self, command: list[str], request: ScanRequest, cancel: threading.Event) -> str:
        """Start the child, hand on what it tells, and end it; return what went wrong, in words, or ""."""
        try:
            process = _start(command)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return _("The search for models could not be started: {reason}.").format(reason=reason)
        assert process.stdin is not None
        assert process.stdout is not None
        with _ended(process), _killed_on(cancel, process):
            with contextlib.suppress(OSError):  # a child that ended already is told by its end
                write_message(process.stdin, request)
            fault = self._listen(process.stdout)
        if fault or self.finished is not None:
            return fault
        return _("The search for models ended early (exit code {code}). What it found until then is listed.").format(
            code=process.returncode
        )

    def complete_roots(self) -> list[int]:
        """Return the numbers of the roots that were looked through to the end."""
        return (
            [number for number in self.finished.complete_roots if number < len(self._sources)] if self.finished else []
        )

    def _listen(self, stream: IO[bytes]) -> str:
        """Hand on what the child tells until its last word or its end; return what is wrong with its words."""
        while self.finished is None:
            try:
                told = read_told(stream)
            except (OSError, ScanMessageError):
                return _("The search for models said something Cutaway does not understand, and was ended.")
            if told is None:
                break
            if isinstance(told, ScanFinished):
                self.finished = told
            elif 0 <= told.root < len(self._sources):
                self._hand_on(told)
        return ""

    def _hand_on(self, seen: ModelsSeen) -> None:
        self.found_count += len(seen.models)
        self.unchanged_count += len(seen.unchanged)
        self._on_found(
            ScanBatch(
                folder=str(self._sources[seen.root].folder),
                models=tuple(from_disk(found) for found in seen.models),
                unchanged=tuple(os.fsdecode(path) for path in seen.unchanged),
                looked_count=seen.looked_count,
                listed_count=seen.listed_count,
            )
        )


def _root_message(source: Source) -> ScanRoot:
    folder = os.fsencode(os.path.abspath(source.folder))  # noqa: PTH100 - the child has another current folder
    return ScanRoot(folder=folder, origin=source.origin, layout=source.layout, must_exist=source.must_exist)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS | subprocess.CREATE_NO_WINDOW
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a trace of Python's would name a person's files
        cwd=_SCRIPT.parent,  # the program's own may lie on a disk that a person wants to take out
        env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
        creationflags=flags,
    )


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """See to it that nothing is left of the child behind this: it ends when its pipes close, or is killed."""
    try:
        yield
    finally:
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(_LEAVE_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_LIMIT_S)


@contextlib.contextmanager
def _killed_on(cancel: threading.Event, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill the child when the event is set while what is inside runs: that ends every wait for it."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_WATCH_EVERY_S):
            if cancel.is_set():
                process.kill()
                return

    watcher = threading.Thread(target=watch, name="scan-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
