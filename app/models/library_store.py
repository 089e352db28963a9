"""The library's database while the program runs: opened when first needed, read and written under one lock.

Two processes may have it open. Nothing is lost silently: a database that turns out to be damaged is moved aside, and a
notice says so. Knows transactions; knows no table.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from app.i18n import _
from app.models import library_words
from app.models.library_file import OpenedLibrary, is_whole, open_library, replace_damaged
from app.models.library_words import LibraryError
from app.sqlite_file import is_damage

_T = TypeVar("_T")


class LibraryStore:
    """One library's database. Any thread may use it; a write waits for the disk.

    Attributes:
        path: where it lies once something was written.
        _opened: None until it is needed.
        _held: the open connections, closed with the store.
        _token: what the last look at the database's changes said.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._opened: OpenedLibrary | None = None
        self._notices: list[str] = []
        self._held: list[sqlite3.Connection] = []
        self._is_closed = False
        self._token = 0
        self._close = weakref.finalize(self, _close_all, self._held)

    def notices(self) -> list[str]:
        """Return what was special about opening the database, in words; opens it if it is there."""
        with self._lock:
            self._open(is_written=False)
            return list(self._notices)

    def notice(self, words: str) -> None:
        """Add something that a person must be told, once."""
        with self._lock:
            if words not in self._notices:
                self._notices.append(words)

    def read(self, look: Callable[[sqlite3.Connection], _T], absent: _T) -> _T:
        """Return what a look at the database tells; `absent` where there is none yet.

        Raises:
            LibraryError: it cannot be read.
        """
        with self._lock:
            if not self._open(is_written=False):
                return absent
            try:
                return self._look(look)
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise library_words.not_read(error) from error
            self._replace()
            try:
                return self._look(look)
            except sqlite3.Error as error:
                raise library_words.not_read(error) from error

    def write(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change, all of it or nothing, and return what it returns.

        Raises:
            LibraryError: it could not be written; nothing was changed.
        """
        with self._lock:
            self._open(is_written=True)
            return self._commit(self._connection, change)

    @contextlib.contextmanager
    def apart(self) -> Iterator[Callable[[Callable[[sqlite3.Connection], object]], None]]:
        """Yield a way to write that keeps no reader waiting: for the many small changes of a long work.

        Raises:
            LibraryError: the database cannot be opened, or a change could not be written.
        """
        with self._lock:
            self._open(is_written=True)
            try:
                connection = self._opened.connect_again() if self._opened else None
            except sqlite3.Error as error:
                raise library_words.not_written(error) from error
        if connection is None:  # in memory, where nothing waits for a disk
            yield self._write_here
            return
        with contextlib.closing(connection):
            yield functools.partial(self._write_apart, connection)

    def check(self) -> None:
        """Look through the whole file, and replace it when it is damaged; takes a tenth of a second or so.

        Raises:
            LibraryError: it cannot be read.
        """
        with self._lock:
            if not self._open(is_written=False) or self._opened is None:
                return
            opened = self._opened
        try:
            connection = opened.connect_again()
            if connection is None:
                return
            with contextlib.closing(connection):
                is_sound = is_whole(connection)
        except sqlite3.Error as error:
            raise library_words.not_read(error) from error
        with self._lock:
            if not is_sound and self._opened is opened:
                self._replace()

    def token(self) -> int:
        """Return a number that differs once another connection or process changed the database; never waits."""
        if not self._lock.acquire(blocking=False):
            return self._token
        try:
            if self._is_closed or (self._opened is None and not self.path.exists()):
                return self._token
            self._open(is_written=False)
            with contextlib.suppress(sqlite3.Error):
                self._token = int(self._connection.execute("PRAGMA data_version").fetchone()[0])
            return self._token
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the database; what was written is safe, and nothing can be written any more."""
        with self._lock:
            self._is_closed = True
            self._opened = None
            self._close()

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._opened is not None
        return self._opened.connection

    def _open(self, *, is_written: bool) -> bool:
        """Open the database; return whether there is one. It is made only when something is to be written."""
        if self._is_closed:
            if is_written:
                raise LibraryError(_("The library is closed. Start Cutaway again."))
            return False
        if self._opened is None:
            if not is_written and not self.path.exists():
                return False
            self._take(open_library(self.path))
        return True

    def _take(self, opened: OpenedLibrary) -> None:
        self._opened = opened
        self._held.append(opened.connection)
        for words in opened.notices:
            self.notice(words)

    def _replace(self) -> None:
        """Close a damaged database, move it aside and go on with a new one."""
        path = self._opened.path if self._opened else None
        self._connection.close()
        self._take(replace_damaged(path or self.path))

    def _look(self, look: Callable[[sqlite3.Connection], _T]) -> _T:
        """Read in one transaction, so that what is read belongs together."""
        connection = self._connection
        connection.execute("BEGIN")
        try:
            return look(connection)
        finally:
            _roll_back(connection)

    def _commit(self, connection: sqlite3.Connection, change: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            connection.execute("BEGIN IMMEDIATE")
            changed = change(connection)
            connection.execute("COMMIT")
            return changed
        except sqlite3.Error as error:
            _roll_back(connection)
            if is_damage(error) and connection is self._connection:
                self._replace()
            raise library_words.not_written(error) from error
        finally:
            _roll_back(connection)

    def _write_here(self, change: Callable[[sqlite3.Connection], object]) -> None:
        self.write(change)

    def _write_apart(self, connection: sqlite3.Connection, change: Callable[[sqlite3.Connection], object]) -> None:
        self._commit(connection, change)


def _roll_back(connection: sqlite3.Connection) -> None:
    with contextlib.suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _close_all(held: list[sqlite3.Connection]) -> None:
    for connection in held:
        connection.close()
    held.clear()
