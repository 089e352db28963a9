"""A file that may be hostile, read forwards through a small buffer and never past its end.

Knows numbers, texts and how to skip them; knows nothing of any model format. Never maps the file: a mapped file that
shrinks kills the process.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from pathlib import Path

from backends.errors import ErrorCode

_CHUNK_BYTES = 256 * 1024  # the starter model's header takes seven of them
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".joblib", ".npy")


class HeaderError(ValueError):
    """A file that must not be handed to an engine; the text is one English sentence for a person.

    Attributes:
        code: FILE_MISSING, FILE_UNREADABLE, NOT_A_MODEL or HEADER_INVALID.
    """

    def __init__(self, detail: str, code: ErrorCode = ErrorCode.HEADER_INVALID) -> None:
        super().__init__(detail)
        self.code = code

    @property
    def is_gguf(self) -> bool:
        """Whether the file calls itself a GGUF, so that the header is what is wrong."""
        return self.code is ErrorCode.HEADER_INVALID


class BoundedFile:
    """A regular file read forwards; use it in a `with`.

    Every method raises HeaderError when the file, or the part of it that a header may fill, ends too early.

    Attributes:
        file_bytes: the size of the file when it was opened.
    """

    def __init__(self, stream: io.FileIO, file_bytes: int, limit_bytes: int) -> None:
        self._stream = stream
        self.file_bytes = file_bytes
        self._limit = min(file_bytes, limit_bytes)
        self._chunk = b""
        self._at = 0  # the next byte in the chunk
        self._chunk_end = 0  # where in the file the chunk ends

    def __enter__(self) -> BoundedFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stream.close()

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
        wanted = max(count, min(_CHUNK_BYTES, self.file_bytes - position))
        try:
            self._stream.seek(position)
            pieces = []
            missing = wanted
            while missing and (piece := self._stream.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
        except OSError as error:
            raise HeaderError(
                f"The file could not be read: {error.strerror or error}.", ErrorCode.FILE_UNREADABLE
            ) from error
        if missing:
            raise HeaderError("The file became shorter while it was read.", ErrorCode.FILE_UNREADABLE)
        self._chunk = b"".join(pieces)
        self._at, self._chunk_end = 0, position + wanted

    def _ended(self) -> HeaderError:
        if self._limit < self.file_bytes:
            return HeaderError(f"The header is larger than {self._limit // 2**20:,} MiB, more than any model needs.")
        return HeaderError(f"The file ends in the middle of its header, after {self.file_bytes:,} bytes.")


def open_bounded(path: Path, limit_bytes: int) -> BoundedFile:
    """Open a regular file, or a link to one; anything that could block or never end is refused unopened.

    Args:
        path: the file.
        limit_bytes: how much of it may be read, from its beginning.

    Raises:
        HeaderError: there is no such file, it cannot be read, it is empty or it is no regular file.
    """
    if path.suffix.lower() in _PICKLES:
        raise HeaderError(
            f"Files that end in {path.suffix} can run code when they are opened, so Cutaway never opens them.",
            ErrorCode.NOT_A_MODEL,
        )
    descriptor = -1
    try:
        _check_kind(path.stat())
        # Not to block even when the file was exchanged for a FIFO since: hence O_NONBLOCK and the second look.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags)
        found = os.fstat(descriptor)
        _check_kind(found)
    except HeaderError:
        _close(descriptor)
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise HeaderError("There is no such file.", ErrorCode.FILE_MISSING) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        _close(descriptor)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HeaderError(f"The file could not be opened: {reason}.", ErrorCode.FILE_UNREADABLE) from error
    return BoundedFile(io.FileIO(descriptor), found.st_size, limit_bytes)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _check_kind(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise HeaderError("This is a folder, not a model file.", ErrorCode.NOT_A_MODEL)
    if not stat.S_ISREG(found.st_mode):
        raise HeaderError("This is a device, a pipe or a socket, not a model file.", ErrorCode.NOT_A_MODEL)
    if found.st_size == 0:
        raise HeaderError("The file is empty.", ErrorCode.NOT_A_MODEL)
