"""Database files: made whole or not at all, looked at before they are trusted, moved aside and never deleted."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing

import pytest

from app import sqlite_file
from app.sqlite_file import DamagedError

MIGRATIONS = (("CREATE TABLE notes (text TEXT)",), ("ALTER TABLE notes ADD COLUMN title TEXT",))


def migrate(connection, up_to=2):
    sqlite_file.apply_migrations(connection, MIGRATIONS, up_to)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def sqlite_error(code, kind=sqlite3.OperationalError):
    error = kind("detail")
    error.sqlite_errorcode = code
    return error


@pytest.fixture
def path(tmp_path):
    """A whole database, closed."""
    made = tmp_path / "folder" / "notes.db"
    sqlite_file.create(made, migrate)
    return made


def test_a_database_is_made_with_its_folders_and_for_this_person_only(path):
    assert names(path.parent) == ["notes.db"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with closing(sqlite_file.connect(path, "mode=rw")) as connection:
        assert sqlite_file.version_of(connection) == 2
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_one_that_is_there_already_is_kept(path):
    with closing(sqlite_file.connect(path, "mode=rw")) as connection:
        connection.execute("INSERT INTO notes VALUES ('mine', '')")
    sqlite_file.create(path, migrate)
    with closing(sqlite_file.connect(path, "mode=ro")) as connection:
        assert connection.execute("SELECT text FROM notes").fetchall() == [("mine",)]


def test_one_that_cannot_be_made_leaves_nothing(tmp_path):
    def fail(_connection):
        raise sqlite3.OperationalError("no such function")

    with pytest.raises(sqlite3.OperationalError):
        sqlite_file.create(tmp_path / "a.db", fail)
    assert names(tmp_path) == []


def test_connecting_creates_nothing(tmp_path):
    with pytest.raises(sqlite3.OperationalError):
        sqlite_file.connect(tmp_path / "none.db", "mode=rw")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["with space.db", "50%.db", "a#b?c.db", "caf\udce9.db"])
def test_odd_names_are_only_names(tmp_path, name):
    sqlite_file.create(tmp_path / name, migrate)
    with closing(sqlite_file.connect(tmp_path / name, "mode=rw")) as connection:
        assert sqlite_file.version_of(connection) == 2
    assert names(tmp_path) == [name]


def test_a_readable_connection_changes_nothing(path):
    def check(connection):
        connection.execute("SELECT text FROM notes LIMIT 0")

    with closing(sqlite_file.connect_readable(path, check)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("INSERT INTO notes VALUES ('x', '')")
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        sqlite_file.connect_readable(path, lambda connection: connection.execute("SELECT 1 FROM others"))


def test_a_migration_that_fails_leaves_everything_as_it_was(path):
    with closing(sqlite_file.connect(path, "mode=rw")) as connection:
        with pytest.raises(sqlite3.OperationalError):
            sqlite_file.apply_migrations(connection, (*MIGRATIONS, ("CREATE TABLE more (x)", "no statement")), 3)
        assert sqlite_file.version_of(connection) == 2
        assert not connection.in_transaction
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("notes",)]


def test_a_backup_is_whole_and_private(path):
    backup = path.with_name("notes.backup")
    with closing(sqlite_file.connect(path, "mode=rw")) as connection:
        sqlite_file.back_up(connection, backup)
    assert backup.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(backup)) as connection:
        assert sqlite_file.version_of(connection) == 2


def test_damage_of_the_header_and_a_missing_end_are_seen(path):
    whole = path.read_bytes()
    sqlite_file.check_header(path)
    for content, reason in (
        (b"", "it is empty"),
        (b"garbage", "it is not a database"),
        (b"x" * len(whole), "it is not a database"),
        (whole[:4096], "its end is missing"),
    ):
        path.write_bytes(content)
        with pytest.raises(DamagedError, match=reason):
            sqlite_file.check_header(path)


def test_something_else_than_a_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="there is something else than a file"):
            sqlite_file.check_header(place)


def test_a_damaged_file_is_moved_aside_with_its_companions_and_never_over_another(path):
    aside = []
    for content in (b"first", b"second"):
        path.write_bytes(content)
        sqlite_file.companion(path, "-wal").write_bytes(content)
        aside.append(sqlite_file.move_aside(path))
    assert [moved.read_bytes() for moved in aside] == [b"first", b"second"]
    assert [sqlite_file.companion(moved, "-wal").read_bytes() for moved in aside] == [b"first", b"second"]
    assert all(re.fullmatch(r"notes\.damaged-\d{4}-\d\d-\d\d-\d{6}(-[0-9a-f]{4})?\.db", moved.name) for moved in aside)
    assert not path.exists()


def test_only_damage_is_damage():
    assert sqlite_file.is_damage(sqlite_error(sqlite3.SQLITE_CORRUPT_VTAB))
    assert not sqlite_file.is_damage(sqlite_error(sqlite3.SQLITE_FULL))
    assert not sqlite_file.is_damage(sqlite3.ProgrammingError("closed"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (OSError("no file at all"), "OSError"),
        (ValueError("it is empty"), "it is empty"),
        (sqlite_error(sqlite3.SQLITE_FULL), "the disk is full"),
        (sqlite_error(sqlite3.SQLITE_READONLY_DBMOVED), "the file or its folder is not writable"),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), "another program keeps the file locked"),
        (sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), "the disk is full or does not answer"),
        (sqlite_error(sqlite3.SQLITE_MISMATCH), "detail"),
    ],
)
def test_an_error_becomes_the_middle_of_a_sentence(error, reason):
    assert sqlite_file.reason_of(error) == reason
