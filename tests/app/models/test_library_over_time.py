"""The library over time: scans, copies, a person's words, changed bytes, earlier loads, deletions."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import AppError
from app.models.entry import ModelDefaults
from app.models.fit_types import Measured
from app.models.library import Change, LibraryError
from backends.protocol import LoadParams, MemorySplit
from tests.helpers.gguf_files import (
    U32,
    entry,
    named_model,
    u32,
)
from tests.helpers.libraries import Places, keys, without_starter

GONE = "The file is not there: it was moved, renamed or deleted."
MEASURED = Measured("llama_cpp", "CPU", 4096, "f16", 512, "chat", 1, MemorySplit(weights_bytes=5), floor_bytes=100)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Empty places, and no starter model of this machine."""
    without_starter(monkeypatch)
    return Places(tmp_path)


# --------------------------------------------------------------------------------------------------- scanning


def test_a_scan_finds_what_came_and_forgets_what_went(places: Places) -> None:
    first = named_model("First").write(places.models / "a.gguf")
    library = places.library()
    assert library.scan().found_count == 1
    first.unlink()
    named_model("Second").write(places.models / "b.gguf")
    summary = library.scan()
    assert (summary.found_count, summary.unchanged_count, summary.problems) == (1, 0, ())
    assert keys(library) == keys(places.library()) == ["Second:F32"]
    assert library.scan().unchanged_count == 1


def test_other_programs_models_are_used_in_place(places: Places) -> None:
    folder = places.root / "home" / ".lmstudio" / "models" / "acme" / "repo"
    folder.mkdir(parents=True)
    path = named_model("Studio").write(folder / "studio.gguf")
    library = places.library()
    progress = []
    library.scan(progress.append)
    assert [(found.path, found.origin) for found in library.entries()] == [(path, "lm_studio")]
    assert (progress[-1].looked_count, progress[-1].listed_count, progress[-1].found_count) == (1, 1, 1)


def test_an_added_folder_that_is_not_there_keeps_its_models_with_that_fault(places: Places) -> None:
    drive = places.root / "drive"
    drive.mkdir()
    named_model("Far").write(drive / "far.gguf")
    library = places.library()
    library.add_folder(drive)
    library.scan()
    drive.rename(places.root / "unplugged")
    assert library.scan().problems == (f"The folder {drive} is not there. Its drive may not be connected.",)
    (found,) = library.entries()
    assert found.key == "Far:F32"
    assert found.fault == f"The folder {drive} is not there now. Its drive may not be connected."
    (places.root / "unplugged").rename(drive)
    library.scan()
    assert [(found.key, found.fault) for found in library.entries()] == [("Far:F32", "")]


def test_a_folder_that_is_removed_takes_its_models_along_and_leaves_the_files(places: Places) -> None:
    path = named_model("Far").write(places.elsewhere / "far.gguf")
    library = places.library()
    library.add_folder(places.elsewhere)
    library.add_folder(places.elsewhere)
    library.scan()
    library.set_note("Far:F32", "mine")
    library.remove_folder(places.elsewhere)
    assert (library.entries(), library.folders(), path.exists()) == ([], [], True)
    with pytest.raises(LibraryError, match="was not added"):
        library.remove_folder(places.elsewhere)
    assert library.import_path(path).note == "mine"


def test_something_else_than_a_folder_is_not_added(places: Places) -> None:
    with pytest.raises(LibraryError, match="is no folder that can be looked into"):
        places.library().add_folder(places.elsewhere / "none")


def test_an_imported_file_in_a_scanned_folder_stays_imported(places: Places) -> None:
    folder = places.root / "home" / ".lmstudio" / "models" / "acme" / "repo"
    folder.mkdir(parents=True)
    path = named_model("Studio").write(folder / "studio.gguf")
    library = places.library()
    library.import_path(path)
    library.scan()
    assert library.entries()[0].origin == "imported"
    path.unlink()
    library.scan()
    assert [(found.origin, found.fault) for found in library.entries()] == [("imported", GONE)]


def test_a_cancelled_scan_forgets_nothing(places: Places) -> None:
    named_model("First").write(places.models / "a.gguf").unlink()
    named_model("Kept").write(places.models / "b.gguf")
    library = places.library()
    library.scan()
    (places.models / "b.gguf").unlink()
    cancel = threading.Event()
    cancel.set()
    assert library.scan(cancel=cancel).is_cancelled
    assert keys(library) == ["Kept:F32"]


