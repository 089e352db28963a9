"""Bytes in memory behind the interface of a file; nothing is opened."""

from __future__ import annotations


class FakeSource:
    """A ByteSource over bytes, with a hole behind them where the file is said to be larger.

    Attributes:
        size_bytes: of the whole file.
        reads: offset and count of every read so far.
        is_closed: whether close() was called.
    """

    def __init__(self, data: bytes, size_bytes: int | None = None, piece_bytes: int | None = None) -> None:
        self._data = data
        self._piece_bytes = piece_bytes
        self.size_bytes = len(data) if size_bytes is None else size_bytes
        self.reads: list[tuple[int, int]] = []
        self.is_closed = False

    def read(self, offset: int, count: int) -> bytes:
        """Return the bytes, zeros in the hole, at most `piece_bytes` at a time."""
        self.reads.append((offset, count))
        end = min(offset + min(count, self._piece_bytes or count), self.size_bytes)
        found = self._data[offset:end]
        return found + bytes(max(0, end - offset - len(found)))

    def close(self) -> None:
        """Remember it."""
        self.is_closed = True
