"""Whether a model's files are still those that the library came to know.

A file whose size and time of change are as they were is taken to be the same; else its hash decides where one is
known, and its head and tail where none is. Takes its time: call it on a background thread. Knows no window.
"""

from __future__ import annotations

import enum
import sqlite3
import threading
from collections.abc import Callable

from app.i18n import _
from app.models import library_rows
from app.models.bounded_file import HeaderError
from app.models.entry import ModelEntry
from app.models.identity import FULL, full_identity, provisional_identity, weight_files
from app.models.library_rows import Trust
from app.models.library_store import LibraryStore
from app.models.library_words import LibraryError
from app.models.source_candidate import size_of, stamp_of
from backends.errors import ErrorCode

OnProgress = Callable[[int, int], None]


class Change(enum.Enum):
    """What became of a model's files since the library came to know them."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # other bytes than before; load it only if the person agrees
    GONE = "gone"
    UNKNOWN = "unknown"  # nothing is known of it, or it cannot be read


def looks_changed(store: LibraryStore, entry: ModelEntry) -> bool:
    """Say whether the files must be read to know whether they changed; looks at sizes and times only."""
    trust = _trust(store, entry)
    return trust is not None and bool(trust.identity) and _stamp(entry) not in ("", trust.stamp)


def change_of(store: LibraryStore, entry: ModelEntry) -> Change:
    """Return what became of a model's files; reads all of a file whose hash is known and that looks different."""
    trust, stamp = _trust(store, entry), _stamp(entry)
    if not stamp:
        return Change.GONE
    if trust is None or not trust.identity:
        return Change.UNKNOWN
    if stamp == trust.stamp:
        return Change.UNCHANGED
    files = weight_files(entry.parts or (entry.path,))
    try:
        is_hashed = trust.identity.startswith(FULL)
        now = full_identity(files) if is_hashed else provisional_identity(files)
    except HeaderError as error:
        return Change.GONE if error.code is ErrorCode.FILE_MISSING else Change.UNKNOWN
    if now != trust.identity:
        return Change.CHANGED
    # The bytes are the same, so the next look may be a short one.
    _set_trust(store, entry, Trust(stamp, trust.identity))
    return Change.UNCHANGED


def accept(store: LibraryStore, entry: ModelEntry) -> None:
    """Take a model's files as they are now for the ones to trust: the person agreed.

    Raises:
        LibraryError: they cannot be read, or this cannot be written.
    """
    try:
        identity = provisional_identity(weight_files(entry.parts or (entry.path,)))
    except HeaderError as error:
        raise LibraryError(_unreadable(entry, error)) from error
    _set_trust(store, entry, Trust(_stamp(entry), identity))


def hash_files(
    store: LibraryStore, entry: ModelEntry, on_progress: OnProgress | None, cancel: threading.Event | None
) -> str:
    """Read all of a listed model's files and keep the SHA-256; return it in hex.

    Raises:
        LibraryError: a file cannot be read, changed meanwhile, or it was stopped.
    """
    files = weight_files(entry.parts or (entry.path,))
    stamp = _stamp(entry)

    total_bytes = size_of(files)

    def go_on(done_bytes: int) -> bool:
        if on_progress is not None:
            on_progress(done_bytes, total_bytes)
        return cancel is None or not cancel.is_set()

    try:
        provisional = provisional_identity(files)
        identity = full_identity(files, go_on)
    except HeaderError as error:
        raise LibraryError(_unreadable(entry, error)) from error
    if identity is None:
        raise LibraryError(_("Reading {name} was stopped.").format(name=entry.name))
    if _stamp(entry) != stamp:
        raise LibraryError(_("{name} changed while it was read. Try again.").format(name=entry.name))
    sha256 = identity.removeprefix(FULL)

    def keep(connection: sqlite3.Connection) -> None:
        known = library_rows.read_trust(connection, entry.path)
        library_rows.set_hash(connection, entry.path, sha256, provisional)
        if known is None or known.identity in ("", provisional, identity):
            library_rows.set_trust(connection, entry.path, Trust(stamp, identity))
        else:  # other bytes than those that are trusted: the next load must ask
            library_rows.set_trust(connection, entry.path, Trust("", known.identity))

    store.write(keep)
    return sha256


def _trust(store: LibraryStore, entry: ModelEntry) -> Trust | None:
    return store.read(lambda connection: library_rows.read_trust(connection, entry.path), None)


def _set_trust(store: LibraryStore, entry: ModelEntry, trust: Trust) -> None:
    store.write(lambda connection: library_rows.set_trust(connection, entry.path, trust))


def _stamp(entry: ModelEntry) -> str:
    return stamp_of(entry.parts or (entry.path,), entry.projector_path)


def _unreadable(entry: ModelEntry, error: HeaderError) -> str:
    return _("{name} could not be read. {detail}").format(name=entry.name, detail=error)
