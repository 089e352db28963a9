"""The database while the program runs: threads, processes, full disks, kills."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.models import library_figures
from app.models.library_store import LibraryStore
from app.models.library_words import LibraryError
from tests.helpers.libraries import Places, found_model, keys, sql, without_starter

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60


@pytest.fixture
def store(tmp_path):
    opened = LibraryStore(tmp_path / "library.sqlite3")
    yield opened
    opened.close()


def fact(name, value):
    return lambda connection: library_figures.put_fact(connection, name, value)


def facts(store):
    return store.read(library_figures.read_facts, {})


def test_reading_makes_nothing_and_writing_makes_it(store):
    assert (facts(store), store.notices(), store.path.exists()) == ({}, [], False)
    store.write(fact("a", "b"))
    assert (facts(store), store.path.exists()) == ({"a": "b"}, True)


def test_a_change_is_made_as_a_whole_or_not_at_all(store):
    store.write(fact("a", "1"))

    def half(connection):
        library_figures.put_fact(connection, "a", "2")
        raise KeyError("nobody foresaw this")

    with pytest.raises(KeyError):
        store.write(half)
    with pytest.raises(LibraryError, match="could not be written"):
        store.write(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)"))
    assert facts(store) == {"a": "1"}
    store.write(fact("a", "3"))
    assert facts(store) == {"a": "3"}


def test_a_token_tells_of_others_changes_and_not_of_own_ones(store, tmp_path):
    assert store.token() == store.token()
    store.write(fact("a", "1"))
    before = store.token()
    store.write(fact("a", "2"))
    assert store.token() == before
    other = LibraryStore(tmp_path / "library.sqlite3")
    other.write(fact("a", "3"))
    assert store.token() != before
    assert facts(store) == {"a": "3"}
    before = store.token()
    with store.apart() as write:
        write(fact("a", "4"))
    assert store.token() != before
    other.close()


def test_a_token_never_waits_for_who_writes(store):
    store.write(fact("a", "1"))
    token, inside, done = store.token(), threading.Event(), threading.Event()

    def slow(_connection):
        inside.set()
        assert done.wait(PATIENCE_S)

    writer = threading.Thread(target=store.write, args=(slow,))
    writer.start()
    assert inside.wait(PATIENCE_S)
    assert store.token() == token
    done.set()
    writer.join()


def test_many_threads_write_and_nothing_is_lost(store):
    threads = [threading.Thread(target=store.write, args=(fact(str(n), str(n)),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert facts(store) == {str(n): str(n) for n in range(20)}


def test_a_full_disk_is_said_and_nothing_is_changed(store):
    store.write(fact("a", "1"))
    store.read(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall(), None)
    with pytest.raises(LibraryError, match=r"could not be written \(the disk is full\)\. Nothing was changed\."):
        store.write(fact("big", "x" * 1_000_000))
    assert facts(store) == {"a": "1"}
    store.read(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchall(), None)
    store.write(fact("big", "x" * 1_000_000))
    assert len(facts(store)["big"]) == 1_000_000


LIMITED = """
import resource, sys
from pathlib import Path
from app.models import library_figures
from app.models.library_store import LibraryStore
from app.models.library_words import LibraryError
store = LibraryStore(Path(sys.argv[1]))
def fact(name, value):
    store.write(lambda connection: library_figures.put_fact(connection, name, value))
