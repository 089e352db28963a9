"""The library's tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from app.models import library_schema
from app.models.library_schema import SCHEMA_VERSION, check_tables, migrate
from app.sqlite_file import version_of


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        yield opened


def test_a_new_library_has_the_newest_version(connection):
    migrate(connection)
    assert version_of(connection) == SCHEMA_VERSION == len(library_schema.MIGRATIONS)
    check_tables(connection)
    migrate(connection)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_other_tables_are_not_a_library(connection):
    connection.execute("CREATE TABLE chats (x)")
    with pytest.raises(sqlite3.OperationalError):
        check_tables(connection)


def test_a_model_without_rows_behind_it_takes_its_figures_along(connection):
    migrate(connection)
    connection.execute("INSERT INTO models (model_id, sha256) VALUES (1, 'a')")
    connection.execute("INSERT INTO loads VALUES (1, 1, 0, '{}')")
    connection.execute("INSERT INTO probes VALUES (1, 1, 'p', '{}')")
    connection.execute("DELETE FROM models")
    assert connection.execute("SELECT COUNT(*) FROM loads").fetchone() == (0,)
    assert connection.execute("SELECT COUNT(*) FROM probes").fetchone() == (0,)


def test_one_hash_is_one_model_and_so_is_one_unread_identity(connection):
    migrate(connection)
    connection.execute("INSERT INTO models (sha256, provisional) VALUES ('a', 'p'), (NULL, 'p'), ('b', 'p')")
    for values in ("('a', 'q')", "(NULL, 'p')"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO models (sha256, provisional) VALUES {values}")
