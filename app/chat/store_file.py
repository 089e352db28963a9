"""The file of the chat store: found, made, checked, migrated, and replaced by something honest when it cannot be used.

Every way an opening can go wrong ends in a usable connection and a notice in words. Knows the tables only as far as
their version and the writers that are registered in them; knows no chat and no thread.

Two facts carry the rest. A new store is made under another name and then linked into place, so a file under the
store's own name was once complete, and an empty one is damage. And whoever writes is registered in the store until it
closes it, so a registered process that is gone means a crash, and only then is the whole file checked.
"""

from __future__ import annotations

import enum
import logging
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.chat import store_words
from app.chat.rows import check_tables
from app.chat.schema import SCHEMA_VERSION, migrate
from app.chat.store_words import StoreNotice
from app.i18n import _
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
    version_of,
)

logger = logging.getLogger(__name__)

# Deleting a chat is real: its pages are overwritten.
_PRAGMAS = ("secure_delete = ON",)

# The system rounds start times, and a clock that is set moves them a little.
_START_TOLERANCE_S = 5.0


class StoreMode(enum.Enum):
    """What can be done with an opened store."""

    WRITABLE = "writable"  # chats are read and kept
    READ_ONLY = "read_only"  # chats are read; what is new is lost at the end
    IN_MEMORY = "in_memory"  # nothing is read and nothing is kept


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A store that can be used.

    Attributes:
        path: where the store lies, or would.
        mode: what can be done with it.
        reader: an open connection for reads; in memory it is the only one there is.
        notices: what a person must be told.
    """

    path: Path
    mode: StoreMode
    reader: sqlite3.Connection
    notices: tuple[StoreNotice, ...] = ()

    def connect_writer(self) -> sqlite3.Connection:
        """Return the connection for writes, which may be used from any one thread at a time.

        Raises:
            sqlite3.Error: if the file cannot be opened any more.
        """
        if self.mode is StoreMode.WRITABLE:
            return connect(self.path, "mode=rw", _PRAGMAS)
        return self.reader


class _NewerError(Exception):
    """The store was made by a newer version of the program."""


def open_file(path: Path) -> OpenedFile:
    """Open the store at path, or make one there; in the worst case open one in memory.

    A damaged store is moved aside, a newer or unwritable one is opened read-only; each is told in a notice.
    """
    path = Path(os.path.realpath(path))
    notices: list[StoreNotice] = []
    try:
        try:
            opened = _open_as_it_is(path)
        except DamagedError as damage:
            notices.append(store_words.moved_aside(move_aside(path), str(damage)))
            opened = _open_as_it_is(path)
    except (OSError, sqlite3.Error, DamagedError) as error:
        logger.info("the store cannot be opened: %s", error)
        notices.append(store_words.not_kept(path, reason_of(error)))
        return OpenedFile(path, StoreMode.IN_MEMORY, _open_in_memory(), tuple(notices))
    return OpenedFile(opened.path, opened.mode, opened.reader, (*notices, *opened.notices))


def this_process() -> tuple[int, float]:
    """Return this process's id and when it started, in seconds since 1970: together they name it for good."""
    process = psutil.Process()
    return process.pid, process.create_time()


def remove_backups(path: Path) -> None:
    """Remove the copies that were made before migrations: they hold chats that were deleted since."""
    for backup in path.parent.glob(f"{path.name}.v*-backup"):
        backup.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------- opening


def _open_as_it_is(path: Path) -> OpenedFile:
    """Open the store, making it if there is none.

    Raises:
        DamagedError: if the file must be moved aside first.
        OSError, sqlite3.Error: if nothing can be opened there.
    """
    if not path.exists():
        if companion(path, "-wal").exists():
            raise DamagedError(_("only a part of it is there"))
        create(path, migrate)
    check_header(path)
    try:
        return OpenedFile(path, StoreMode.WRITABLE, _open_writable(path))
    except _NewerError:
        return OpenedFile(path, StoreMode.READ_ONLY, connect_readable(path, check_tables), (store_words.newer(path),))
    except sqlite3.Error as error:
        if is_damage(error):
            raise DamagedError(_("its content makes no sense")) from error
        notice = store_words.read_only(path, reason_of(error))
        return OpenedFile(path, StoreMode.READ_ONLY, connect_readable(path, check_tables), (notice,))


def _open_writable(path: Path) -> sqlite3.Connection:
    """Open for reads and writes, check after a crash, and migrate an older store."""
    connection = connect(path, "mode=rw", _PRAGMAS)
    try:
        version = version_of(connection)
        if version > SCHEMA_VERSION:
            raise _NewerError
        _check_tables(connection)
        _check_after_crash(connection)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if version < SCHEMA_VERSION:
            back_up(connection, path.with_name(f"{path.name}.v{version}-backup"))
            migrate(connection)
        connection.execute("DELETE FROM writers WHERE writer_id < 0")  # no such row; fails if nothing can be written
        connection.execute("PRAGMA query_only = ON")
    except (sqlite3.Error, _NewerError, DamagedError):
        connection.close()
        raise
    return connection


def _open_in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    return connection


# ------------------------------------------------------------------------------------------------ damage


def _check_tables(connection: sqlite3.Connection) -> None:
    """Check that this is a store of ours.

    Raises:
        DamagedError: if it is some other database.
    """
    try:
        check_tables(connection)
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_ERROR:
            raise DamagedError(_("it holds no chats")) from error
        raise


def _check_after_crash(connection: sqlite3.Connection) -> None:
    """If a process that wrote is gone without closing, check the file and mark the answers it left unfinished.

    Raises:
        DamagedError: if the check found something.
    """
    writers = connection.execute("SELECT writer_id, pid, process_started_s FROM writers").fetchall()
    dead = [(writer_id,) for writer_id, pid, started_s in writers if not _is_alive(pid, started_s)]
    if not dead:
        return
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise DamagedError(_("a check of its content failed"))
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "UPDATE messages SET state = 'interrupted' WHERE state = 'streaming' AND writer_id = ?", dead
    )
    connection.executemany("DELETE FROM writers WHERE writer_id = ?", dead)
    connection.execute("COMMIT")


def _is_alive(pid: int, started_s: float) -> bool:
    """Return whether the process that was given this id at this time still runs."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started_s) < _START_TOLERANCE_S and (
            process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # somebody's process has this id; it may be ours under another user
        return True
