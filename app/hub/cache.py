"""What a hub said, kept on disk so that it is there without a network: bounded, whole or not at all, its age known.

Knows neither HTTP nor what is in an answer. Names of files are hashes of the question; the person's token is part of
that hash and stands nowhere, so that what one token may see is not shown for another. A file that cannot be read is as
good as none, and a folder that cannot be written means that nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from app.atomic_file import replace_file

Value = TypeVar("Value")

LIMIT_BYTES = 50 * 2**20
_MAX_ENTRY_BYTES = 8 * 2**20
_MAX_AGE_S = 60 * 24 * 3600.0
# Part of every hash: raised when the shape of what is kept changes.
_FORMAT = "1"
_ENDING = ".answer"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept(Generic[Value]):
    """An answer from the disk.

    Attributes:
        value: the answer.
        age_s: how old it is; 0 where the clock was set back since.
    """

    value: Value
    age_s: float


class AnswerCache:
    """Answers by their question, in a folder of their own. Any thread may ask.

    Args:
        folder: made when something is first kept.
        limit_bytes: of all files together; the ones not used for longest go first.
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._lock = threading.Lock()

    def get(self, question: Sequence[str], kind: type[Value]) -> Kept[Value] | None:
        """Return what was kept for a question; None where nothing was, or it cannot be read."""
        path = self._path(question)
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_ENTRY_BYTES + 1)
            if len(data) > _MAX_ENTRY_BYTES:
                return None
            saved_s, value = msgspec.msgpack.decode(data, type=tuple[float, kind])  # type: ignore[valid-type]
        except (OSError, msgspec.MsgspecError, RecursionError, ValueError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return Kept(value, max(0.0, self._clock() - saved_s))

    def put(self, question: Sequence[str], value: object) -> None:
        """Keep an answer, as well as the disk allows."""
        data = msgspec.msgpack.encode((self._clock(), value))
        if len(data) > min(_MAX_ENTRY_BYTES, self._limit_bytes):
            return
        try:
            with self._lock:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_file(self._path(question), data)
                self._prune()
        except OSError as error:
            _log.info("An answer of the hub was not kept: %s", type(error).__name__)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for path, _used_s, _size_bytes in self._files():
                _remove(path)

    def size_bytes(self) -> int:
        """Return what all answers take."""
        return sum(size_bytes for _path, _used_s, size_bytes in self._files())

    def _prune(self) -> None:
        """Remove what is old, then what was not used for longest, until the rest is within the limit."""
        files = sorted(self._files(), key=lambda one: one[1])
        total = sum(size_bytes for _path, _used_s, size_bytes in files)
        oldest_s = time.time() - _MAX_AGE_S  # the files' own clock, whatever the other one is
        for path, used_s, size_bytes in files:
            if total <= self._limit_bytes and used_s >= oldest_s:
                break
            _remove(path)
            total -= size_bytes

    def _files(self) -> list[tuple[Path, float, int]]:
        """Return each file with when it was used and its size; links and folders are not ours."""
        found = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(_ENDING) and entry.is_file(follow_symlinks=False):
                        facts = entry.stat(follow_symlinks=False)
                        found.append((Path(entry.path), facts.st_mtime, facts.st_size))
        except OSError:
            return found
        return found

    def _path(self, question: Sequence[str]) -> Path:
        digest = hashlib.sha256("\0".join((_FORMAT, *question)).encode(errors="surrogatepass")).hexdigest()
        return self._folder / f"{digest}{_ENDING}"


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
