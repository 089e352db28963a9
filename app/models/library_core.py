"""The library's inner half: what is stored and what is shown, kept in step under one lock.

Knows the store, the places and the view; the words that a person reads are the library's own.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from app.models import library_list, library_rows
from app.models.entry import FoundModel, ModelDefaults, ModelEntry
from app.models.library_places import ModelPlaces, absolute, is_same_file
from app.models.library_rows import IMPORTED, ModelRow, PathRow
from app.models.library_scan import IS_SCANNED, ScanProgress, scan_into
from app.models.library_state import (
    State,
    Stored,
    build_state,
    read_stored,
    record_of,
    single_entry,
    with_words,
)
from app.models.library_store import LibraryStore
from app.models.library_words import LibraryError
from app.models.model_name import file_name
from app.models.scan_messages import ScanSummary
from app.models.sources import Source

_FILE_NAME, _OLD_LIST_NAME = "library.sqlite3", "library.json"
# Of an old list as many are looked at on the spot; the next scan looks at the others.
_FIRST_LOOKS = 64
_NO_TOKEN = -1  # that of no database
_T = TypeVar("_T")


class LibraryCore:
    """What is stored and what is shown.

    Attributes:
        store: the database.
        places: what is looked at without a scan.
        _state: what was read last; None when it must be read again.
        _scans: how many scans are under way; until they end, what was read before is shown.
        _patches: how many changes were made in memory without reading again.
    """

    def __init__(self, data_folder: Path, install_folder: Path, environment: Mapping[str, str] | None) -> None:
        self.store = LibraryStore(data_folder / _FILE_NAME)
        self.places = ModelPlaces(data_folder, install_folder, environment)
        self._old_list = data_folder / _OLD_LIST_NAME
        self._lock = threading.RLock()
        self._scan_lock = threading.Lock()
        self._state: State | None = None
        self._is_taken_over = False
        self._scans = 0
        self._patches = 0

    # ------------------------------------------------------------------------------------------------ reading

    def state(self) -> State:
        """Return what is shown, read again when the database changed since."""
        state = self._state
        if state is not None and (self._scans or state.token == self.store.token()):
            return state
        with self._lock:
            if self._state is None or not self._scans:
                self._state = self._read()
            return self._state

    def latest(self) -> State:
        """Return what was read last, even if another process changed it since: for what is asked a thousand times."""
        return self._state or self.state()

    def _read(self) -> State:
        self.take_over_list()
        token = self.store.token()
        with _no_collection():
            try:
                stored = self.store.read(read_stored, Stored())
            except LibraryError as error:  # what can be shown without it is shown, and the next look tries again
                self.store.notice(str(error))
                stored, token = Stored(), _NO_TOKEN
            newcomers: Sequence[FoundModel] = () if IS_SCANNED in stored.facts else self.places.newcomers()
            return build_state(stored, token, self.places.starters, newcomers)

    def stored_at(self, path: Path) -> tuple[PathRow | None, ModelRow | None]:
        """Return what is stored of a path and of its model."""

        def look(connection: sqlite3.Connection) -> tuple[PathRow | None, ModelRow | None]:
            row = library_rows.read_path(connection, path)
            if row is None or row.model_id is None:
                return row, None
            return row, library_rows.read_model(connection, row.model_id)

        nothing: tuple[PathRow | None, ModelRow | None] = (None, None)
        return self.store.read(look, nothing)

    def listed_at(self, found: FoundModel) -> ModelEntry | None:
        """Return the entry whose file this is, by whatever link or name; None when it is not in the library."""
        view = self.state().view
        path = Path(found.path)
        known = view.by_path.get(str(path))
        if known is not None:
            return known
        ids = self.state().model_ids
        model_id = ids.get(found.identity)
        for entry in view.all_places():
            is_model = entry.identity == found.identity or (
                model_id is not None and ids.get(entry.identity) == model_id
            )
            if entry.identity and is_model and is_same_file(entry.path, path):
                return entry
        return None

    def entry_at(self, path: Path) -> ModelEntry:
        """Return the entry for a path; of a file that is not listed what its header says."""
        known = self.state().view.by_path.get(str(path))
        if known is not None:
            return known
        found = self.places.look(path, IMPORTED)
        return self.listed_at(found) or single_entry(found, None, None)

    # ------------------------------------------------------------------------------------------------ writing

    def change(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change that shows; raises LibraryError when it cannot be written."""
        self.take_over_list()
        changed = self.store.write(change)
        self.forget()
        return changed

    def forget(self) -> None:
        """Have everything read again when it is next asked for."""
        with self._lock:
            self._patches += 1
            self._state = None

    def keep_place(self, entry: ModelEntry) -> None:
        """See to it that an entry is stored with its model, so that something can be said of it.

        Raises:
            LibraryError: it cannot be written.
        """
        row, model = self.stored_at(entry.path)
        if row is not None and model is not None:
            return
        found = None if row is not None else self.places.look(entry.path, entry.origin)

        def keep(connection: sqlite3.Connection) -> None:
            if found is not None:
                root = str(self.places.own_folder) if entry.origin == "folder" else ""
                library_rows.put_found(connection, found, root, 0)
            held = library_rows.read_path(connection, entry.path)
            if held is not None and held.model_id is None:  # its bytes were never read: it is what lies there
                name = hashlib.sha256(os.fsencode(entry.path)).hexdigest()
                library_rows.set_model(connection, entry.path, library_rows.model_for(connection, f"path:{name}"))

        self.change(keep)

    def say(self, entry: ModelEntry, note: str, defaults: ModelDefaults) -> None:
        """Keep what a person says of a model, and show it without reading everything again."""
        self.keep_place(entry)
        told = msgspec.json.encode(defaults).decode()

        def keep(connection: sqlite3.Connection) -> None:
            row = library_rows.read_path(connection, entry.path)
            if row is not None and row.model_id is not None:
                library_rows.set_words(connection, row.model_id, note=note, defaults=told)

        state = self.state()
        self.store.write(keep)
        self.patched(state, with_words(state, entry, note, defaults))

    def patched(self, state: State, now: State) -> None:
        """Show a state that was changed in memory, unless another took its place meanwhile."""
        with self._lock:
            self._patches += 1
            self._state = now if self._state is state else None

    def refresh(self, paths: Iterable[Path] | None) -> None:
        """Look again at these paths; without any, at the starter and at what was imported."""
        self.take_over_list()
        if self._look_again(None if paths is None else [absolute(path) for path in paths]):
            self.forget()

    def _look_again(self, paths: Sequence[Path] | None) -> bool:
        """Keep what changed at these paths; return whether anything did."""
        nothing: list[PathRow] = []
        rows = self.store.read(lambda connection: library_rows.read_pointed_at(connection, paths), nothing)
        known = {os.fsdecode(row.path): record_of(row) for row in rows}
        roots = {os.fsdecode(row.path): os.fsdecode(row.root) for row in rows}
        starters = self.places.starters(known) if paths is None else []
        changed = [found for found in starters if found != known.get(found.path)]
        seen = {found.path for found in starters}
        changed += [now for path in known if path not in seen and (now := self.places.look_again(known[path]))]

        def put(connection: sqlite3.Connection) -> None:
            for found in changed:
                library_rows.put_found(connection, found, roots.get(found.path, ""), 0)

        if changed:
            self.store.write(put)
        return bool(changed)

    def scan(
        self,
        sources: Sequence[Source] | None,
        on_progress: Callable[[ScanProgress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> ScanSummary:
        """Look through these folders, or through all there are; one scan at a time."""
        with self._scan_lock:
            state = self.state()
            with self._lock:
                self._scans += 1
            try:
                self.store.check()
                is_everything = sources is None
                looked = self.places.sources(state.folders) if sources is None else sources
                if is_everything:  # first, so that what was measured of the starter has a place when the scan tidies up
                    self._look_again(None)
                summary = scan_into(self.store, looked, on_progress, cancel, is_everything=is_everything)
                self._read_ahead()
            finally:
                with self._lock:
                    self._scans -= 1
            return summary

    def _read_ahead(self) -> None:
        """Read everything again, so that nobody at the window has to wait for it."""
        before = self._patches
        fresh = self._read()
        with self._lock:
            self._state = fresh if self._patches == before else None

    # ---------------------------------------------------------------------------------------------- the old list

    def take_over_list(self) -> None:
        """Take over what an earlier version of the program imported, once."""
        with self._lock:
            if self._is_taken_over:
                return
            self._is_taken_over = True
            try:
                library_list.take_over(self._old_list, self._keep_imported, self.store.notice)
            except LibraryError as error:  # the list stays for the next start
                self.store.notice(str(error))

    def _keep_imported(self, paths: Sequence[Path]) -> None:
        found = [
            self.places.look(absolute(path), IMPORTED) if number < _FIRST_LOOKS else _unseen(absolute(path))
            for number, path in enumerate(paths)
        ]

        def keep(connection: sqlite3.Connection) -> None:
            for model in found:
                if library_rows.read_path(connection, Path(model.path)) is None:
                    library_rows.put_found(connection, model, "", 0)

        if found:
            self.store.write(keep)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from looking for garbage: of ten thousand models none is, and each look takes its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _unseen(path: Path) -> FoundModel:
    """Return a model that was not looked at yet: without a stamp, so that the next look reads it."""
    return FoundModel(path=str(path), origin=IMPORTED, parts=(str(path),), name=file_name(path))
