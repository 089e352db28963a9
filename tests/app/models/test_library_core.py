"""What is stored and what is shown, kept in step: threads, patches, ten thousand rows."""

from __future__ import annotations

import gc
import sqlite3
import threading
from pathlib import Path

import pytest

from app.models import library_core, library_rows
from app.models.entry import ModelDefaults
from app.models.library_core import LibraryCore
from app.models.library_words import LibraryError
from app.models.scan_messages import ScanSummary
from tests.helpers.gguf_files import named_model
from tests.helpers.libraries import Places, found_model, sql, without_starter

PATIENCE_S = 60


@pytest.fixture
def places(tmp_path, monkeypatch):
    without_starter(monkeypatch)
    return Places(tmp_path)


@pytest.fixture
def core(places):
    opened = LibraryCore(places.data, places.install, places.environment)
    yield opened
    opened.store.close()


def fill(core, count, **fields):
    def put(connection):
        for number in range(count):
            library_rows.put_found(connection, found_model(number, **fields), "/models", 1)

    core.change(put)


def names(core):
    return [entry.name for entry in core.state().view.entries]


def test_what_was_read_is_shown_until_something_changes(core, monkeypatch):
    fill(core, 3)
    first = core.state()
    assert core.state() is first
    fill(core, 4)
    assert core.state() is not first
    assert len(names(core)) == 4


def test_ten_thousand_models_are_shown_without_a_look_at_any_of_them(core, monkeypatch):
    fill(core, 10_000)
    core.store.write(lambda connection: library_rows.put_folder(connection, Path("/models"), 0.0))
    looked = []
    monkeypatch.setattr("app.models.library_places.stamp_of", lambda *paths: looked.append(paths) or "")
    monkeypatch.setattr("app.models.library_places.describe_model", lambda path, origin: looked.append(path))
    core.forget()
    assert len(names(core)) == 10_000
    assert looked == []
    assert gc.isenabled()
    entry = core.state().view.entries[5_000]
    assert core.state().view.by_key[entry.key.casefold()] is entry


def test_a_note_on_one_of_ten_thousand_reads_nothing_again(core, monkeypatch):
    fill(core, 10_000)
    entry = core.state().view.entries[77]
    monkeypatch.setattr(library_core, "read_stored", None)
    core.say(entry, "mine", ModelDefaults())
    assert core.state().view.entries[77].note == "mine"
    assert sum(bool(other.note) for other in core.state().view.entries) == 1


def test_a_state_that_another_one_replaced_is_not_shown_again(core):
    fill(core, 1)
    old = core.state()
    fill(core, 2)
    new = core.state()
    core.patched(old, old)
    assert core.state() is not old
    assert len(names(core)) == 2
    core.patched(core.state(), new)
    assert core.state() is new


def test_during_a_scan_what_was_read_before_is_shown_and_a_persons_words_too(core, places, monkeypatch):
    fill(core, 1)
    seen = []

    def scan(store, _sources, _on_progress, _cancel, *, is_everything):
        with store.apart() as write:
            write(lambda connection: library_rows.put_found(connection, found_model(7), "/models", 2))
        seen.append(names(core))
        core.say(core.state().view.entries[0], "mine", ModelDefaults())
        seen.append([entry.note for entry in core.state().view.entries])
        return ScanSummary()

    monkeypatch.setattr(library_core, "scan_into", scan)
    core.scan(None)
    assert seen == [["Model-0"], ["mine"]]
    assert [(entry.name, entry.note) for entry in core.state().view.entries] == [("Model-0", "mine"), ("Model-7", "")]


def test_a_scan_that_fails_leaves_everything_usable(core, monkeypatch):
    fill(core, 1)

    def fail(*_arguments, **_named):
        raise LibraryError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(library_core, "scan_into", fail)
        with pytest.raises(LibraryError):
            core.scan(None)
    fill(core, 2)
    assert len(names(core)) == 2


def test_one_scan_at_a_time(core, monkeypatch):
    inside, done, order = threading.Event(), threading.Event(), []

    def scan(*_arguments, **_named):
        order.append("begins")
        inside.set()
        assert done.wait(PATIENCE_S)
        order.append("ends")
        return ScanSummary()

    monkeypatch.setattr(library_core, "scan_into", scan)
    threads = [threading.Thread(target=core.scan, args=(None,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert inside.wait(PATIENCE_S)
    done.set()
    for thread in threads:
        thread.join()
    assert order == ["begins", "ends"] * 2


def test_many_threads_read_and_write_at_once(core, places):
    paths = [named_model(f"M{number}").write(places.elsewhere / f"m{number}.gguf") for number in range(8)]
    errors = []

    def work(number):
        try:
            found = core.places.look(paths[number], "imported")
            core.change(lambda connection: library_rows.put_found(connection, found, "", 0))
            entry = core.listed_at(found)
            core.say(entry, f"note {number}", ModelDefaults(top_k=number))
            for _ in range(20):
                assert entry.key.casefold() in core.state().view.by_key
        except (AssertionError, LibraryError) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    told = {entry.name: (entry.note, entry.defaults.top_k) for entry in core.state().view.entries}
    assert told == {f"M{number}": (f"note {number}", number) for number in range(8)}
    core.forget()
    assert {entry.name: (entry.note, entry.defaults.top_k) for entry in core.state().view.entries} == told


def test_a_file_is_known_by_whatever_link_or_name(core, places):
    path = named_model("Mine").write(places.elsewhere / "a.gguf")
    (places.elsewhere / "soft.gguf").symlink_to(path)
    (places.elsewhere / "hard.gguf").hardlink_to(path)
    copy = named_model("Mine").write(places.elsewhere / "copy.gguf")
    found = core.places.look(path, "imported")
    core.change(lambda connection: library_rows.put_found(connection, found, "", 0))
    for way in ("a.gguf", "soft.gguf", "hard.gguf"):
        assert core.entry_at(places.elsewhere / way).path == path
    assert core.entry_at(copy).path == copy
    assert core.listed_at(core.places.look(copy, "imported")) is None


def test_a_newcomer_is_stored_when_something_is_said_of_it(core, places):
    named_model("New").write(places.models / "n.gguf")
    (entry,) = core.state().view.entries
    core.say(entry, "mine", ModelDefaults())
    assert sql(places.database, "SELECT origin, root FROM paths") == [("folder", bytes(places.models))]
    assert core.state().view.entries[0].note == "mine"


def test_a_list_that_cannot_be_kept_is_said_and_left(core, places, monkeypatch):
    places.list_path.write_text('{"version": 1, "imported": ["/a.gguf"]}')

    def refuse(_change):
        raise LibraryError("The disk is full.")

    monkeypatch.setattr(core.store, "write", refuse)
    assert names(core) == []
    assert core.store.notices() == ["The disk is full."]
    assert places.list_path.exists()


def test_a_library_that_cannot_be_read_for_once_shows_the_rest_and_is_tried_again(core, places, monkeypatch):
    named_model("Starter").write(places.install / "models" / "s.gguf")
    fill(core, 1)

    def busy(_connection):
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(library_core, "read_stored", busy)
        assert names(core) == ["Starter"]
    assert names(core) == ["Starter", "Model-0"]
    assert core.store.notices() == ["The library could not be read (another program keeps the file locked). Try again."]
