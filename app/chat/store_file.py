"""The file of the chat store: found, made, checked, migrated, and replaced by something honest when it cannot be used.

Every way an opening can go wrong ends in a usable connection and a notice in words. Knows the tables only as far as
their version and the writers that are registered in them; knows no chat and no thread.

Two facts carry the rest. A new store is made under another name and then linked into place, so a file under the
store's own name was once complete, and an empty one is damage. And whoever writes is registered in the store until it
closes it, so a registered process that is gone means a crash, and only then is the whole file checked.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import logging
import os
import secrets
import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from app.chat import store_words
from app.chat.rows import check_tables
from app.chat.schema import SCHEMA_VERSION, migrate, version_of
from app.chat.store_words import StoreNotice
from app.i18n import _

logger = logging.getLogger(__name__)

# How long a read or write waits for another process, which holds the lock for one commit at a time.
_BUSY_TIMEOUT_S = 5.0

# https://www.sqlite.org/fileformat.html section 1.3
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"

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
            return _connect(self.path, "mode=rw")
        return self.reader


class _DamagedError(Exception):
    """The file cannot be a store; the text says why, as the middle of a sentence."""


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
        except _DamagedError as damage:
            notices.append(store_words.moved_aside(_move_aside(path), str(damage)))
            opened = _open_as_it_is(path)
    except (OSError, sqlite3.Error, _DamagedError) as error:
        logger.info("the store cannot be opened: %s", error)
        notices.append(store_words.not_kept(path, store_words.reason_of(error)))
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
        _DamagedError: if the file must be moved aside first.
        OSError, sqlite3.Error: if nothing can be opened there.
    """
    if not path.exists():
        if _companion(path, "-wal").exists():
            raise _DamagedError(_("only a part of it is there"))
        _create(path)
    _check_header(path)
    try:
        return OpenedFile(path, StoreMode.WRITABLE, _open_writable(path))
    except _NewerError:
        return OpenedFile(path, StoreMode.READ_ONLY, _open_readable(path), (store_words.newer(path),))
    except sqlite3.Error as error:
        if store_words.is_damage(error):
            raise _DamagedError(_("its content makes no sense")) from error
        notice = store_words.read_only(path, store_words.reason_of(error))
        return OpenedFile(path, StoreMode.READ_ONLY, _open_readable(path), (notice,))


def _connect(path: Path, query: str) -> sqlite3.Connection:
    """Open a connection; the query is that of an SQLite URI and says what may be done."""
    # as an URI, so that nothing is created by accident; three slashes, or a name of a Windows share would be a host
    place = path.as_posix()
    uri = f"file://{'' if place.startswith('/') else '/'}{quote(os.fsencode(place))}?{query}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("foreign_keys = ON", "secure_delete = ON", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _open_writable(path: Path) -> sqlite3.Connection:
    """Open for reads and writes, check after a crash, and migrate an older store."""
    connection = _connect(path, "mode=rw")
    try:
        version = version_of(connection)
        if version > SCHEMA_VERSION:
            raise _NewerError
        _check_tables(connection)
        _check_after_crash(connection)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if version < SCHEMA_VERSION:
            _back_up(connection, path.with_name(f"{path.name}.v{version}-backup"))
            migrate(connection)
        connection.execute("DELETE FROM writers WHERE writer_id < 0")  # no such row; fails if nothing can be written
        connection.execute("PRAGMA query_only = ON")
    except (sqlite3.Error, _NewerError, _DamagedError):
        connection.close()
        raise
    return connection


def _open_readable(path: Path) -> sqlite3.Connection:
    """Open for reads only, without changing anything.

    Raises:
        sqlite3.Error: if the store cannot be read either, or its tables are not known to this version.
    """
    queries = ["mode=ro"]
    if not _size_bytes(_companion(path, "-wal")):
        # A folder that cannot be written has no room for SQLite's lock files; with no WAL they are not needed.
        queries.append("mode=ro&immutable=1")
    for query in queries[:-1]:
        with contextlib.suppress(sqlite3.Error):
            return _connect_checked(path, query)
    return _connect_checked(path, queries[-1])


def _connect_checked(path: Path, query: str) -> sqlite3.Connection:
    """Open a connection and check that it can read our tables."""
    connection = _connect(path, query)
    try:
        check_tables(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _open_in_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    return connection


def _create(path: Path) -> None:
    """Make an empty store; when another process makes one at the same moment, its store is taken.

    Raises:
        OSError, sqlite3.Error: if it cannot be made; nothing is left behind.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # the chats are nobody else's to read
        with contextlib.closing(_connect(draft, "mode=rw")) as connection:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            migrate(connection)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                draft.rename(path)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                _companion(draft, suffix).unlink(missing_ok=True)


def _back_up(connection: sqlite3.Connection, backup: Path) -> None:
    """Copy the whole store; a copy of an earlier attempt is replaced."""
    with contextlib.closing(sqlite3.connect(backup)) as copy:
        backup.chmod(0o600)
        connection.backup(copy)


# ------------------------------------------------------------------------------------------------ damage


def _check_header(path: Path) -> None:
    """Check what can be checked without reading the file: most damage of a disk shows here.

    Raises:
        _DamagedError: if this cannot be a complete store.
        OSError: if it cannot be read, or is not a file at all.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(_("there is something else than a file at {path}").format(path=path.name))
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    # In this order: while another process copies the WAL into the file, the WAL is there.
    has_wal = _size_bytes(_companion(path, "-wal")) > 0
    size_bytes = _size_bytes(path)
    if not header:
        raise _DamagedError(_("it is empty"))
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise _DamagedError(_("it is not a database"))
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(header[28:32], "big")
    if not has_wal and header[24:28] == header[92:96] and size_bytes < pages * page_bytes:
        raise _DamagedError(_("its end is missing"))


def _check_tables(connection: sqlite3.Connection) -> None:
    """Check that this is a store of ours.

    Raises:
        _DamagedError: if it is some other database.
    """
    try:
        check_tables(connection)
    except sqlite3.OperationalError as error:
        if store_words.primary_code(error) == sqlite3.SQLITE_ERROR:
            raise _DamagedError(_("it holds no chats")) from error
        raise


def _check_after_crash(connection: sqlite3.Connection) -> None:
    """If a process that wrote is gone without closing, check the file and mark the answers it left unfinished.

    Raises:
        _DamagedError: if the check found something.
    """
    writers = connection.execute("SELECT writer_id, pid, process_started_s FROM writers").fetchall()
    dead = [(writer_id,) for writer_id, pid, started_s in writers if not _is_alive(pid, started_s)]
    if not dead:
        return
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _DamagedError(_("a check of its content failed"))
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


def _move_aside(path: Path) -> Path:
    """Give a damaged store and its companions a dated name in the same folder.

    Raises:
        OSError: if that cannot be done.
    """
    date = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{date}{path.suffix}")
    while any(_companion(aside, suffix).exists() for suffix in ("", "-wal")):
        aside = path.with_name(f"{path.stem}.damaged-{date}-{secrets.token_hex(2)}{path.suffix}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            _companion(path, suffix).rename(_companion(aside, suffix))
    return aside


def _companion(path: Path, suffix: str) -> Path:
    """Return the path of a file that SQLite keeps beside the store; "" is the store itself."""
    return path.with_name(path.name + suffix)


def _size_bytes(path: Path) -> int:
    """Return a file's size; 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
