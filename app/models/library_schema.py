"""The tables of the library, as an ordered list of changes.

A model is its bytes: what a person says of it, and what loading it took, hang on those. Where it lies is another table,
since a file is moved, copied and linked. A library's version is SQLite's user_version: the number of migrations that
were applied. A migration that was once released is never edited; a change of the tables is a new one at the end.
"""

from __future__ import annotations

import sqlite3

from app.sqlite_file import apply_migrations

_TABLES = (
    # sha256 is NULL until the bytes were read. Two models may share a provisional identity once one was told from the
    # other by its hash; among the unread ones it is unique.
    """CREATE TABLE models (
        model_id INTEGER PRIMARY KEY,
        sha256 TEXT UNIQUE,
        provisional TEXT,
        note TEXT NOT NULL DEFAULT '',
        defaults TEXT NOT NULL DEFAULT '{}')""",
    "CREATE UNIQUE INDEX models_unread ON models (provisional) WHERE sha256 IS NULL",
    "CREATE INDEX models_by_provisional ON models (provisional)",
    # A path is the system's own bytes: a file's name need not be text. root is the folder it was found in, empty for
    # what a person pointed at; scan_number is that of the last scan that saw it. trusted_* is the last state that
    # nobody needs to be asked about; a scan that sees another one leaves it alone.
    """CREATE TABLE paths (
        path_id INTEGER PRIMARY KEY,
        path BLOB NOT NULL UNIQUE,
        model_id INTEGER REFERENCES models (model_id),
        origin TEXT NOT NULL,
        root BLOB NOT NULL,
        stamp TEXT NOT NULL,
        record BLOB NOT NULL,
        is_away INTEGER NOT NULL,
        scan_number INTEGER NOT NULL,
        trusted_stamp TEXT NOT NULL,
        trusted_identity TEXT NOT NULL)""",
    "CREATE INDEX paths_by_model ON paths (model_id)",
    "CREATE TABLE folders (path BLOB PRIMARY KEY, added_s REAL NOT NULL) WITHOUT ROWID",
    """CREATE TABLE loads (
        load_id INTEGER PRIMARY KEY,
        model_id INTEGER NOT NULL REFERENCES models (model_id) ON DELETE CASCADE,
        loaded_s REAL NOT NULL,
        measured TEXT NOT NULL)""",
    "CREATE INDEX loads_by_model ON loads (model_id)",
    """CREATE TABLE probes (
        probe_id INTEGER PRIMARY KEY,
        model_id INTEGER NOT NULL REFERENCES models (model_id) ON DELETE CASCADE,
        params TEXT NOT NULL,
        split TEXT NOT NULL,
        UNIQUE (model_id, params))""",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_TABLES,)

SCHEMA_VERSION = len(MIGRATIONS)

# What this version of the program reads.
_COLUMNS = {
    "models": "model_id, sha256, provisional, note, defaults",
    "paths": "path_id, path, model_id, origin, root, stamp, record, is_away, scan_number, trusted_stamp,"
    " trusted_identity",
    "folders": "path, added_s",
    "loads": "load_id, model_id, loaded_s, measured",
    "probes": "probe_id, model_id, params, split",
    "facts": "name, value",
}


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the migrations that are missing, all of them or none.

    Raises:
        sqlite3.Error: a migration failed; the library is as it was.
    """
    apply_migrations(connection, MIGRATIONS, SCHEMA_VERSION)


def check_tables(connection: sqlite3.Connection) -> None:
    """Check that the tables can be read by this version of the program.

    Raises:
        sqlite3.OperationalError: a table or column is missing.
    """
    for table, columns in _COLUMNS.items():
        connection.execute(f"SELECT {columns} FROM {table} LIMIT 0").fetchall()
