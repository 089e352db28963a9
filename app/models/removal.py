"""Deleting a model's files: what it would free, said before; the trash or for good; nothing else and nothing elsewhere.

Links are removed and never followed. Knows no library: the caller says where the model comes from and what is in use.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.errors import one_line
from app.i18n import _, ngettext
from app.models.entry import ModelEntry
from app.models.library_words import LibraryError
from app.units import bytes_text

_BLOCK_BYTES = 512  # what st_blocks counts, whatever the file system's own blocks are

# What a path was: device, inode, size and time of change.
Mark = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Deletion:
    """What deleting a model would do, or did.

    Attributes:
        paths: the files that would go or went.
        freed_bytes: what the disk gains: 0 for a file that has another name elsewhere, or that is only a link. With
            the trash it gains that when the trash is emptied.
        uses_trash: before: whether there is a trash for them. After: whether they are in it.
        refusal: why nothing may be deleted, in words; "" when it may.
        marks: what each path was when it was looked at.
    """

    paths: tuple[Path, ...]
    freed_bytes: int
    uses_trash: bool
    refusal: str = ""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose the files are.

    Attributes:
        own_folder: Cutaway's own models folder.
        foreign_folders: where other programs keep theirs, and the program itself its starter model.
        in_use: what an engine has open.
    """

    own_folder: Path
    foreign_folders: Sequence[Path] = ()
    in_use: Collection[Path] = ()


def preview(entry: ModelEntry, ownership: Ownership) -> Deletion:
    """Return what deleting a model would do; changes nothing."""
    paths = entry.parts or (entry.path,)
    refusal = _refusal(entry, paths, ownership)
    if refusal:
        return Deletion((), 0, False, refusal)
    found = [(path, status) for path in paths if (status := _status(path)) is not None]
    if not found:
        return Deletion((), 0, False, _("The file is not there any more, so there is nothing to delete."))
    if any(not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)) for _path, status in found):
        return Deletion((), 0, False, _("This is not made of plain files, so Cutaway does not delete it."))
    there = tuple(path for path, _status_ in found)
    return Deletion(
        paths=there,
        freed_bytes=_freed_bytes([status for _path, status in found]),
        uses_trash=any(stat.S_ISREG(status.st_mode) for _path, status in found) and all(map(has_trash, there)),
        marks=tuple(_mark(status) for _path, status in found),
    )


def delete(deletion: Deletion, *, forever: bool, trash: Callable[[Path], None] | None = None) -> Deletion:
    """Do what a preview said and return what was done.

    Args:
        deletion: from preview().
        forever: past the trash; always so where there is none.
        trash: moves a file to the trash; None for the system's.

    Raises:
        LibraryError: it was refused, a file changed since the preview, or the system refused; the text says what is
            left.
    """
    if deletion.refusal:
        raise LibraryError(deletion.refusal)
    if any(_mark_now(path) != mark for path, mark in zip(deletion.paths, deletion.marks, strict=True)):
        raise LibraryError(_("The files changed since you were asked. Nothing was deleted. Look again."))
    uses_trash = deletion.uses_trash and not forever
    away = (trash or _to_trash) if uses_trash else os.unlink
    for number, path in enumerate(deletion.paths):
        try:
            # A link is a few bytes; in the trash it would lead nowhere.
            (os.unlink if path.is_symlink() else away)(path)
        except OSError as error:
            raise LibraryError(_failure(deletion.paths, number, error, uses_trash)) from error
    return replace(deletion, uses_trash=uses_trash)


def deletion_words(name: str, done: Deletion) -> str:
    """Return what deleting a model did, in a sentence."""
    if done.uses_trash:
        words = _("{name} is in the trash; {size} come free when it is emptied.")
    elif done.freed_bytes:
        words = _("{name} is deleted; {size} are free again.")
    else:
        words = _("{name} is deleted; nothing came free, since the same bytes are used elsewhere.")
    return words.format(name=one_line(name), size=bytes_text(done.freed_bytes))


