"""The library's database file: opened, made, migrated, and replaced by something honest when it cannot be used.

Every way an opening can go wrong ends in a usable connection and a notice in words: a damaged file is moved aside and
what can still be read is taken over, a newer or unwritable one is copied into memory. Knows the tables only as names.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from app.i18n import _
from app.models import library_words
from app.models.library_schema import SCHEMA_VERSION, check_tables, migrate
from app.sqlite_file import (
    DamagedError,
    back_up,
    check_header,
    companion,
    connect,
    connect_readable,
    create,
    is_damage,
    move_aside,
    primary_code,
    reason_of,
    size_bytes,
    version_of,
)

logger = logging.getLogger(__name__)

# In this order: what refers to another table comes behind it.
_TABLES = ("models", "paths", "folders", "loads", "probes", "facts")


@dataclass(frozen=True, slots=True)
class OpenedLibrary:
    """A library that can be used.

    Attributes:
        path: where it lies; None when it lives in memory.
        connection: for reads and writes, by any one thread at a time.
        notices: what a person must be told.
    """

    path: Path | None
    connection: sqlite3.Connection
    notices: tuple[str, ...] = ()

    def connect_again(self) -> sqlite3.Connection | None:
        """Return another connection, for long work; None when there can be only one.

        Raises:
            sqlite3.Error: the file cannot be opened any more.
        """
        return None if self.path is None else connect(self.path, "mode=rw")


class _NewerError(Exception):
    """The library was made by a newer version of the program."""


def open_library(path: Path) -> OpenedLibrary:
    """Open the library at path, or make one there; in the worst case open one in memory."""
    path = Path(os.path.realpath(path))
    try:
        try:
            return _open_as_it_is(path)
        except DamagedError as damage:
            return _open_anew(path, str(damage))
    except (OSError, sqlite3.Error, DamagedError) as error:
        logger.info("the library cannot be opened: %s", error)
        return OpenedLibrary(None, _in_memory(), (library_words.not_kept(path, reason_of(error)),))


def is_whole(connection: sqlite3.Connection) -> bool:
    """Check the whole file; takes a tenth of a second for 10,000 models."""
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.Error as error:
        if is_damage(error):
            return False
        raise


def replace_damaged(path: Path) -> OpenedLibrary:
    """Move a library aside that turned out to be damaged while it was in use, and open a new one."""
    try:
        return _open_anew(path, _("its content makes no sense"))
    except (OSError, sqlite3.Error, DamagedError) as error:
        return OpenedLibrary(None, _in_memory(), (library_words.not_kept(path, reason_of(error)),))


def _open_as_it_is(path: Path) -> OpenedLibrary:
    """Open the library, making it if there is none.

    Raises:
        DamagedError: it must be moved aside first.
        OSError, sqlite3.Error: nothing can be opened there.
    """
    if not path.exists():
        if companion(path, "-wal").exists():
            raise DamagedError(_("only a part of it is there"))
        create(path, migrate)
    check_header(path)
    try:
        return OpenedLibrary(path, _open_writable(path))
    except _NewerError:
        return OpenedLibrary(None, _copy_in_memory(path), (library_words.newer(path),))
    except sqlite3.Error as error:
        if is_damage(error):
            raise DamagedError(_("its content makes no sense")) from error
        return OpenedLibrary(None, _copy_in_memory(path), (library_words.read_only(path, reason_of(error)),))


def _open_writable(path: Path) -> sqlite3.Connection:
    connection = connect(path, "mode=rw")
    try:
        version = version_of(connection)
        if version > SCHEMA_VERSION:
            raise _NewerError
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if version < SCHEMA_VERSION:
            back_up(connection, path.with_name(f"{path.name}.v{version}-backup"))
            migrate(connection)
        _check_tables(connection)
        connection.execute("DELETE FROM facts WHERE name = ''")  # no such row; fails if nothing can be written
    except (OSError, sqlite3.Error, _NewerError, DamagedError):
        connection.close()
        raise
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    try:
        check_tables(connection)
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_ERROR:
            raise DamagedError(_("it holds no library")) from error
        raise


def _open_anew(path: Path, reason: str) -> OpenedLibrary:
    """Move a damaged library aside, make a new one and take over what can be read of the old one."""
    aside = move_aside(path)
    opened = _open_as_it_is(path)
    _take_over(aside, opened.connection)
    return OpenedLibrary(opened.path, opened.connection, (library_words.moved_aside(aside, reason), *opened.notices))


def _take_over(aside: Path, connection: sqlite3.Connection) -> None:
    """Copy the rows that a damaged file still gives, up to the first that it does not, table by table."""
    # Immutable leaves nothing beside the file, and without a log there is nothing else to read.
    query = "mode=ro" if size_bytes(companion(aside, "-wal")) else "mode=ro&immutable=1"
    with contextlib.suppress(sqlite3.Error):
        with contextlib.closing(connect(aside, query)) as damaged:
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                    _copy_rows(damaged, connection, table)
        connection.execute("COMMIT")
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _copy_rows(damaged: sqlite3.Connection, connection: sqlite3.Connection, table: str) -> None:
    cursor = damaged.execute(f"SELECT * FROM {table}")
    places = ", ".join("?" * len(cursor.description))
    for row in cursor:
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO {table} VALUES ({places})", row)


def _in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    return connection


def _copy_in_memory(path: Path) -> sqlite3.Connection:
    """Return a copy that can be changed until the program ends; an empty one when the file cannot be read."""
    try:
        with contextlib.closing(connect_readable(path, check_tables)) as source:
            copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            source.backup(copy)
            copy.execute("PRAGMA foreign_keys = ON")
            return copy
    except sqlite3.Error as error:
        logger.info("the library cannot be read: %s", error)
        return _in_memory()