fact("a", "1")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    fact("big", "x" * 1_000_000)
except LibraryError as error:
    sys.stdout.write(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
fact("b", "2")
store.close()
"""


def test_a_write_that_the_system_refuses_fails_in_words_and_the_next_one_works(tmp_path):
    path = tmp_path / "library.sqlite3"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == (
        "The library could not be written (the disk is full or does not answer). Nothing was changed."
    )
    assert sql(path, "SELECT name FROM facts ORDER BY name") == [("a",), ("b",)]


def test_damage_that_shows_while_it_is_used_is_moved_aside_and_said(store):
    for number in range(300):
        store.write(fact(f"fact {number}", "x" * 100))
    store.close()
    data = bytearray(store.path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    store.path.write_bytes(data)
    again = LibraryStore(store.path)
    assert facts(again) == {}
    assert "its content makes no sense" in again.notices()[0]
    again.write(fact("a", "1"))
    assert facts(again) == {"a": "1"}
    assert sql(store.path, "PRAGMA integrity_check") == [("ok",)]
    again.close()


def test_a_check_finds_damage_that_no_read_met(store):
    for number in range(300):
        store.write(fact(f"fact {number}", "x" * 100))
    store.check()
    assert store.notices() == []
    store.close()
    data = bytearray(store.path.read_bytes())
    data[-4096:] = b"\xff" * 4096
    store.path.write_bytes(data)
    again = LibraryStore(store.path)
    again.check()
    assert len(again.notices()) == 1
    again.check()
    assert len(again.notices()) == 1
    again.close()


def test_a_closed_store_reads_nothing_and_writes_nothing(store):
    store.write(fact("a", "1"))
    store.close()
    store.close()
    assert facts(store) == {}
    assert store.token() == store.token()
    with pytest.raises(LibraryError, match="The library is closed"):
        store.write(fact("a", "2"))


def test_a_store_that_nobody_holds_any_more_closes_its_file(tmp_path):
    store = LibraryStore(tmp_path / "library.sqlite3")
    store.write(fact("a", "1"))
    assert (tmp_path / "library.sqlite3-wal").exists()
    del store
    gc.collect()
    assert [file.name for file in tmp_path.iterdir()] == ["library.sqlite3"]


# ------------------------------------------------------------------------------------------- processes and kills

WRITING = """
import sys
from pathlib import Path
from app.models import library_rows
from app.models.library_store import LibraryStore
from tests.helpers.libraries import found_model

path, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = LibraryStore(path)
for number in range(first, first + count):
    def put(connection):
        for inner in range(8):
            library_rows.put_found(connection, found_model(number * 8 + inner), "/models", 1)
    store.write(put)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
store.close()
"""


def writing_child(path, first, count):
    return subprocess.Popen(
        [sys.executable, "-c", WRITING, str(path), str(first), str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path):
    path = tmp_path / "library.sqlite3"
    children = [writing_child(path, first, 25) for first in (0, 1000)]
    for child in children:
        with child:
            assert child.stdout.read().count("\n") == 25
        assert child.returncode == 0
    assert sql(path, "SELECT COUNT(*) FROM paths") == [(2 * 25 * 8,)]
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def kill_many_times(path, count):
    """Deaths fall at fixed but scattered moments; what was acknowledged is there, and a batch is whole or not there."""
    acknowledged = 0
    for number in range(count):
        child = writing_child(path, number * 10_000, 10_000)
        lines = [child.stdout.readline()]
        timer = threading.Timer(0.02 + 0.4 * (number * 0.618 % 1.0), child.kill)
        timer.start()
        lines += child.stdout.read().splitlines()
        timer.join()
        child.wait()
        child.stdout.close()
        acknowledged += len([line for line in lines[:-1] if line.strip()])  # the last one may be torn
        assert sql(path, "PRAGMA integrity_check") == [("ok",)]
        (stored,) = sql(path, "SELECT COUNT(*) FROM paths")[0]
        assert stored % 8 == 0
        assert stored >= acknowledged * 8
    assert acknowledged > count
    store = LibraryStore(path)
    assert (store.notices(), store.token() >= 0) == ([], True)
    store.close()


def test_kills_while_writing_leave_the_library_whole(tmp_path):
    kill_many_times(tmp_path / "library.sqlite3", 20)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.environ.get("CUTAWAY_FULL") != "1", reason="set CUTAWAY_FULL=1 for the large counts")
def test_two_hundred_kills_while_writing_leave_the_library_whole(tmp_path):
    kill_many_times(tmp_path / "library.sqlite3", 200)


def test_what_another_process_changes_shows_at_the_next_look(tmp_path, monkeypatch):
    without_starter(monkeypatch)
    places = Places(tmp_path)
    window, command_line = places.library(), places.library()
    assert window.entries() == []
    command_line.add_folder(places.elsewhere)
    assert window.folders() == [places.elsewhere]
    with sqlite3.connect(places.database) as connection:
        from app.models import library_rows

        library_rows.put_found(connection, found_model(), "/models", 1)
    connection.close()
    assert keys(window) == ["acme/Model-1:Q4_K_M"]