def has_trash(path: Path) -> bool:
    """Whether the system has a trash for this file, by the freedesktop.org trash specification 1.0 on Linux."""
    if sys.platform in ("win32", "darwin"):
        return True
    try:
        device = os.lstat(path).st_dev
        home = Path.home()
        if device == os.stat(os.path.realpath(home)).st_dev:  # noqa: PTH116 - of what is behind links
            return os.access(_nearest_folder(_home_trash(home)), os.W_OK)
        top = _mount_point(path)
        uid = str(os.getuid())
        return any(os.access(folder, os.W_OK) for folder in (top / ".Trash" / uid, top / f".Trash-{uid}", top))
    except (OSError, RuntimeError):  # RuntimeError: this person has no home
        return False


def _home_trash(home: Path) -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "Trash"


def _nearest_folder(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _mount_point(path: Path) -> Path:
    folder = Path(os.path.realpath(path.parent))
    while not folder.is_mount():
        folder = folder.parent
    return folder


def _to_trash(path: Path) -> None:
    """Move a file to the system's trash; raises OSError."""
    # Asks the system for its folders when it is imported.
    from send2trash import send2trash

    send2trash(os.fspath(path))


# --------------------------------------------------------------------------------------------------- refusals


def _refusal(entry: ModelEntry, paths: Sequence[Path], ownership: Ownership) -> str:
    name = one_line(entry.name)
    if entry.origin not in ("imported", "folder"):
        words = _("{name} belongs to another program or to Cutaway itself. Delete it there: {path}")
        return words.format(name=name, path=one_line(str(entry.path)))
    used = {os.path.realpath(path) for path in ownership.in_use}
    if used & {os.path.realpath(path) for path in (entry.path, *paths)}:
        return _("{name} is loaded. Use another model first, then delete it.").format(name=name)
    home = _real_home(entry, paths)
    if home is None or (entry.origin == "folder" and not _lies_in(home, ownership.own_folder)):
        return _("The files of {name} lie outside its folder, so Cutaway does not delete them.").format(name=name)
    if any(_lies_in(home, folder) for folder in ownership.foreign_folders):
        words = _("{name} lies in a folder of another program. Delete it there: {path}")
        return words.format(name=name, path=one_line(str(entry.path)))
    return ""


def _real_home(entry: ModelEntry, paths: Sequence[Path]) -> Path | None:
    """Return the folder that all files of a model lie in, links in its path resolved; None when there is no such."""
    home = os.path.realpath(entry.path if entry.format == "safetensors" else entry.path.parent)
    homes = {os.path.realpath(path.parent) for path in paths}
    return Path(home) if homes == {home} else None


def _lies_in(path: Path, folder: Path) -> bool:
    return path.is_relative_to(os.path.realpath(folder))


def _failure(paths: Sequence[Path], done: int, error: OSError, uses_trash: bool) -> str:
    reason = one_line(error.strerror or str(error) or type(error).__name__)
    left = ", ".join(one_line(str(path)) for path in paths[done:])
    if done:
        words = ngettext(
            "{done} of {count} files was deleted, then the system refused: {reason}. Still there: {left}",
            "{done} of {count} files were deleted, then the system refused: {reason}. Still there: {left}",
            done,
        )
        return words.format(done=done, count=len(paths), reason=reason, left=left)
    words = _("The system refused: {reason}. Nothing was deleted.")
    if uses_trash:
        words = _("It could not be moved to the trash: {reason}. Nothing was deleted. Delete it forever instead.")
    return words.format(reason=reason)


# ----------------------------------------------------------------------------------------------------- status


def _status(path: Path) -> os.stat_result | None:
    """Return what a path is, a link not followed; None when there is nothing."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _mark(status: os.stat_result) -> Mark:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _mark_now(path: Path) -> Mark | None:
    status = _status(path)
    return None if status is None else _mark(status)


def _freed_bytes(statuses: Sequence[os.stat_result]) -> int:
    """Return what the disk gains when these go: nothing for a file that keeps another name."""
    names: dict[tuple[int, int], int] = {}
    for status in statuses:
        names[status.st_dev, status.st_ino] = names.get((status.st_dev, status.st_ino), 0) + 1
    gone = {(status.st_dev, status.st_ino): disk_bytes(status) for status in statuses}
    links = {(status.st_dev, status.st_ino): status.st_nlink for status in statuses}
    return sum(size for inode, size in gone.items() if links[inode] <= names[inode])


def disk_bytes(status: os.stat_result) -> int:
    """Return what a file takes on its disk: less than its size where it has holes."""
    blocks: int | None = getattr(status, "st_blocks", None)
    return status.st_size if blocks is None else blocks * _BLOCK_BYTES
