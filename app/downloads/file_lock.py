"""A lock that one process at a time holds on a file's name, and that its end gives back whatever ends it.

It is the lock that huggingface_hub takes, so that the two do not write one file at once. A file system that knows no
locks is used without.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

_BUSY = {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EDEADLK}
_TRIES = 8  # the file may be deleted between opening and locking it, by a program that does so


class FileLock:
    """A lock; take() it, then release() it. Two of them exclude each other within one process too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def take(self) -> bool:
        """Return whether the lock is held now; does not wait.

        Raises:
            OSError: its file cannot be made.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for _try in range(_TRIES):
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self._path, flags, 0o664)
            try:
                is_held = _lock(descriptor)
                if is_held and _is_still(descriptor, self._path):
                    self._descriptor, descriptor = descriptor, -1
                    return True
                if not is_held:
                    return False
            finally:
                if descriptor >= 0:
                    os.close(descriptor)
        return False

    def release(self) -> None:
        """Give the lock back; its file stays, since somebody may be waiting at it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _is_still(descriptor: int, path: Path) -> bool:
    """Return whether the file that was opened is the one of this name."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _BUSY  # else this file system knows no locks
        return True
