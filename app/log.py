"""The program's log and the engines' logs: bounded files that never hold a prompt, an answer or a token.

Every record is one line whatever its text holds. Of an exception only its kind and its way through our code are
written, never its text, which may quote what a person wrote; the exception is an error of the system (a file, a
disk), whose text is the system's. Knows no window and no engine.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import logging.handlers
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TextIO

# Trust S-49: five files of 2 MB.
_MAX_FILE_BYTES = 2 * 1024 * 1024
_MAX_FILES = 5
_MAX_RECORD_CHARACTERS = 4_000

# A crash dump is some kilobytes; the file begins anew when it holds a few dozen of them.
_MAX_CRASH_FILE_BYTES = 256 * 1024

_MAX_WORKER_LOGS = 8
_MAX_WORKER_LOG_BYTES = 2 * 1024 * 1024
_WORKER_LOG = re.compile(r"engine-(\d{6,})\.log")

# The longest end of a log that is read for a person.
_TAIL_BYTES = 256 * 1024

# Our own packages; other libraries are heard from WARNING on, since they may log what they are given.
_OWN = ("app", "backends", "ui")

# Control characters, line separators, direction marks and half characters: what could forge a line or drive a terminal.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def neutral(text: str) -> str:
    """Return the text with every character that could forge a line or drive a terminal written as an escape."""
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode("ascii"), text)


class LineFormatter(logging.Formatter):
    """Formats a record as one line, and an exception as indented lines without its text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, shortened and neutral, then the way of its exception."""
        text = neutral(record.getMessage()[:_MAX_RECORD_CHARACTERS])
        line = f"{self.formatTime(record)} {record.levelname} {neutral(record.name)}: {text}"
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return line
        return "\n".join([line, *_exception_lines(error)])


class _QuietHandler(logging.handlers.RotatingFileHandler):
    """A rotating file that loses a record rather than disturb the program when the disk is full or gone."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: the standard answer prints the record's arguments to the terminal."""


class ProgramLog:
    """The log in use, from start_log() to close().

    Attributes:
        _handlers: what was added to the root logger.
        _crash_file: where faulthandler writes, open until close().
    """

    def __init__(self, handlers: list[logging.Handler], crash_file: TextIO | None) -> None:
        self._handlers = handlers
        self._crash_file = crash_file

    def close(self) -> None:
        """Stop logging and close the files."""
        for handler in self._handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()
        if self._crash_file is not None:
            faulthandler.disable()
            self._crash_file.close()


def start_log(folder: Path, name: str = "cutaway") -> ProgramLog:
    """Log to <folder>/<name>.log, crashes to <name>-crash.log, and warnings to the terminal where there is one.

    A folder that cannot be written leaves only the terminal; open_paths() told the person already.

    Args:
        folder: the logs folder.
        name: the window and the command line take different names, so that they never rotate each other's files.
    """
    handlers: list[logging.Handler] = []
    crash_file: TextIO | None = None
    with contextlib.suppress(OSError):
        handler = _QuietHandler(
            folder / f"{name}.log", maxBytes=_MAX_FILE_BYTES, backupCount=_MAX_FILES - 1, encoding="utf-8"
        )
        handlers.append(handler)
        crash_file = _open_crash_file(folder / f"{name}-crash.log")
        faulthandler.enable(crash_file)
    if sys.stderr is not None and sys.stderr.isatty():
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setLevel(logging.WARNING)
        handlers.append(terminal)
    root = logging.getLogger()
    for handler_ in handlers:
        handler_.setFormatter(LineFormatter())
        root.addHandler(handler_)
    root.setLevel(logging.WARNING)
    for own in _OWN:
        logging.getLogger(own).setLevel(logging.INFO)
    return ProgramLog(handlers, crash_file)


def new_worker_log(folder: Path) -> Path:
    """Make the next numbered, empty log file for a worker's stderr; the oldest ones are removed.

    Raises:
        OSError: the folder cannot be written.
    """
    logs = _worker_logs(folder)
    for old in logs[: max(0, len(logs) - _MAX_WORKER_LOGS + 1)]:
        with contextlib.suppress(OSError):  # a running worker's log cannot be removed on Windows
            old.unlink()
    number = _worker_number(logs[-1]) + 1 if logs else 1
    while True:
        path = folder / f"engine-{number:06d}.log"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:  # another start of the program was faster
            number += 1
            continue
        return path


def trim_worker_log(path: Path) -> None:
    """Keep only the end of a log that has grown too long; its worker appends and needs not know."""
    with contextlib.suppress(OSError):
        if path.stat().st_size <= _MAX_WORKER_LOG_BYTES:
            return
        end = _end_of(path)
        os.truncate(path, 0)
        with path.open("ab") as file:
            file.write(end)


def tail(path: Path, lines: int) -> tuple[str, ...]:
    """Return the last lines of a log, neutral; () when there is none."""
    with contextlib.suppress(OSError):
        text = _end_of(path).decode("utf-8", "replace")
        found = [neutral(line.rstrip("\r")[:_MAX_RECORD_CHARACTERS]) for line in text.split("\n")]
        if found and not found[-1]:
            found.pop()
        return tuple(found[-lines:]) if lines > 0 else ()
    return ()


def _exception_lines(error: BaseException) -> list[str]:
    """Return the kinds, causes and frames of an exception, without what it says unless the system said it."""
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    lines: list[str] = []
    for raised in reversed(chain):
        frames = traceback.extract_tb(raised.__traceback__)
        lines.extend(f"    {neutral(f.filename)}:{f.lineno} in {neutral(f.name)}" for f in frames)
        lines.append(f"    {_kind_of(raised)}")
    return lines


def _kind_of(error: BaseException) -> str:
    kind = type(error).__name__
    if not isinstance(error, OSError):
        return kind
    return f"{kind} {error.errno} {neutral(str(error.strerror))} {neutral(str(error.filename or ''))}".rstrip()


def _open_crash_file(path: Path) -> TextIO:
    if path.exists() and path.stat().st_size > _MAX_CRASH_FILE_BYTES:
        return path.open("w", encoding="utf-8")
    return path.open("a", encoding="utf-8")


def _worker_logs(folder: Path) -> list[Path]:
    """Return the workers' logs, oldest first."""
    return sorted((path for path in folder.iterdir() if _WORKER_LOG.fullmatch(path.name)), key=_worker_number)


def _worker_number(path: Path) -> int:
    found = _WORKER_LOG.fullmatch(path.name)
    return int(found.group(1)) if found else 0


def _end_of(path: Path) -> bytes:
    """Return the last bytes of a file, from the start of a line on."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        data = file.read(_TAIL_BYTES)
    if size > _TAIL_BYTES:
        data = data[data.find(b"\n") + 1 :]
    return data
