"""The one thread that writes to the chat store, so that no caller ever waits for a disk.

Writes are done in the order they were asked for, all that wait in one transaction. The journal of an answer in
progress waits up to half a second for company. A write that the disk refuses stays in line and is tried again with
the next one: nothing is dropped while the program runs. Knows connections and transactions, no chat and no table but
that of the writers.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from app.chat import store_words
from app.chat.store_file import this_process
from app.chat.store_words import StoreCode, StoreError

logger = logging.getLogger(__name__)

# Journalled text waits at most this long; with a slow commit behind it, at most a second of text is lost by a crash.
JOURNAL_S = 0.5

# How long a refused write waits for its next try when no other write comes.
_RETRY_S = 5.0

# The write itself is at fault, not the disk: trying again would not help.
_REFUSALS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)

Apply = Callable[[sqlite3.Connection], None]


def _future() -> Future[None]:
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()  # a write that was asked for cannot be taken back
    return future


def _nothing() -> None:
    pass


@dataclass(slots=True)
class _Write:
    """One change, done in a transaction with its neighbours.

    Attributes:
        apply: makes the change; raises only sqlite3.Error.
        written: called on the writer's thread once the change is on disk, or can never be.
        journal_key: the message that is journalled, None for any other write.
        future: done when the change is on disk; carries a StoreError when a try failed.
    """

    apply: Apply
    written: Callable[[], None] = _nothing
    journal_key: int | None = None
    future: Future[None] = field(default_factory=_future)


class StoreWriter:
    """Owns the thread and the connection that write.

    Life cycle: make it, start() it, put() from any thread, close() it once.

    Attributes:
        writer_id: names this writer in the store while it is open.
        _connect: opens the connection, at the first write.
        _guard: held while the connection is used.
        _waiting: writes not yet taken, in order.
        _journalled: those of them that journal, by message id.
        _backlog: writes that were refused and are tried again; only the thread touches it.
        _chores: what is done between transactions, after all that was asked before.
        _due_s: when the thread looks next, by the monotonic clock; None for never.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        guard: AbstractContextManager[object],
        journal_s: float = JOURNAL_S,
    ) -> None:
        self.writer_id = secrets.randbits(53)
        self._connect = connect
        self._guard = guard
        self._journal_s = journal_s
        self._connection: sqlite3.Connection | None = None
        self._condition = threading.Condition()
        self._waiting: list[_Write] = []
        self._journalled: dict[int, _Write] = {}
        self._backlog: list[_Write] = []
        self._chores: list[_Write] = []
        self._due_s: float | None = None
        self._process = (0, 0.0)
        self._is_closing = False
        self._is_doubtful = False
        self._is_reported = False
        self._on_problem: list[Callable[[StoreError], None]] = []
        self._thread = threading.Thread(target=self._run, name="chat store writer")

    def start(self) -> None:
        """Start the thread; call once."""
        self._process = this_process()
        self._thread.start()

    def put(self, apply: Apply, written: Callable[[], None] = _nothing) -> Future[None]:
        """Have a change made as soon as possible.

        Args:
            apply: makes the change on the writer's connection, inside a transaction; raises only sqlite3.Error.
            written: called on the writer's thread once the change is on disk, or can never be.

        Returns:
            A future that is done when the change is on disk. It carries a StoreError when the first try failed; the
            change then stays in line, unless the code is REFUSED.
        """
        return self._add(_Write(apply, written), 0.0, self._waiting)

    def put_journal(self, message_id: int, apply: Apply) -> Future[None]:
        """Have an answer in progress saved within half a second; those that wait for the same message share a write."""
        with self._condition:
            waiting = self._journalled.get(message_id)
            if waiting is not None:
                return waiting.future
            write = self._journalled[message_id] = _Write(apply, journal_key=message_id)
            return self._add(write, self._journal_s, self._waiting)

    def put_chore(self, chore: Apply) -> Future[None]:
        """Have something done outside a transaction, after all that was asked before; it is not tried again."""
        return self._add(_Write(chore), 0.0, self._chores)

    def settled(self) -> Future[None]:
        """Return a future that is done when everything asked so far is on disk; it carries a StoreError if not."""
        return self.put_chore(_no_change)

    def doubt(self) -> None:
        """Have the whole file checked at its next opening: something that was read from it cannot be true."""
        if not self._is_doubtful:
            self._is_doubtful = True
            self._add(_Write(_no_change), 0.0, self._waiting)

    def on_problem(self, callback: Callable[[StoreError], None]) -> None:
        """Have the callback told, on the writer's thread, when writes begin to fail: once, until one succeeds again."""
        self._on_problem.append(callback)

    def close(self) -> None:
        """Write what waits, leave the store in order, and end the thread; may be called again."""
        with self._condition:
            self._is_closing = True
            self._condition.notify()
        if self._thread.ident is not None:
            self._thread.join()

    # --------------------------------------------------------------------------------- any thread

    def _add(self, write: _Write, delay_s: float, line: list[_Write]) -> Future[None]:
        with self._condition:
            if self._is_closing:
                write.future.set_exception(store_words.closed())
                return write.future
            line.append(write)
            due_s = time.monotonic() + delay_s
            if self._due_s is None or due_s < self._due_s:
                self._due_s = due_s
                self._condition.notify()
        return write.future

    # -------------------------------------------------------------------------- the writer's thread

    def _run(self) -> None:
        writes: list[_Write] = []
        chores: list[_Write] = []
        is_closing = False
        try:
            while not is_closing:
                writes, chores, is_closing = self._take()
                self._write(writes)
                self._do(chores)
            self._sign_off()
        finally:  # whatever ended the thread, nobody may wait for it for ever
            with self._condition:
                self._is_closing = True
                left = [*writes, *chores, *self._backlog, *self._waiting, *self._chores]
            for write in left:
                _fail(write, store_words.closed())
            if self._connection is not None:
                self._connection.close()

    def _take(self) -> tuple[list[_Write], list[_Write], bool]:
        """Wait until something is due; return the writes in order, the chores, and whether this is the end."""
        with self._condition:
            while not self._is_closing:
                wait_s = None if self._due_s is None else self._due_s - time.monotonic()
                if wait_s is not None and wait_s <= 0:
                    break
                self._condition.wait(wait_s)
            writes, chores = self._waiting.copy(), self._chores.copy()
            for taken in (self._waiting, self._chores, self._journalled):
                taken.clear()
            self._due_s = None
            return writes, chores, self._is_closing

    def _write(self, writes: list[_Write]) -> None:
        """Try the backlog and these writes, in one transaction."""
        writes = _once_a_message([*self._backlog, *writes])
        if not writes:
            return
        refused: dict[int, StoreError] = {}
        try:
            with self._guard:
                self._commit(writes, refused)
        except sqlite3.Error as error:
            self._put_back(writes, store_words.error_for(error))
            return
        self._backlog = []
        self._is_reported = False
        for place, write in enumerate(writes):
            write.written()
            if place in refused:
                _fail(write, refused[place])
            elif not write.future.done():
                write.future.set_result(None)

    def _commit(self, writes: list[_Write], refused: dict[int, StoreError]) -> None:
        """Make the changes and commit; those that contradict the store are left out and noted in refused."""
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._sign_on(connection)
            for place, write in enumerate(writes):
                try:
                    connection.execute("SAVEPOINT one_write")
                    write.apply(connection)
                except _REFUSALS as error:
                    connection.execute("ROLLBACK TO one_write")
                    refused[place] = store_words.refused()
                    logger.warning("a write was refused: %s", error)
                connection.execute("RELEASE one_write")
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _put_back(self, writes: list[_Write], problem: StoreError) -> None:
        """Keep writes that the disk refused, and tell that it did."""
        self._backlog = [write for write in writes if write.apply is not _no_change]
        self._is_doubtful = self._is_doubtful or problem.code is StoreCode.DAMAGED
        for write in writes:
            _fail(write, problem)
        with self._condition:
            if self._due_s is None:
                self._due_s = time.monotonic() + _RETRY_S
        if not self._is_reported:
            self._is_reported = True
            logger.info("writes fail: %s", problem.code)
            for callback in self._on_problem:
                # a future keeps the callback's own error, logged, from ending this thread
                report: Future[StoreError] = Future()
                report.set_result(problem)
                report.add_done_callback(_caller_of(callback))

    def _do(self, chores: list[_Write]) -> None:
        for chore in chores:
            if self._backlog:
                _fail(chore, _still_failing(self._backlog[0]))
                continue
            try:
                with self._guard:
                    if self._connection is None:
                        self._connection = self._connect()
                    chore.apply(self._connection)
            except sqlite3.Error as error:
                _fail(chore, store_words.error_for(error))
            else:
                chore.future.set_result(None)

    def _sign_on(self, connection: sqlite3.Connection) -> None:
        # With every commit: another process that took this one for dead (the clock was set) may have removed the row.
        row = (self.writer_id, *self._process)
        connection.execute("INSERT INTO writers VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)

    def _sign_off(self) -> None:
        """Say in the store that it was closed in order, or that it needs a check, and fold the WAL into the file."""
        if self._backlog:
            logger.info("%d writes could not be saved", len(self._backlog))
        if self._connection is None:
            return
        statements = [
            "BEGIN IMMEDIATE",
            "UPDATE messages SET state = 'interrupted' WHERE state = 'streaming' AND writer_id = :id",
            "DELETE FROM writers WHERE writer_id = :id",
            "COMMIT",
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ]
        if self._is_doubtful:  # no process began in 1970, so the next opening takes this one for dead
            statements = ["UPDATE writers SET process_started_s = 0 WHERE writer_id = :id"]
        try:
            with self._guard:
                for statement in statements:
                    self._connection.execute(statement, {"id": self.writer_id}).fetchall()
        except sqlite3.Error as error:  # the next opening takes it for a crash and checks the file
            logger.info("the store was not closed in order: %s", error)


def _no_change(_connection: sqlite3.Connection) -> None:
    """Change nothing: for writes that only mark a place in the line."""


def _caller_of(callback: Callable[[StoreError], None]) -> Callable[[Future[StoreError]], None]:
    return lambda report: callback(report.result())


def _fail(write: _Write, error: StoreError) -> None:
    if not write.future.done():
        write.future.set_exception(error)


def _still_failing(write: _Write) -> StoreError:
    """Return the error that the first write in line was refused with."""
    error = write.future.exception()
    return error if isinstance(error, StoreError) else store_words.closed()


def _once_a_message(writes: list[_Write]) -> list[_Write]:
    """Leave one journal a message, the newest in the oldest's place: each saves all there is at that moment."""
    places: dict[int, int] = {}
    kept: list[_Write] = []
    for write in writes:
        if write.journal_key in places:
            kept[places[write.journal_key]] = write
            continue
        if write.journal_key is not None:
            places[write.journal_key] = len(kept)
        kept.append(write)
    return kept