def test_during_a_scan_the_entries_are_those_of_before(places: Places) -> None:
    named_model("Before").write(places.models / "a.gguf")
    library = places.library()
    library.scan()
    named_model("Later").write(places.models / "b.gguf")
    seen = []
    library.scan(lambda _progress: seen.append(keys(library)))
    assert seen == [["Before:F32"]] * len(seen)
    assert keys(library) == ["Before:F32", "Later:F32"]


# ---------------------------------------------------------------------------------------- copies, notes, defaults


def test_copies_are_one_entry_and_each_of_them_can_be_named(places: Places) -> None:
    ours = named_model("Same").write(places.models / "ours.gguf")
    copy = named_model("Same").write(places.elsewhere / "copy.gguf")
    (places.elsewhere / "hard.gguf").hardlink_to(copy)
    (places.elsewhere / "soft.gguf").symlink_to(ours)
    library = places.library()
    library.add_folder(places.elsewhere)
    library.scan()
    (found,) = library.entries()
    assert (found.key, found.path) == ("Same:F32", ours)
    (group,) = library.duplicates()
    assert [(one.key, one.path.parent) for one in group] == [
        ("Same:F32", places.models),
        (group[1].key, places.elsewhere),
    ]
    assert group[1].key.startswith("Same:F32#")
    assert library.find(group[1].key) == group[1]
    assert library.find(str(group[1].path)) == group[1]
    use = library.disk_use()
    assert use.duplicate_bytes == copy.stat().st_blocks * 512
    assert use.on_disk_bytes == 2 * use.duplicate_bytes


