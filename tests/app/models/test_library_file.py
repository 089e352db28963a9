"""Opening the library's file: every way it can go wrong ends in something usable and a notice in words."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from app.models import library_file, library_rows
from app.models.library_file import open_library
from app.models.library_schema import SCHEMA_VERSION
from app.sqlite_file import version_of
from tests.helpers.libraries import found_model, sql

ROOT = Path(__file__).resolve().parents[3]
ASIDE = re.compile(r"library\.damaged-\d{4}-\d\d-\d\d-\d{6}(-[0-9a-f]{4})?\.sqlite3(-wal|-shm)?")
PATIENCE_S = 60


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "library.sqlite3"


@pytest.fixture
def filled(path):
    """The path of a closed library that holds two models, one with a note."""
    opened = open_library(path)
    with closing(opened.connection) as connection:
        connection.execute("BEGIN")
        for number in (1, 2):
            library_rows.put_found(connection, found_model(number), "/models", 1)
        library_rows.set_words(connection, 1, note="mine")
        connection.execute("COMMIT")
    return path


def opened(path):
    """Open the library, close it again; return whether it is on disk, its notices, and notes by path."""
    library = open_library(path)
    with closing(library.connection) as connection:
        models = library_rows.read_models(connection)
        notes = {row.path.decode(): models[row.model_id].note for row in library_rows.read_paths(connection)}
    return library.path is not None, library.notices, notes


AS_IT_WAS = (True, (), {"/models/model-1.gguf": "mine", "/models/model-2.gguf": ""})


def test_a_missing_library_is_made_for_this_person_only(path):
    assert opened(path) == opened(path) == (True, (), {})
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["library.sqlite3"]


def test_what_was_kept_is_there_again(filled):
    assert opened(filled) == AS_IT_WAS
    assert library_file.is_whole(open_library(filled).connection)


def test_two_connections_are_two(filled):
    library = open_library(filled)
    with closing(library.connection), closing(library.connect_again()) as other:
        other.execute("INSERT INTO facts VALUES ('a', 'b')")
        assert library.connection.execute("SELECT * FROM facts").fetchall() == [("a", "b")]


# ------------------------------------------------------------------------------------------------------- damage


def cut(data):
    return data[: len(data) // 2]


def scribble(data):
    return data[:100] + b"\xff" * 4000 + data[4100:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda _data: b"", "it is empty"),
        (lambda data: b"garbage" * 1000, "it is not a database"),
        (cut, "its end is missing"),
        (scribble, "its content makes no sense"),
    ],
)
def test_a_damaged_library_is_moved_aside_with_a_dated_name_and_said(filled, damage, reason):
    damaged = damage(filled.read_bytes())
    filled.write_bytes(damaged)
    is_kept, (notice,), notes = opened(filled)
    (aside,) = (other for other in filled.parent.iterdir() if ASIDE.fullmatch(other.name))
    assert (is_kept, notes, aside.read_bytes()) == (True, {}, damaged)
    assert notice.startswith(f"The library's file is damaged ({reason}). It was moved to {aside} and a new one begins")
    assert opened(filled) == (True, (), {})


def test_notes_that_a_damaged_library_still_gives_are_taken_over(filled):
    pages = len(filled.read_bytes()) // 4096
    root = sql(filled, "SELECT rootpage FROM sqlite_schema WHERE name = 'paths'")[0][0]
    data = bytearray(filled.read_bytes())
    assert root <= pages
    data[(root - 1) * 4096 : root * 4096] = b"\xff" * 4096
    filled.write_bytes(data)
    library = library_file.replace_damaged(filled)
    with closing(library.connection) as connection:
        assert [model.note for model in library_rows.read_models(connection).values()] == ["mine", ""]
        assert library_rows.read_paths(connection) == []
    assert "were taken over" in library.notices[0]


def test_another_database_is_moved_aside(path):
    path.parent.mkdir()
    sql(path, "CREATE TABLE chats (x)")
    sql(path, f"PRAGMA user_version = {SCHEMA_VERSION}")
    is_kept, (notice,), notes = opened(path)
    assert (is_kept, notes) == (True, {})
    assert "(it holds no library)" in notice


def test_a_log_without_its_database_is_damage(path):
    path.parent.mkdir()
    path.with_name("library.sqlite3-wal").write_bytes(b"x" * 100)
    _is_kept, (notice,), _notes = opened(path)
    assert "(only a part of it is there)" in notice


# -------------------------------------------------------------------------------------------- versions, no file


def test_a_newer_library_is_read_and_left_as_it_is(filled):
    sql(filled, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = filled.read_bytes()
    is_kept, (notice,), notes = opened(filled)
    assert (is_kept, notes) == (False, AS_IT_WAS[2])
    assert notice.startswith("The library was last saved by a newer version of Cutaway.")
    assert filled.read_bytes() == before


def test_a_newer_library_that_makes_no_sense_here_is_left_as_it_is(filled):
    sql(filled, "ALTER TABLE paths DROP COLUMN is_away")
    sql(filled, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    is_kept, (notice,), notes = opened(filled)
    assert (is_kept, notes) == (False, {})
    assert "newer version" in notice


def test_an_older_library_is_backed_up_and_migrated(filled, monkeypatch):
    monkeypatch.setattr(library_file, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    seen = []
    monkeypatch.setattr(library_file, "migrate", lambda connection: seen.append(version_of(connection)))
    assert opened(filled) == AS_IT_WAS
    assert seen == [SCHEMA_VERSION]
    backup = filled.with_name(f"library.sqlite3.v{SCHEMA_VERSION}-backup")
    assert sql(backup, "SELECT note FROM models") == [("mine",), ("",)]


def test_a_migration_that_fails_leaves_the_old_library_to_be_read(filled, monkeypatch):
    def fail(_connection):
        raise sqlite3.OperationalError("no such function")

    migrate = library_file.migrate
    monkeypatch.setattr(library_file, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setattr(library_file, "migrate", fail)
    with monkeypatch.context():
        is_kept, (notice,), notes = opened(filled)
    assert (is_kept, notes) == (False, AS_IT_WAS[2])
    assert notice.startswith("The library can be read but not changed: no such function.")
    monkeypatch.setattr(library_file, "migrate", migrate)


@pytest.mark.parametrize("place", ["/proc/nothing/library.sqlite3", "/dev/null/library.sqlite3", "x" * 300 + "/l"])
def test_where_no_file_can_be_the_library_lives_in_memory(place):
    is_kept, (notice,), notes = opened(Path(place))
    assert (is_kept, notes) == (False, {})
    assert notice.startswith("The library cannot be opened: ")


def test_a_folder_in_its_place_is_left_alone(path):
    path.mkdir(parents=True)
    is_kept, (notice,), _notes = opened(path)
    assert (is_kept, path.is_dir()) == (False, True)
    assert "there is something else than a file" in notice


# Root may write everywhere, so the library is opened by nobody.
BY_NOBODY = """
import json, os, sys
from pathlib import Path
from app.models.library import Library
if os.getuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
data = Path(sys.argv[1])
library = Library(data, data / "install", {"HOME": "/nonexistent", "CUTAWAY_STARTER": str(data / "none.gguf")})
library.set_bandwidth("key", 1.0)
told = [library.bandwidth("key"), [notice.split(":")[0] for notice in library.notices()], len(library.entries())]
library.close()
print(json.dumps(told))
"""


def opened_by_nobody(folder):
    done = subprocess.run(
        [sys.executable, "-c", BY_NOBODY, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


@pytest.fixture
def shared_folder():
    """A folder that nobody may enter and list; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_in_a_folder_that_cannot_be_written_everything_works_until_the_end(shared_folder, filled):
    shared_folder.chmod(0o555)
    assert opened_by_nobody(shared_folder) == [1.0, ["The library cannot be opened"], 1]
    shared_folder.chmod(0o755)
    target = shared_folder / "library.sqlite3"
    shutil.copy(filled, target)
    target.chmod(0o444)
    shared_folder.chmod(0o555)
    before = target.read_bytes()
    assert opened_by_nobody(shared_folder) == [1.0, ["The library can be read but not changed"], 3]
    assert target.read_bytes() == before
    target.write_bytes(b"garbage")
    assert opened_by_nobody(shared_folder) == [1.0, ["The library cannot be opened"], 1]
    assert target.read_bytes() == b"garbage"
