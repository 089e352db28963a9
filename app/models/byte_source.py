"""Bytes that may be hostile, read at any place: the interface, and files of this machine behind it.

Knows no model format. Never maps a file: a mapped file that shrinks kills the process. The sentences of HeaderError
stay English; they are details inside the translated messages of app/errors.py.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Protocol

from backends.errors import ErrorCode

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


class ByteSource(Protocol):
    """Where the bytes of a model file come from; whoever opened it closes it."""

    @property
    def size_bytes(self) -> int:
        """The size of the whole file when it was opened."""
        ...

    def read(self, offset: int, count: int) -> bytes:
        """Return bytes from this place on.

        Args:
            offset: the first byte.
            count: how many are wanted. Fewer may come where more would cost the reader time; none come only where
                the file ends.

        Raises:
            HeaderError: the file cannot be read.
            AppError: a server does not give it; see app/models/http_faults.py.
        """
        ...

    def close(self) -> None:
        """Let go of the file; a second time does nothing."""
        ...


class FileSource:
    """A regular file of this machine; made by open_file().

    Attributes:
        size_bytes: see ByteSource.
    """

    def __init__(self, stream: io.FileIO, size_bytes: int) -> None:
        self._stream = stream
        self.size_bytes = size_bytes

    def read(self, offset: int, count: int) -> bytes:
        """Return all bytes that are there; raises HeaderError."""
        try:
            self._stream.seek(offset)
            pieces = []
            missing = count
            while missing and (piece := self._stream.read(missing)):
                pieces.append(piece)
                missing -= len(piece)
        except OSError as error:
            raise HeaderError(
                f"The file could not be read: {error.strerror or error}.", ErrorCode.FILE_UNREADABLE
            ) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def open_file(path: Path) -> FileSource:
    """Open a regular file, or a link to one; anything that could block or never end is refused unopened.

    Raises:
        HeaderError: there is no such file, it cannot be read, it is empty or it is no regular file.
    """
    if is_pickle(path):
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
    return FileSource(io.FileIO(descriptor), found.st_size)


def is_pickle(path: Path) -> bool:
    """Return whether the name is that of a file that can run code when a library opens it."""
    return path.suffix.lower() in _PICKLES


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
