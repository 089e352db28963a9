"""A database file that may be damaged, foreign, half there or not writable: made, looked at, opened, moved aside.

Knows SQLite's file format and error codes; knows no table. A new database is made under another name and then linked
into place, so a file under the database's own name was once complete, and an empty one is damage.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import secrets
import sqlite3
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from app.errors import one_line
from app.i18n import _

# How long a read or write waits for another process, which holds the lock for one commit at a time.
_BUSY_TIMEOUT_S = 5.0

# https://www.sqlite.org/fileformat.html section 1.3
_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"


class DamagedError(Exception):
    """The file cannot be the database it should be; the text says why, as the middle of a sentence."""


# ------------------------------------------------------------------------------------------------ opening


def connect(path: Path, query: str, pragmas: Sequence[str] = ()) -> sqlite3.Connection:
    """Open a connection that any one thread at a time may use; never creates a file.

    Args:
        path: the file.
        query: that of an SQLite URI; says what may be done, such as "mode=ro".
        pragmas: more than foreign keys and full synchronisation.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    # as an URI, so that nothing is created by accident; three slashes, or a name of a Windows share would be a host
    place = path.as_posix()
    uri = f"file://{'' if place.startswith('/') else '/'}{quote(os.fsencode(place))}?{query}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        for pragma in ("foreign_keys = ON", "synchronous = FULL", *pragmas):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect_readable(path: Path, check: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """Open for reads only, without changing anything.

    Args:
        path: the file.
        check: raises sqlite3.Error where the tables are none that can be read.

    Raises:
        sqlite3.Error: it cannot be read either, or the check failed.
    """
    queries = ["mode=ro"]
    if not size_bytes(companion(path, "-wal")):
        # A folder that cannot be written has no room for SQLite's lock files; with no WAL they are not needed.
        queries.append("mode=ro&immutable=1")
    for query in queries[:-1]:
        with contextlib.suppress(sqlite3.Error):
            return _connect_checked(path, query, check)
    return _connect_checked(path, queries[-1], check)


def _connect_checked(path: Path, query: str, check: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    connection = connect(path, query)
    try:
        check(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def create(path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
    """Make a database, readable by this person only; one that another process makes at the same moment is taken.

    Args:
        path: where it is to lie; missing folders are made.
        prepare: makes the tables.

    Raises:
        OSError, sqlite3.Error: it cannot be made; nothing is left behind.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with contextlib.closing(connect(draft, "mode=rw")) as connection:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            prepare(connection)
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
                companion(draft, suffix).unlink(missing_ok=True)


def back_up(connection: sqlite3.Connection, backup: Path) -> None:
    """Copy the whole database; a copy of an earlier attempt is replaced."""
    with contextlib.closing(sqlite3.connect(backup)) as copy:
        backup.chmod(0o600)
        connection.backup(copy)


def version_of(connection: sqlite3.Connection) -> int:
    """Return how many migrations the database has seen; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def apply_migrations(connection: sqlite3.Connection, migrations: Sequence[Sequence[str]], up_to: int) -> None:
    """Apply the migrations that are missing, all of them or none.

    Args:
        connection: a writable connection outside a transaction.
        migrations: the statements of each; the n-th leads to version n.
        up_to: the version to reach.

    Raises:
        sqlite3.Error: a migration failed; the database is as it was.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # read again inside the transaction: another process may have migrated meanwhile
        for statements in migrations[version_of(connection) : up_to]:
            for statement in statements:
                connection.execute(statement)
        version = max(version_of(connection), up_to)
        connection.execute(f"PRAGMA user_version = {version:d}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# ------------------------------------------------------------------------------------------------- damage


def check_header(path: Path) -> None:
    """Check what can be checked without reading the file: most damage of a disk shows here.

    Raises:
        DamagedError: this cannot be a complete database.
        OSError: it cannot be read, or is not a file at all.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, _("there is something else than a file at {path}").format(path=path.name))
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    # In this order: while another process copies the WAL into the file, the WAL is there.
    has_wal = size_bytes(companion(path, "-wal")) > 0
    whole_bytes = size_bytes(path)
    if not header:
        raise DamagedError(_("it is empty"))
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise DamagedError(_("it is not a database"))
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(header[28:32], "big")
    if not has_wal and header[24:28] == header[92:96] and whole_bytes < pages * page_bytes:
        raise DamagedError(_("its end is missing"))


def move_aside(path: Path) -> Path:
    """Give a damaged database and its companions a dated name in the same folder, and return it.

    Raises:
        OSError: that cannot be done.
    """
    date = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    aside = path.with_name(f"{path.stem}.damaged-{date}{path.suffix}")
    while any(companion(aside, suffix).exists() for suffix in ("", "-wal")):
        aside = path.with_name(f"{path.stem}.damaged-{date}-{secrets.token_hex(2)}{path.suffix}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            companion(path, suffix).rename(companion(aside, suffix))
    return aside


def companion(path: Path, suffix: str) -> Path:
    """Return the path of a file that SQLite keeps beside the database; "" is the database itself."""
    return path.with_name(path.name + suffix)


def size_bytes(path: Path) -> int:
    """Return a file's size; 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# ------------------------------------------------------------------------------------------------- errors


def primary_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code of an error; 0 when the module itself raised it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error says that the file's content cannot be true."""
    return primary_code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def reason_of(error: Exception) -> str:
    """Return why opening or writing failed, as the middle of a sentence."""
    if isinstance(error, sqlite3.Error):
        return _reason_of_sqlite(error)
    if isinstance(error, OSError):
        return one_line(error.strerror or type(error).__name__)
    return one_line(str(error))


def _reason_of_sqlite(error: sqlite3.Error) -> str:
    match primary_code(error):
        case sqlite3.SQLITE_FULL:
            return _("the disk is full")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return _("the file or its folder is not writable")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return _("another program keeps the file locked")
        case sqlite3.SQLITE_IOERR:
            return _("the disk is full or does not answer")
        case _:
            return one_line(str(error))
