"""An unfinished file on the disk: bytes are added at its end, and it is always known which of them are there for good.

Every so many bytes another thread has the system write them out, so that neither the network nor the hash waits for
the disk. Knows neither names nor servers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

FLUSH_BYTES = 32 * 2**20  # with as much again under way, no kill costs more than 64 MiB
_READ_BYTES = 2**20
_ROOM_BYTES = 256 * 1024
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class PartFile:
    """A file in the making. One thread uses it; close it.

    Attributes:
        have_bytes: how many bytes it holds.

    Args:
        path: where it lies; its folder must be there. A link, and a file with a second name, are refused.
        kept_bytes: how much of what is there is kept; the rest is cut off.
        on_flushed: told, on a thread of its own, how many bytes are on the disk for good. It may raise OSError.
        flush_bytes: how often; 0 for only when asked.

    Raises:
        OSError: here, and in every method: the system refused. ELOOP says that it is a link.
    """

    def __init__(
        self, path: Path, kept_bytes: int, on_flushed: Callable[[int], None], flush_bytes: int = FLUSH_BYTES
    ) -> None:
        self._descriptor = _open(path)
        self._on_flushed = on_flushed
        self._flush_bytes = flush_bytes
        self._flushing: Future[None] | None = None
        self._flush_start = 0
        self._flusher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="download flush")
        self.have_bytes = 0
        try:
            self._cut(min(kept_bytes, os.fstat(self._descriptor).st_size))
        except OSError:
            os.close(self._descriptor)
            raise

    def pieces(self) -> Iterator[bytes]:
        """Yield what it holds, from the beginning to the end."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        left = self.have_bytes
        while left > 0:
            piece = os.read(self._descriptor, min(left, _READ_BYTES))
            if not piece:
                raise OSError(errno.EIO, "the file became shorter while it was read")
            left -= len(piece)
            yield piece

    def head(self, count: int) -> bytes:
        """Return its first bytes, fewer where there are not so many."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        found = os.read(self._descriptor, min(count, self.have_bytes))
        os.lseek(self._descriptor, self.have_bytes, os.SEEK_SET)
        return found

    def write(self, pieces: Sequence[bytes]) -> bool:
        """Add bytes at the end; returns whether a flush was begun. What was written before an error counts."""
        for piece in pieces:
            view = memoryview(piece)
            while view:
                count = os.write(self._descriptor, view)
                self.have_bytes += count
                view = view[count:]
        is_due = 0 < self._flush_bytes <= self.have_bytes - self._flush_start
        if is_due:
            self._wait()
            self._flush_start = self.have_bytes
            self._flushing = self._flusher.submit(self._flush, self.have_bytes)
        return is_due

    def sync(self) -> None:
        """Return when every byte is on the disk for good."""
        self._wait()
        self._flush(self.have_bytes)

    def restart(self) -> None:
        """Drop every byte."""
        self._wait()
        self._cut(0)

    def make_room(self) -> None:
        """Give the last bytes back to a disk that is full, so that it can take the notes about the others."""
        with contextlib.suppress(OSError):
            self._wait()
        self._cut(max(0, self.have_bytes - _ROOM_BYTES))

    def close(self) -> None:
        """Let go of the file; what was not synced may be lost with the power."""
        with contextlib.suppress(OSError):
            self._wait()
        self._flusher.shutdown()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _cut(self, size_bytes: int) -> None:
        os.ftruncate(self._descriptor, size_bytes)
        os.lseek(self._descriptor, size_bytes, os.SEEK_SET)
        self.have_bytes = self._flush_start = size_bytes

    def _wait(self) -> None:
        """Wait for the flush under way, and raise what it raised."""
        flushing, self._flushing = self._flushing, None
        if flushing is not None:
            flushing.result()

    def _flush(self, size_bytes: int) -> None:
        os.fsync(self._descriptor)
        self._on_flushed(size_bytes)


def _open(path: Path) -> int:
    """Open or make the file, and nothing but an ordinary file with this one name."""
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    descriptor = os.open(path, _FLAGS, 0o666)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return descriptor
