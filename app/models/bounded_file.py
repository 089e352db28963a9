"""A file that may be hostile, read forwards through a small buffer and never past its end.

Knows numbers, texts and how to skip them; knows nothing of any model format, and not where the bytes come from.
"""

from __future__ import annotations

import struct
from pathlib import Path

from app.models.byte_source import ByteSource, HeaderError, open_file
from backends.errors import ErrorCode

__all__ = ["BoundedFile", "HeaderError", "open_bounded"]

_CHUNK_BYTES = 256 * 1024  # the starter model's header takes seven of them
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class BoundedFile:
    """A file read forwards; use it in a `with`, whose end closes the source.

    Every method raises HeaderError when the file, or the part of it that a header may fill, ends too early.

    Attributes:
        file_bytes: the size of the file when it was opened.
    """

    def __init__(self, source: ByteSource, limit_bytes: int) -> None:
        self._source = source
        self.file_bytes = source.size_bytes
        self._limit = min(self.file_bytes, limit_bytes)
        self._chunk = b""
        self._at = 0  # the next byte in the chunk
        self._chunk_end = 0  # where in the file the chunk ends

    def __enter__(self) -> BoundedFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._source.close()

    @property
    def position(self) -> int:
        """Where in the file the next byte is."""
        return self._chunk_end - len(self._chunk) + self._at

    @property
    def remaining_bytes(self) -> int:
        """How much a header may still fill."""
        return self._limit - self.position

    def take(self, count: int) -> bytes:
        """Return the next bytes; the caller bounds the count."""
        if self._at + count > len(self._chunk):
            self._fill(self.position, count)
        start = self._at
        self._at += count
        return self._chunk[start : self._at]

    def skip(self, count: int) -> None:
        """Move on without reading."""
        self._move(self.position + count)

    def u32(self) -> int:
        """Return the next 4 bytes as an unsigned number."""
        number: int = _U32.unpack(self.take(4))[0]
        return number

    def u64(self) -> int:
        """Return the next 8 bytes as an unsigned number."""
        number: int = _U64.unpack(self.take(8))[0]
        return number

    def skip_texts(self, count: int, longest_bytes: int) -> None:
        """Move past texts, each behind its length, without keeping any.

        The loop is spelled out: a vocabulary has hundreds of thousands of texts, and each costs 0.1 µs this way.
        """
        unpack = _U64.unpack_from
        chunk, at, length = self._chunk, self._at, 0
        last = len(chunk) - 8
        for _ in range(count):
            if at > last:  # always so behind a text longer than the chunk
                self._leave(at, length, longest_bytes)
                self._fill(self.position, 8)
                chunk, at, last = self._chunk, self._at, len(self._chunk) - 8
            length = unpack(chunk, at)[0]
            at += 8 + length
        self._leave(at, length, longest_bytes)

    def _leave(self, at: int, length: int, longest_bytes: int) -> None:
        if length > longest_bytes:
            raise HeaderError(f"A text in the header claims {length:,} bytes; at most {longest_bytes:,} are allowed.")
        self._move(self.position - self._at + at)

    def _move(self, position: int) -> None:
        if position > self._limit:
            raise self._ended()
        self._at += position - self.position
        if self._at > len(self._chunk):
            self._chunk, self._at, self._chunk_end = b"", 0, position

    def _fill(self, position: int, count: int) -> None:
        """Put at least this many bytes from here into the chunk."""
        if position + count > self._limit:
            raise self._ended()
        wanted = max(count, min(_CHUNK_BYTES, self._limit - position))
        chunk = self._source.read(position, wanted)
        while len(chunk) < count:  # a server's piece may end in the middle of a number
            more = self._source.read(position + len(chunk), wanted - len(chunk))
            if not more:
                raise HeaderError("The file became shorter while it was read.", ErrorCode.FILE_UNREADABLE)
            chunk += more
        self._chunk = chunk
        self._at, self._chunk_end = 0, position + len(chunk)

    def _ended(self) -> HeaderError:
        if self._limit < self.file_bytes:
            return HeaderError(f"The header is larger than {self._limit // 2**20:,} MiB, more than any model needs.")
        return HeaderError(f"The file ends in the middle of its header, after {self.file_bytes:,} bytes.")


def open_bounded(path: Path, limit_bytes: int) -> BoundedFile:
    """Open a regular file; what open_file() refuses is refused.

    Args:
        path: the file.
        limit_bytes: how much of it may be read, from its beginning.

    Raises:
        HeaderError: see open_file().
    """
    return BoundedFile(open_file(path), limit_bytes)
