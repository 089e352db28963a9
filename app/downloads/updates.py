"""Whether the hub has something newer than what was downloaded; compares, asks nobody.

A download is pinned to a commit. A newer commit may have changed the model card alone, so the files' own names for
their bytes decide where they are known.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path

from app.downloads.types import FileRef


class Update(enum.StrEnum):
    """How what is here stands to the newest commit."""

    CURRENT = "current"  # the same commit, or the same bytes
    CHANGED = "changed"  # at least one file has other bytes now
    REMOVED = "removed"  # at least one file is not in the newest commit
    UNKNOWN = "unknown"  # another commit, and nobody said which files it changed


def compare(files: Sequence[FileRef], head_revision: str, head_files: Sequence[FileRef] = ()) -> Update:
    """Return how files stand to the newest commit of their repo.

    Args:
        files: as they were downloaded.
        head_revision: the newest commit.
        head_files: all its files where they are known.
    """
    if all(file.revision == head_revision for file in files):
        return Update.CURRENT
    if not head_files:
        return Update.UNKNOWN
    by_path = {file.path: file for file in head_files}
    if any(file.path not in by_path for file in files):
        return Update.REMOVED
    pairs = [(file, by_path[file.path]) for file in files]
    return Update.CURRENT if all(is_same(old, new) for old, new in pairs) else Update.CHANGED


def is_outdated(files: Sequence[FileRef], head_revision: str, head_files: Sequence[FileRef] = ()) -> bool:
    """Return whether the newest commit may have other bytes for these files."""
    return compare(files, head_revision, head_files) in (Update.CHANGED, Update.UNKNOWN)


def is_same(old: FileRef, new: FileRef) -> bool:
    """Return whether two files hold the same bytes, as far as the hub tells; where it does not, they do not."""
    if old.size_bytes != new.size_bytes:
        return False
    if old.sha256 and new.sha256:
        return old.sha256 == new.sha256
    return bool(old.etag) and old.etag == new.etag


def pinned(path: Path, cache: Path) -> tuple[str, str] | None:
    """Return repo and commit of a file in a hub cache by its path alone; None where it is no snapshot's file."""
    try:
        parts = path.relative_to(cache).parts
    except ValueError:
        return None
    if len(parts) < 4 or not parts[0].startswith("models--") or parts[1] != "snapshots":
        return None
    return parts[0].removeprefix("models--").replace("--", "/"), parts[2]
