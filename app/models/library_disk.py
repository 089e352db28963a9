"""What the library takes on the disk, and which of its models lie there more than once.

Looks at every file, so call it on a background thread. Knows no database.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from app.models.entry import ModelEntry
from app.models.library_view import View
from app.models.removal import disk_bytes

_Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What the library takes.

    Attributes:
        listed_bytes: the sizes of all places of all models together.
        on_disk_bytes: what the disks hold for that: a file with several names or links counts once.
        duplicate_bytes: how much of that are further copies of a model that is there already.
    """

    listed_bytes: int
    on_disk_bytes: int
    duplicate_bytes: int


def disk_use(view: View) -> DiskUse:
    """Return what all models take."""
    files: dict[_Inode, int] = {}
    for entry in view.all_places():
        files.update(_files(entry))
    duplicate_bytes = 0
    for places in view.copies.values():
        first, *others = [files_of for files_of in map(_files, places) if files_of] or [{}]
        counted = set(first)
        for other in others:
            duplicate_bytes += sum(size for inode, size in other.items() if inode not in counted)
            counted |= set(other)
    listed_bytes = sum(entry.size_bytes for entry in view.all_places())
    return DiskUse(listed_bytes, sum(files.values()), duplicate_bytes)


def duplicates(view: View) -> list[tuple[ModelEntry, ...]]:
    """Return the models that take the disk more than once, an entry for each copy, the preferred first.

    Names and links of one file are no copies. Where the identity is provisional the copies are likely, not certain.
    """
    groups = []
    for places in view.copies.values():
        seen: set[_Inode] = set()
        copies = []
        for entry in places:
            inodes = set(_files(entry))
            if inodes and not inodes & seen:
                copies.append(entry)
            seen |= inodes
        if len(copies) > 1:
            groups.append(tuple(copies))
    return groups


def _files(entry: ModelEntry) -> dict[_Inode, int]:
    """Return what each file of a model takes, by device and inode; links are followed."""
    return dict(_statuses(entry.parts or (entry.path,)))


def _statuses(paths: Iterable[os.PathLike[str]]) -> Iterable[tuple[_Inode, int]]:
    for path in paths:
        try:
            status = os.stat(path)  # noqa: PTH116 - ten thousand files are looked at
        except (OSError, ValueError):
            continue
        yield (status.st_dev, status.st_ino), disk_bytes(status)
