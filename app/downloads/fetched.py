"""What this program itself put into the hub cache: for deleting it here, and for asking what is newer at the hub.

The cache belongs to every program that reads it. A file counts as ours only where we received its bytes or gave it its
name, and only as long as those bytes are the ones that we left. Kept in our own data folder; knows no server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from app.atomic_file import replace_file
from app.downloads.file_lock import FileLock
from app.downloads.types import FileRef

_log = logging.getLogger(__name__)

_FILE_NAME, _LOCK_NAME = "fetched.json", "fetched.lock"
_MAX_BYTES = 16 * 2**20
_PATIENCE_S, _POLL_S = 2.0, 0.02


class FetchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that a download brought to its place.

    Attributes:
        file: at its commit.
        has_bytes: whether we received its bytes; else they lay in the cache before, and we only gave them a name.
        has_name: whether the name in the snapshot is ours; else it was there before.
        changed_ns: when its bytes were written; other bytes of that name are not ours.
    """

    file: FileRef
    has_bytes: bool
    has_name: bool
    changed_ns: int


class FetchedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What one download brought.

    Attributes:
        title: of the download.
        branch: which branch its commit was the newest of; "" for an older commit that was asked for by its name.
        fetched_at: when its last file came, in seconds since 1970.
        files: in the order in which they came.
    """

    title: str
    branch: str
    fetched_at: float
    files: tuple[FetchedFile, ...] = ()

    @property
    def refs(self) -> tuple[FileRef, ...]:
        """Its files at their commit."""
        return tuple(one.file for one in self.files)


class _Stored(msgspec.Struct, kw_only=True):
    format: int = 1
    models: list[FetchedModel] = []


class FetchedRecord:
    """The record on the disk. Any thread and any number of programs may use it at once.

    Args:
        folder: of this person's data.
        now: seconds since 1970.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._path = folder / _FILE_NAME
        self._lock_path = folder / _LOCK_NAME
        self._now = now

    def models(self) -> list[FetchedModel]:
        """Return what was fetched, oldest first; some of it may be gone. A record that cannot be read is empty."""
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BYTES), type=_Stored).models
        except FileNotFoundError:
            return []
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            _log.warning("What was downloaded before cannot be told: %s", type(error).__name__)
            return []

    def note(self, title: str, branch: str, found: FetchedFile) -> None:
        """Add a file that came; one that we received the bytes of for another commit stays ours.

        Raises:
            OSError: it could not be written.
        """
        with self._changing() as models:
            same = [one for model in models for one in model.files if _is_same_bytes(one, found)]
            has_name = any(one.has_name for one in same if _place_of(one.file) == _place_of(found.file))
            found = msgspec.structs.replace(
                found,
                has_bytes=found.has_bytes or any(one.has_bytes for one in same),
                has_name=found.has_name or has_name,
            )
            place = next((number for number, one in enumerate(models) if _is_of(one, title, found.file)), None)
            before = models.pop(place).files if place is not None else ()
            others = (one for one in before if _place_of(one.file) != _place_of(found.file))
            files = (*others, found)
            models.append(FetchedModel(title=title, branch=branch, fetched_at=self._now(), files=files))

    def drop(self, files: Collection[FileRef]) -> None:
        """Forget files that were deleted for good; raises OSError where it could not be written."""
        gone = set(map(_place_of, files))
        with self._changing() as models:
            left = []
            for model in models:
                kept = tuple(one for one in model.files if _place_of(one.file) not in gone)
                left += [msgspec.structs.replace(model, files=kept)] if kept else []
            models[:] = left

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[FetchedModel]]:
        """Give what is recorded to whoever changes it, and write it down."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._lock_path)
        deadline_s = time.monotonic() + _PATIENCE_S
        while not lock.take() and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        try:
            models = self.models()
            yield models
            replace_file(self._path, msgspec.json.encode(_Stored(models=models)))
        finally:
            lock.release()


def fetched_file(file: FileRef, path: Path, *, has_bytes: bool, has_name: bool) -> FetchedFile:
    """Return the record of a file that is in its place now; raises OSError where it is not."""
    changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 - of the bytes behind the name
    return FetchedFile(file=file, has_bytes=has_bytes, has_name=has_name, changed_ns=changed_ns)


def _is_of(model: FetchedModel, title: str, file: FileRef) -> bool:
    first = model.files[0].file if model.files else None
    return model.title == title and first is not None and (first.repo, first.revision) == (file.repo, file.revision)


def _is_same_bytes(one: FetchedFile, other: FetchedFile) -> bool:
    name, others = one.file.etag or one.file.sha256, other.file.etag or other.file.sha256
    return bool(name) and (one.file.repo, name, one.changed_ns) == (other.file.repo, others, other.changed_ns)


def _place_of(file: FileRef) -> tuple[str, str, str]:
    return file.repo, file.revision, file.path
