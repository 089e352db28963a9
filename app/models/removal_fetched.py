"""Deleting what Cutaway itself put into the hub cache, which other programs use too.

Only files of our own record go, and bytes only where no other name in the cache leads to them. A name is joined with
its bytes first, so that the trash holds a model under its own name and can give it back. Links are never followed out
of the repo's folder. The layout is that of app/downloads/cache_layout.py.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.downloads.cache_layout import CacheLayout, Place
from app.downloads.faults import DownloadError
from app.downloads.fetched import FetchedFile, FetchedRecord
from app.downloads.file_lock import FileLock
from app.downloads.types import FileRef
from app.i18n import _
from app.models.entry import ModelEntry
from app.models.library_words import LibraryError
from app.models.source_files import is_model_file, is_projector

_MOST_NAMES = 100_000  # of one repo's snapshots; nobody has so many


@dataclass(frozen=True, slots=True)
class FetchedPlaces:
    """Where what we fetched is noted, and where it lies.

    Attributes:
        record: the note.
        cache: the hub cache.
    """

    record: FetchedRecord
    cache: Path


@dataclass(frozen=True, slots=True)
class CachedFile:
    """One of our files in the cache.

    Attributes:
        path: its name in the snapshot.
        bytes_path: where its bytes lie that go with it; None where the name is the file itself, or the bytes stay.
        blob: where its bytes lie or would, whether they go or not.
        file: what it is at the hub.
        repo_folder: of its repo in the cache.
        lock: what is locked while anybody fetches it.
        stays: why the bytes stay, in words; "" when they go.
    """

    path: Path
    bytes_path: Path | None
    blob: Path
    file: FileRef
    repo_folder: Path
    lock: Path
    stays: str = ""


def cached_files(entry: ModelEntry, paths: Sequence[Path], places: FetchedPlaces) -> tuple[CachedFile, ...]:
    """Return a model's files with what comes along, if all of them are ours; else none.

    Args:
        entry: the model.
        paths: its files.
        places: where what we fetched is noted, and where it lies.
    """
    layout = CacheLayout(places.cache)
    if not all(Path(os.path.realpath(path.parent)).is_relative_to(layout.root) for path in paths):
        return ()
    ours: dict[Path, tuple[FetchedFile, Place]] = {}
    for model in places.record.models():
        for one in model.files:
            with contextlib.suppress(DownloadError):  # a name that is refused today
                place = layout.place(one.file)
                if _is_as_we_left_it(one, place):
                    ours[place.snapshot] = one, place
    names = [_plain(path) for path in paths]
    if not names or any(name not in ours for name in names):
        return ()
    names += [name for name in _companions(entry, names, list(ours)) if name in ours]
    return tuple(_cached(*ours[name], set(names)) for name in dict.fromkeys(names))


def join(one: CachedFile) -> None:
    """Put a file's bytes under its name, where they go with it; raises OSError or LibraryError."""
    if one.bytes_path is not None:
        one.bytes_path.replace(one.path)


@contextlib.contextmanager
def held(files: Sequence[CachedFile]) -> Iterator[None]:
    """Keep everybody from fetching these files meanwhile.

    Raises:
        LibraryError: somebody does just now.
    """
    locks = [FileLock(lock) for lock in dict.fromkeys(one.lock for one in files)]
    try:
        for lock in locks:
            if not lock.take():
                raise LibraryError(_("A file of it is being downloaded just now. Nothing was deleted."))
        yield
    finally:
        for lock in locks:
            lock.release()


def tidy(files: Sequence[CachedFile]) -> None:
    """Remove the folders that a deletion for good left empty, and the branches that led to them."""
    for one in files:
        folder = one.path.parent
        while folder != one.repo_folder and _is_gone(folder):
            folder = folder.parent
        snapshot = one.repo_folder / "snapshots" / one.file.revision
        if not os.path.lexists(snapshot):
            _drop_branches(one.repo_folder / "refs", one.file.revision)
    for repo_folder in dict.fromkeys(one.repo_folder for one in files):
        _is_gone(repo_folder / "blobs")
        _is_gone(repo_folder)


# ------------------------------------------------------------------------------------------------ what is ours


def _cached(one: FetchedFile, place: Place, going: set[Path]) -> CachedFile:
    """Return what goes with a name: its bytes too, where we received them and no other name leads to them."""
    stays, bytes_path = "", None
    if place.snapshot.is_symlink():
        if not one.has_bytes:
            stays = _("Its bytes stay: they were in the cache of Hugging Face before Cutaway needed them.")
        elif _has_other_name(place, going):
            stays = _("Its bytes stay: another version in the cache of Hugging Face uses them.")
        else:
            bytes_path = place.blob
    return CachedFile(place.snapshot, bytes_path, place.blob, one.file, place.repo_folder, place.lock, stays)


def _is_as_we_left_it(one: FetchedFile, place: Place) -> bool:
    """Whether a name leads to the bytes that it was recorded with, in its repo's folder."""
    with contextlib.suppress(OSError):
        status = os.stat(place.snapshot)  # noqa: PTH116 - of the bytes behind the name
        is_file = stat.S_ISREG(status.st_mode) and status.st_size == one.file.size_bytes
        real = os.path.realpath(place.snapshot)
        is_inside = real in (os.path.realpath(place.blob), str(_plain(place.snapshot)))
        return is_file and is_inside and status.st_mtime_ns == one.changed_ns and (one.has_bytes or one.has_name)
    return False


def _has_other_name(place: Place, going: set[Path]) -> bool:
    """Whether something else in the repo's snapshots leads to the same bytes."""
    blob, looked = os.path.realpath(place.blob), 0
    for folder, _folders, names in os.walk(place.repo_folder / "snapshots"):
        for name in names:
            looked += 1
            path = Path(folder, name)
            if looked > _MOST_NAMES or (path not in going and os.path.realpath(path) == blob):
                return True
    return False


def _companions(entry: ModelEntry, names: Sequence[Path], ours: Sequence[Path]) -> list[Path]:
    """Return what came with a model and is of no use without it."""
    if entry.format == "safetensors":
        folder = _plain(entry.path / "any").parent
        return [name for name in ours if name.parent == folder and not is_model_file(name.name)]
    if entry.projector_path is None:
        return []
    projector = _plain(entry.projector_path)
    others = [path for path in _files(projector.parent) if is_model_file(path.name) and not is_projector(path.name)]
    return [] if set(others) - set(names) else [projector]


def _plain(path: Path) -> Path:
    """Return a path with the links of its folder resolved, its own kept."""
    return Path(os.path.realpath(path.parent)) / path.name


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


# ------------------------------------------------------------------------------------------------ what is left


def _is_gone(folder: Path) -> bool:
    """Remove a folder if it is empty; returns whether it is gone."""
    try:
        folder.rmdir()
    except OSError:
        return not os.path.lexists(folder)
    return True


def _drop_branches(refs: Path, revision: str) -> None:
    """Remove the branches whose commit is not here any more; a link is removed by nobody."""
    for folder, _folders, names in os.walk(refs, topdown=False):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(OSError):
                if not path.is_symlink() and path.stat().st_size <= 64 and path.read_text("ascii") == revision:
                    path.unlink()
        _is_gone(Path(folder))
