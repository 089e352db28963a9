"""What may be a model, found by its place and name and not yet opened.

Knows stamps and small files; knows no program that keeps models.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.models.bounded_file import HeaderError, open_bounded


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model as its place describes it.

    Attributes:
        path: what an engine would be given: a GGUF, of a split set the first part that is there, or a folder.
        origin: see entry.Origin.
        parts: every file of it that is there.
        format: see entry.Format.
        projector: the vision projector that goes with it; None without one.
        name: as the program that keeps it calls it; "" to ask the header.
        owner: who published it; "" to ask the header.
        sha256: of its bytes, as the program that keeps it says; "" when it does not.
        missing: which parts of a set are not there, in words, should the header say that it is one; "" for none.
        fault: why it cannot be used, seen without opening it; "" when nothing is known against it.
        is_fault_lasting: whether the fault holds as long as the parts stay the same, so that they need no second look.
    """

    path: Path
    origin: str
    parts: tuple[Path, ...]
    format: str = "gguf"
    projector: Path | None = None
    name: str = ""
    owner: str = ""
    sha256: str = ""
    missing: str = ""
    fault: str = ""
    is_fault_lasting: bool = False

    def stamp(self) -> str:
        """Return the stamp to be compared with the known one; "" when it must be looked at in any case."""
        if self.fault and not self.is_fault_lasting:
            return ""
        return stamp_of(self.parts, self.projector)


def stamp_of(parts: Iterable[str | Path], projector: str | Path | None = None) -> str:
    """Return what changes when the size or time of change of any part does, or of the projector; "" if one is away.

    Args:
        parts: FoundModel.parts.
        projector: FoundModel.projector_path; "" and None for none.
    """
    digest = hashlib.blake2b(digest_size=12)
    try:
        for part in (*parts, *([projector] if projector else [])):
            found = os.stat(part)  # noqa: PTH116 - ten thousand files are looked at
            digest.update(f"{found.st_size}:{found.st_mtime_ns};".encode("ascii"))
    except (OSError, ValueError):
        return ""
    return digest.hexdigest() + ("+" if projector else "")


def size_of(parts: Iterable[Path]) -> int:
    """Return the bytes of all files that are there."""
    total = 0
    for part in parts:
        try:
            total += os.stat(part).st_size  # noqa: PTH116
        except (OSError, ValueError):
            continue
    return total


def read_small(path: Path, limit_bytes: int) -> bytes:
    """Return a regular file's bytes; b"" when it is larger, is not there or cannot be read."""
    try:
        with open_bounded(path, limit_bytes) as file:
            return file.take(file.file_bytes) if file.file_bytes <= limit_bytes else b""
    except HeaderError:
        return b""


# os.path answers where Path.is_file() and its kin raise: folders that may not be entered, names that are too long.


def is_there(path: Path) -> bool:
    """Whether there is something at the end of every link."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path) -> bool:
    """Whether a path leads to a regular file."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def is_link(path: Path) -> bool:
    """Whether a path is a link, wherever that leads."""
    return os.path.islink(path)  # noqa: PTH114
