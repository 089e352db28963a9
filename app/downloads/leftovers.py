"""Unfinished files on the disk that no download knows: found, shown as what they are, deleted when a person says so.

A file that somebody is fetching at this moment is left alone, whoever that is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from app.downloads import words as say
from app.downloads.cache_layout import CacheLayout, discard_part, sidecar_path
from app.downloads.entry import Entry
from app.downloads.faults import DownloadError
from app.downloads.file_lock import FileLock
from app.downloads.sidecar import read_sidecar
from app.downloads.types import DownloadState, FileRef
from app.errors import one_line

_log = logging.getLogger(__name__)


def find_leftovers(layout: CacheLayout, known: Collection[Path], endpoint: str) -> list[Entry]:
    """Return a download at rest for each unfinished file that is not known.

    Args:
        layout: the cache.
        known: the parts of the downloads that are listed already.
        endpoint: the hub that they are fetched from, should they go on.
    """
    return [_entry(layout, part, endpoint) for part in layout.parts() if part not in known and not _in_use(part)]


def _entry(layout: CacheLayout, part: Path, endpoint: str) -> Entry:
    note = read_sidecar(sidecar_path(part))
    if note is not None:
        file = note.file(endpoint)
        try:
            is_its_own = layout.place(file).part == part
        except DownloadError:  # a note that was forged
            is_its_own = False
        if is_its_own:
            title = f"{file.repo} · {file.path}"
            found = Entry(title, (file,), branch="", part=part, have_bytes={0: note.flushed_bytes})
            found.rest(DownloadState.PAUSED, say.leftover_words(note.flushed_bytes), "resume")
            return found
    size_bytes = _size_bytes(part)
    found = Entry(one_line(part.parent.parent.name, 120), (), branch="", part=part, have_bytes={0: size_bytes})
    found.rest(DownloadState.FAILED, say.nameless_words(size_bytes))
    return found


def delete_parts(layout: CacheLayout, files: Sequence[FileRef], part: Path | None) -> None:
    """Delete what is unfinished of a download; what cannot be deleted stays and is found again.

    Args:
        layout: the cache.
        files: of the download.
        part: of a leftover, its file.
    """
    parts = [] if part is None else [part]
    for file in files:
        try:
            parts.append(layout.place(file).part)
        except DownloadError:
            continue
    for path in dict.fromkeys(parts):
        lock = FileLock(_lock_path(path))
        try:
            if os.path.lexists(path) and lock.take():
                discard_part(path)
        except OSError as error:
            _log.warning("An unfinished file could not be deleted: %s", error.strerror)
        finally:
            lock.release()


def _in_use(part: Path) -> bool:
    lock = FileLock(_lock_path(part))
    try:
        return not lock.take()
    except OSError:
        return False
    finally:
        lock.release()


def _lock_path(part: Path) -> Path:
    """Return the lock of a part, by the part's own place in the cache; see Place."""
    repo_folder = part.parent.parent
    return repo_folder.parent / ".locks" / repo_folder.name / f"{part.stem}.lock"


def _size_bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
