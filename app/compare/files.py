"""Reading and writing the files of a comparison: whole or not at all, and every failure in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from app.atomic_file import replace_file
from app.errors import AppError, Words, one_line
from app.i18n import _

_MAX_FILE_BYTES = 256 * 2**20  # none of our own files is near it
_T = TypeVar("_T")


class FolderError(AppError):
    """A comparison's folder cannot be read or written; the words say why."""


def read_file(path: Path, kind: type[_T]) -> _T | None:
    """Return what a JSON file holds; None where there is none.

    Raises:
        FolderError: it is damaged, of another program, or cannot be read.
    """
    with worded(path):
        try:
            if path.stat().st_size > _MAX_FILE_BYTES:
                raise msgspec.DecodeError("it is too large")
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = _("The comparison's file {path} is damaged, or of another program: {detail}.")
            detail = one_line(str(error), 120).rstrip(".")
            raise FolderError(
                Words(
                    message.format(path=one_line(str(path)), detail=detail),
                    _("Delete this comparison and begin it anew."),
                )
            ) from error


def write_file(path: Path, value: object) -> None:
    """Write a value as JSON, as a whole or not at all; raises FolderError."""
    with worded(path):
        replace_file(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


@contextlib.contextmanager
def worded(path: Path) -> Iterator[None]:
    """Turn what the system refuses into a FolderError."""
    try:
        yield
    except OSError as error:
        reason = one_line(error.strerror or type(error).__name__)
        message = _("The comparison's folder cannot be used ({path}): {reason}.")
        raise FolderError(
            Words(
                message.format(path=one_line(str(error.filename or path)), reason=reason),
                _("Check that its disk is there and has room, then go on; what was measured is kept."),
            )
        ) from error


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; 0 for what is gone."""
    total = 0
    with contextlib.suppress(OSError):
        found = path.lstat()
        if not path.is_dir() or path.is_symlink():
            return found.st_size
        for inner in path.iterdir():
            total += size_of(inner)
    return total
