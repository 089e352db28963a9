"""Deleting a model's files: what it would free, said before; the trash or for good; nothing else and nothing elsewhere.

Links are removed and never followed. Knows no library: the caller says where the model comes from and what is in use.
What Cutaway downloaded lies in a cache that is not ours alone: removal_fetched.py says what of it may go.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.errors import one_line
from app.i18n import _, ngettext
from app.models.entry import ModelEntry
from app.models.library_words import LibraryError
from app.models.removal_fetched import CachedFile, FetchedPlaces, cached_files, held, join, tidy
from app.models.trash import can_take_back, has_trash, take_back, to_trash
from app.units import bytes_text

_log = logging.getLogger(__name__)

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
        cached: of what Cutaway downloaded, what each path is; else nothing.
        fetched: where that is noted.
        kept: why less comes free than one might think, in words; "" for nothing.
    """

    paths: tuple[Path, ...]
    freed_bytes: int
    uses_trash: bool
    refusal: str = ""
    marks: tuple[Mark, ...] = ()
    cached: tuple[CachedFile, ...] = ()
    fetched: FetchedPlaces | None = None
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose the files are.

    Attributes:
        own_folder: Cutaway's own models folder.
        foreign_folders: where other programs keep theirs, and the program itself its starter model.
        in_use: what an engine has open.
        fetched: what Cutaway itself downloaded into another program's folder; None for nothing.
    """

    own_folder: Path
    foreign_folders: Sequence[Path] = ()
    in_use: Collection[Path] = ()
    fetched: FetchedPlaces | None = None


def preview(entry: ModelEntry, ownership: Ownership) -> Deletion:
    """Return what deleting a model would do; changes nothing."""
    paths = entry.parts or (entry.path,)
    cached = cached_files(entry, paths, ownership.fetched) if ownership.fetched is not None else ()
    refusal = _in_use_refusal(entry, paths, ownership) if cached else _refusal(entry, paths, ownership)
    if cached and not refusal:
        return _cached_preview(cached, ownership)
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


def _cached_preview(cached: tuple[CachedFile, ...], ownership: Ownership) -> Deletion:
    """Return what deleting files of ours in the hub cache would do."""
    going = [os.lstat(one.bytes_path or one.path) for one in cached if not one.stays]
    return Deletion(
        paths=tuple(one.path for one in cached),
        freed_bytes=_freed_bytes(going),
        uses_trash=bool(going) and all(has_trash(one.path) for one in cached),
        marks=tuple(mark for one in cached if (mark := _mark_now(one.bytes_path or one.path)) is not None),
        cached=cached,
        fetched=ownership.fetched,
        kept=next((one.stays for one in cached if one.stays), ""),
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
    with held(deletion.cached):
        if any(_mark_now(path) != mark for path, mark in zip(_marked(deletion), deletion.marks, strict=True)):
            raise LibraryError(_("The files changed since you were asked. Nothing was deleted. Look again."))
        uses_trash = deletion.uses_trash and not forever
        away = (trash or to_trash) if uses_trash else os.unlink
        for number, path in enumerate(deletion.paths):
            try:
                if deletion.cached:
                    join(deletion.cached[number])
                # A link is a few bytes; in the trash it would lead nowhere.
                (os.unlink if path.is_symlink() else away)(path)
            except OSError as error:
                raise LibraryError(_failure(deletion.paths, number, error, uses_trash)) from error
    if deletion.fetched is not None and not uses_trash:
        _forget(deletion.cached, deletion.fetched)
    return replace(deletion, uses_trash=uses_trash)


def _forget(cached: Sequence[CachedFile], fetched: FetchedPlaces) -> None:
    """Tidy up behind files that are gone for good. From the trash they may come back, and are ours then."""
    tidy(cached)
    try:
        fetched.record.drop([one.file for one in cached])
    except OSError as error:
        _log.warning("What was deleted is still noted as downloaded: %s", error.strerror)


def can_undo(done: Deletion) -> bool:
    """Whether undo() may bring back what was deleted."""
    return done.uses_trash and can_take_back()


def undo(done: Deletion) -> None:
    """Take back from the trash what a deletion moved there.

    Raises:
        LibraryError: it is not there any more, or something else has its place.
    """
    for number, path in enumerate(done.paths):
        if not done.cached or not done.cached[number].stays:
            try:
                take_back(path)
            except OSError as error:
                reason = one_line(error.strerror or type(error).__name__)
                words = _("It could not be taken back from the trash: {reason}. Look into the trash of the system.")
                raise LibraryError(words.format(reason=reason)) from error
    for one in done.cached:
        if one.stays:
            with contextlib.suppress(OSError):  # the name of bytes that stayed; another version has them
                one.path.parent.mkdir(parents=True, exist_ok=True)
                one.path.symlink_to(os.path.relpath(one.blob, one.path.parent))


def deletion_words(name: str, done: Deletion) -> str:
    """Return what deleting a model did, in a sentence or two."""
    if done.uses_trash:
        words = _("{name} is in the trash; {size} come free when it is emptied.")
    elif done.freed_bytes:
        words = _("{name} is deleted; {size} are free again.")
    else:
        words = _("{name} is deleted; nothing came free, since the same bytes are used elsewhere.")
        if done.kept:
            words = _("{name} is deleted; nothing came free.")
    return f"{words.format(name=one_line(name), size=bytes_text(done.freed_bytes))} {done.kept}".rstrip()


# --------------------------------------------------------------------------------------------------- refusals


def _refusal(entry: ModelEntry, paths: Sequence[Path], ownership: Ownership) -> str:
    name = one_line(entry.name)
    if entry.origin not in ("imported", "folder"):
        words = _("{name} belongs to another program or to Cutaway itself. Delete it there: {path}")
        return words.format(name=name, path=one_line(str(entry.path)))
    if used := _in_use_refusal(entry, paths, ownership):
        return used
    home = _real_home(entry, paths)
    if home is None or (entry.origin == "folder" and not _lies_in(home, ownership.own_folder)):
        return _("The files of {name} lie outside its folder, so Cutaway does not delete them.").format(name=name)
    if any(_lies_in(home, folder) for folder in ownership.foreign_folders):
        words = _("{name} lies in a folder of another program. Delete it there: {path}")
        return words.format(name=name, path=one_line(str(entry.path)))
    return ""


def _in_use_refusal(entry: ModelEntry, paths: Sequence[Path], ownership: Ownership) -> str:
    used = {os.path.realpath(path) for path in ownership.in_use}
    if used & {os.path.realpath(path) for path in (entry.path, *paths)}:
        return _("{name} is loaded. Use another model first, then delete it.").format(name=one_line(entry.name))
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


def _marked(deletion: Deletion) -> list[Path]:
    """Return the paths that the marks are of: where bytes go along, those."""
    return [one.bytes_path or one.path for one in deletion.cached] or list(deletion.paths)


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
