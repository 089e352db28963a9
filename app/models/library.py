"""The library: which models there are, by what names, what a person says of them, what is wrong with the broken ones.

Knows headers, not engines: a listed model has a header that can be true, no more. Models are used where they lie; no
file is ever copied or changed, and none is deleted but by `delete`. Any thread may ask; what takes time says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from app.i18n import _
from app.models import library_find, library_records, library_rows, library_trust, removal
from app.models.entry import ModelDefaults, ModelEntry, Origin
from app.models.fit_types import Measured
from app.models.library_core import LibraryCore
from app.models.library_disk import DiskUse, disk_use, duplicates
from app.models.library_places import absolute
from app.models.library_rows import IMPORTED, STARTER
from app.models.library_scan import ScanProgress
from app.models.library_state import record_of, single_entry
from app.models.library_trust import Change
from app.models.library_words import LibraryError
from app.models.removal import Deletion
from app.models.scan_messages import ScanSummary
from app.models.sources import added_source
from app.settings_fields import checked
from backends.protocol import LoadParams, MemorySplit

__all__ = [
    "Change",
    "Deletion",
    "DiskUse",
    "Library",
    "LibraryError",
    "ModelEntry",
    "Origin",
    "ScanProgress",
    "ScanSummary",
]

MAX_NOTE_CHARACTERS = 10_000


class Library:
    """The models of this person and this installation.

    Attributes:
        _core: what is stored and what is shown.
    """

    def __init__(self, data_folder: Path, install_folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._core = LibraryCore(data_folder, install_folder, environment)

    def close(self) -> None:
        """Close the database; what was read stays."""
        self._core.store.close()

    # ------------------------------------------------------------------------------------------- what there is

    def entries(self) -> list[ModelEntry]:
        """Return every model once, the starter first; damaged and vanished ones stay, with their fault.

        From memory, or from the database when it changed. Only the starter is looked at on disk, and our own folder
        as long as no scan was made.
        """
        return list(self._core.state().view.entries)

    def notices(self) -> list[str]:
        """Return what a person must be told about the library itself, in words."""
        self._core.take_over_list()
        return self._core.store.notices()

    def starter(self) -> ModelEntry | None:
        """Return the starter model if it can be used, without reading the rest of the library; None without one."""
        for path in self._core.places.starter_paths():
            row, model = self._core.stored_at(path)
            known = record_of(row) if row is not None else None
            found = self._core.places.look(path, STARTER, known)
            if not found.fault:
                return single_entry(found, row, model)
        return None

    def find(self, text: str) -> ModelEntry:
        """Return the model with this key, name, path, or unique beginning of a key or name.

        A path need not be in the library. The entry may have a fault: look before use.

        Raises:
            LibraryError: no model or more than one fits; the text lists what is there.
        """
        return library_find.find(text, self._core.state().view, self._core.entry_at)

    def duplicates(self) -> list[tuple[ModelEntry, ...]]:
        """Return the models that take the disk more than once, an entry for each copy; looks at those files."""
        return duplicates(self._core.state().view)

    def disk_use(self) -> DiskUse:
        """Return what the library takes on disk; looks at every file, so call it on a background thread."""
        return disk_use(self._core.state().view)

    # ------------------------------------------------------------------------------------------ import, remove

    def import_path(self, path: Path) -> ModelEntry:
        """Add a model to the library where it lies, as it is now, and return it; twice is once.

        Takes a GGUF, any part of a split set, a file or folder of safetensors. Any other folder that holds models is
        added as one to look into, which takes a scan of it.

        Raises:
            LibraryError: the file is no usable model, or the library cannot be written. Nothing changed then.
        """
        path = absolute(path)
        found = self._core.places.look(path, IMPORTED)
        if found.fault and path.is_dir():
            return self._import_folder(path)
        if found.fault:
            raise LibraryError(_("{path} was not added. {fault}").format(path=path, fault=found.fault))
        known = self._core.listed_at(found)
        if known is None or known.fault:
            self._core.change(lambda connection: library_rows.put_found(connection, found, "", 0))
            known = self._core.listed_at(found)
        if known is None:
            raise LibraryError(_("{path} was not added. Try again.").format(path=path))
        if library_trust.looks_changed(self._core.store, known):  # the person points at the file as it is now
            library_trust.accept(self._core.store, known)
        return known

    def remove(self, key: str) -> ModelEntry:
        """Forget an imported model and return what it was; its file, and what was said of it, stay.

        Raises:
            LibraryError: no such model, it was not imported, or the library cannot be written.
        """
        entry = self.find(key)
        row, _model = self._core.stored_at(entry.path)
        if row is None or row.origin != IMPORTED or entry.origin != IMPORTED:
            raise LibraryError(
                _("{name} was not imported, so it cannot be forgotten. Its file is {path}.").format(
                    name=entry.name, path=entry.path
                )
            )
        self._core.change(lambda connection: library_rows.drop_path(connection, entry.path))
        return entry

    def delete_preview(self, key: str, in_use: Collection[Path] = ()) -> Deletion:
        """Return what deleting a model's files would do, or why they may not be deleted; changes nothing.

        Raises:
            LibraryError: no such model.
        """
        return removal.preview(self.find(key), self._core.places.ownership(in_use))

    def delete(
        self,
        key: str,
        *,
        forever: bool = False,
        in_use: Collection[Path] = (),
        expected: Deletion | None = None,
    ) -> Deletion:
        """Delete a model's files and return what was done; into the trash, where there is one.

        Args:
            key: see find().
            forever: past the trash.
            in_use: what an engine has open; such a model is not deleted.
            expected: the preview that the person agreed to.

        Raises:
            LibraryError: it was refused, the files changed since the preview, or the system refused; the text says
                what is left.
        """
        entry = self.find(key)
        deletion = removal.preview(entry, self._core.places.ownership(in_use))
        if expected is not None and not deletion.refusal and deletion.marks != expected.marks:
            raise LibraryError(_("The files changed since you were asked. Nothing was deleted. Look again."))
        try:
            done = removal.delete(deletion, forever=forever)
        except LibraryError:
            if not deletion.refusal:
                self.refresh([entry.path])
            raise
        self._core.change(lambda connection: library_rows.drop_path(connection, entry.path))
        return done

    def undo_delete(self, entry: ModelEntry, done: Deletion) -> None:
        """Take a model's files back from the trash, and list it again; what was said of it is there still.

        Raises:
            LibraryError: they are not in the trash any more, or the library cannot be written.
        """
        removal.undo(done)
        found = self._core.places.look(entry.path, entry.origin)
        self._core.change(lambda connection: library_rows.put_found(connection, found, "", 0))

    # -------------------------------------------------------------------------------------------- looking around

    def folders(self) -> list[Path]:
        """Return the folders that the person added."""
        return list(self._core.state().folders)

    def add_folder(self, path: Path) -> None:
        """Look into this folder too, from the next scan on; twice is once.

        Raises:
            LibraryError: it is no folder, or the library cannot be written.
        """
        folder = absolute(path)
        if not folder.is_dir():
            raise LibraryError(_("{path} is no folder that can be looked into.").format(path=folder))
        self._core.change(lambda connection: library_rows.put_folder(connection, folder, time.time()))

    def remove_folder(self, path: Path) -> None:
        """Look into this folder no more and forget what was found in it; its files stay.

        Raises:
            LibraryError: it was not added, or the library cannot be written.
        """
        folder = absolute(path)
        if not self._core.change(lambda connection: library_rows.drop_folder(connection, folder)):
            raise LibraryError(_("{path} was not added.").format(path=folder))

    def scan(
        self, on_progress: Callable[[ScanProgress], None] | None = None, cancel: threading.Event | None = None
    ) -> ScanSummary:
        """Look through every folder for models; blocks, so call it on a background thread. Then entries() is new.

        Raises:
            LibraryError: what was found cannot be written; what was written before is kept.
        """
        return self._core.scan(None, on_progress, cancel)

    def refresh(self, paths: Iterable[Path] | None = None) -> None:
        """Look again at these paths; without any, at the starter and at what was imported. Looks at each file.

        Raises:
            LibraryError: the library cannot be written.
        """
        self._core.refresh(paths)

    # ---------------------------------------------------------------------------------------- a person's words

    def set_note(self, key: str, text: str) -> None:
        """Keep a person's own words about a model.

        Raises:
            LibraryError: no such model, the note is too long, or the library cannot be written.
        """
        note = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip()
        if len(note) > MAX_NOTE_CHARACTERS:
            raise LibraryError(
                _("The note is too long: {count} characters of at most {limit}. The note stays as it was.").format(
                    count=f"{len(note):,}", limit=f"{MAX_NOTE_CHARACTERS:,}"
                )
            )
        entry = self.find(key)
        self._core.say(entry, note, entry.defaults)

    def set_defaults(self, key: str, defaults: ModelDefaults) -> None:
        """Keep what a person wants for a model.

        Raises:
            LibraryError: no such model, or the library cannot be written.
            AppError: a value lies outside the bounds of its setting.
        """
        held = {
            name: checked(name, value) for name, value in msgspec.structs.asdict(defaults).items() if value is not None
        }
        entry = self.find(key)
        self._core.say(entry, entry.note, ModelDefaults(**held))

    # -------------------------------------------------------------------------------------- what the bytes say

    def hash(
        self,
        key: str,
        on_progress: Callable[[int, int], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> str:
        """Read all of a model's files and keep their SHA-256; blocks, for minutes with a large model.

        Args:
            key: see find().
            on_progress: told the bytes done and of how many, on the calling thread.
            cancel: ends it when set.

        Returns:
            The SHA-256 in hex; of a split model that of its parts' digests.

        Raises:
            LibraryError: no such model, a file cannot be read, it changed meanwhile, or it was stopped.
        """
        entry = self.find(key)
        self._core.keep_place(entry)
        sha256 = library_trust.hash_files(self._core.store, entry, on_progress, cancel)
        self._core.forget()
        return sha256

    def looks_changed(self, entry: ModelEntry) -> bool:
        """Say whether change_of() must read the file; looks at sizes and times only."""
        return library_trust.looks_changed(self._core.store, entry)

    def change_of(self, entry: ModelEntry) -> Change:
        """Return whether a model's files are still those that the library came to know; may read all of them."""
        return library_trust.change_of(self._core.store, entry)

    def accept_change(self, entry: ModelEntry) -> None:
        """Take a model's files as they are now for the ones to trust: the person agreed.

        Raises:
            LibraryError: they cannot be read, or the library cannot be written.
        """
        self.refresh([entry.path])
        library_trust.accept(self._core.store, entry)

    # -------------------------------------------------------------------------------------------- earlier loads

    def record(self, path: Path, measured: Measured) -> None:
        """Keep what a load of this file took, whether or not it is listed.

        Raises:
            LibraryError: the library cannot be written.
        """
        path = absolute(path)
        identity = self._core.entry_at(path).identity
        if identity:
            library_records.keep_load(self._core, path, identity, measured)

    def measured(self, entry: ModelEntry) -> list[Measured]:
        """Return what loads of a model took on this machine, the newest first."""
        return library_records.measured_of(self._core.latest(), entry)

    def record_probe(self, entry: ModelEntry, params: LoadParams, split: MemorySplit) -> None:
        """Keep what the engine's allocator told of a model for these params.

        Raises:
            LibraryError: the library cannot be written.
        """
        if entry.identity:
            library_records.keep_probe(self._core, entry, params, split)

    def probed(self, entry: ModelEntry, params: LoadParams) -> MemorySplit | None:
        """Return what the engine's allocator told for these params; None when it was not asked."""
        return library_records.probed_of(self._core.latest(), entry, params)

    def floors(self) -> dict[str, int]:
        """Return what a worker took here before any model, in bytes by backend."""
        return library_records.floors_of(self._core.latest())

    def bandwidth(self, machine_key: str) -> float:
        """Return a machine's measured memory read bandwidth in bytes/s; 0 when it was not measured."""
        return library_records.bandwidth_of(self._core.latest(), machine_key)

    def set_bandwidth(self, machine_key: str, bytes_per_s: float) -> None:
        """Keep a machine's measured memory read bandwidth.

        Raises:
            LibraryError: the library cannot be written.
        """
        library_records.keep_bandwidth(self._core, machine_key, bytes_per_s)

    def _import_folder(self, folder: Path) -> ModelEntry:
        """Add a folder to look into, look into it, and return the first model in it."""
        was_added = folder in self.folders()
        self.add_folder(folder)
        summary = self._core.scan([added_source(folder)])
        inside = [entry for entry in self._core.state().view.all_places() if entry.path.is_relative_to(folder)]
        sound = [entry for entry in inside if not entry.fault]
        if not sound:
            if not was_added:
                self.remove_folder(folder)
            fault = " ".join([*summary.problems, *(entry.fault for entry in inside[:1])])
            words = _("{path} holds no model that can be used. {fault}")
            raise LibraryError(words.format(path=folder, fault=fault).strip())
        return sound[0]