def test_notes_and_defaults_outlive_the_program_and_belong_to_the_bytes(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    library.import_path(path)
    wanted = ModelDefaults(context_tokens=8192, kv_type="q8_0", temperature=0.2, system_prompt="Be kind.")
    library.set_note("Mine", "  good at SQL \ud800")
    library.set_defaults("Mine", wanted)
    for one in (library, places.library()):
        (found,) = one.entries()
        assert (found.note, found.defaults) == ("good at SQL �", wanted)
    path.rename(places.models / "moved.gguf")
    library.scan()
    assert library.find("mine").path == places.models / "moved.gguf"
    assert (library.find("mine").note, library.find("mine").defaults) == ("good at SQL �", wanted)


def test_a_note_survives_that_its_file_is_replaced_or_forgotten(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    library.import_path(path)
    library.set_note("Mine", "old but good")
    named_model("Mine", entry("x.version", U32, u32(2))).write(path)
    library.refresh()
    assert library.find("mine").note == "old but good"
    library.remove("mine")
    assert library.import_path(path).note == "old but good"


def test_the_starter_and_broken_models_can_have_a_note_too(places: Places) -> None:
    named_model("Starter").write(places.install / "models" / "s.gguf")
    (places.models / "broken.gguf").write_bytes(b"GGUF")
    library = places.library()
    for key in ("Starter:F32", "broken"):
        library.set_note(key, f"of {key}")
    assert [(found.key, found.note) for found in places.library().entries()] == [
        ("Starter:F32", "of Starter:F32"),
        ("broken", "of broken"),
    ]
    named_model("Whole").write(places.models / "broken.gguf")
    library.scan()
    assert library.find("Whole").note == "of broken"


def test_words_have_bounds(places: Places) -> None:
    named_model("Mine").write(places.models / "mine.gguf")
    library = places.library()
    library.set_note("Mine", "x" * 10_000)
    with pytest.raises(LibraryError, match=r"too long: 10,001 characters of at most 10,000"):
        library.set_note("Mine", "x" * 10_001)
    for wrong in (
        ModelDefaults(context_tokens=-1),
        ModelDefaults(kv_type="q2"),
        ModelDefaults(temperature=99.0),
        ModelDefaults(top_k="many"),
    ):
        with pytest.raises(AppError):
            library.set_defaults("Mine", wrong)
    assert (library.find("Mine").note, library.find("Mine").defaults) == ("x" * 10_000, ModelDefaults())
    with pytest.raises(LibraryError, match="No model is called"):
        library.set_note("Other", "")


def test_a_note_shows_on_every_copy_and_without_reading_everything_again(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (places.models, places.elsewhere):
        named_model("Same").write(folder / "s.gguf")
    library = places.library()
    library.add_folder(places.elsewhere)
    library.scan()
    library.entries()
    monkeypatch.setattr("app.models.library_core.read_stored", None)
    library.set_note("Same:F32#2", "both")
    assert [one.note for one in library.duplicates()[0]] == ["both", "both"]


# ------------------------------------------------------------------------------------------ bytes and changes


def test_a_hash_becomes_the_identity_and_everything_moves_along(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    library.import_path(path)
    library.set_note("Mine", "mine")
    library.record(path, MEASURED)
    progress = []
    sha256 = library.hash("Mine", lambda done, total: progress.append((done, total)))
    (found,) = library.entries()
    assert (found.identity, found.note) == (f"sha256:{sha256}", "mine")
    assert library.measured(found) == [MEASURED]
    assert progress == [(found.size_bytes, found.size_bytes)]
    assert library.change_of(found) is Change.UNCHANGED
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(LibraryError, match="was stopped"):
        library.hash("Mine", cancel=cancel)


def test_a_change_is_noticed_and_can_be_accepted(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    found = library.import_path(path)
    assert (library.looks_changed(found), library.change_of(found)) == (False, Change.UNCHANGED)
    os.utime(path, ns=(1, 1))
    assert (library.looks_changed(found), library.change_of(found)) == (True, Change.UNCHANGED)
    assert library.looks_changed(found) is False
    data = bytearray(path.read_bytes())
    data[-1] = 1
    path.write_bytes(data)
    library.scan()  # seeing it is not agreeing to it
    assert library.change_of(found) is Change.CHANGED
    library.accept_change(found)
    assert library.change_of(found) is Change.UNCHANGED
    path.unlink()
    assert library.change_of(found) is Change.GONE


def test_nothing_is_known_of_a_file_that_is_not_listed(places: Places) -> None:
    path = named_model("Loose").write(places.elsewhere / "l.gguf")
    library = places.library()
    found = library.find(str(path))
    assert (library.looks_changed(found), library.change_of(found)) == (False, Change.UNKNOWN)


# ------------------------------------------------------------------------------------------------ earlier loads


def test_what_loads_took_is_kept_newest_first_and_bounded(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    found = library.import_path(path)
    for number in range(25):
        library.record(path, replace(MEASURED, context_tokens=number))
    for one in (library, places.library()):
        assert [record.context_tokens for record in one.measured(found)] == list(range(24, 4, -1))
        assert one.floors() == {"llama_cpp": 100}


def test_loads_of_a_file_that_is_not_listed_are_kept_too(places: Places) -> None:
    path = named_model("Loose").write(places.elsewhere / "l.gguf")
    library = places.library()
    library.record(path, MEASURED)
    assert library.measured(library.find(str(path))) == [MEASURED]
    assert places.library().measured(places.library().import_path(path)) == [MEASURED]
    library.record(places.elsewhere / "none.gguf", MEASURED)  # nobody knows what that was


def test_probes_are_kept_by_what_decides_them(places: Places) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    found = library.import_path(path)
    params, split = LoadParams(context_tokens=4096), MemorySplit(kv_reserved_bytes=7)
    library.record_probe(found, params, split)
    for one in (library, places.library()):
        assert one.probed(found, params) == split
        assert one.probed(found, LoadParams(context_tokens=4096, threads=3)) == split
        for other in (LoadParams(), LoadParams(context_tokens=4096, kv_type="q8_0")):
            assert one.probed(found, other) is None


def test_a_machines_bandwidth_is_kept_by_machine(places: Places) -> None:
    library = places.library()
    library.set_bandwidth("this", 1.5e10)
    for one in (library, places.library()):
        assert (one.bandwidth("this"), one.bandwidth("other")) == (1.5e10, 0.0)


def test_what_the_allocator_told_of_the_starter_survives_the_first_scan(places: Places, monkeypatch) -> None:
    path = named_model("Starter").write(places.root / "starter.gguf")
    library = places.library(CUTAWAY_STARTER=str(path))
    params, split = LoadParams(context_tokens=512), MemorySplit(kv_reserved_bytes=7)
    starter = library.starter()
    assert starter is not None
    library.record_probe(starter, params, split)
    library.scan()
    assert library.probed(library.entries()[0], params) == split
