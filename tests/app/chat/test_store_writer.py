"""The one thread that writes: order, company, and disks that refuse."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from app.chat import store_writer
from app.chat.schema import migrate
from app.chat.store_words import StoreCode
from app.chat.store_writer import StoreWriter
from tests.helpers.chat_stores import PATIENCE_S, sql

NEVER_S = 3600.0


class Disk:
    """A store's file whose disk can be made full.

    Attributes:
        connection: the writer's.
        commits: how many transactions were begun.
    """

    def __init__(self, path):
        self.path = path
        self.guard = threading.RLock()
        self.is_there = True
        self.commits = 0
        self.connection = None

    def connect(self):
        if not self.is_there:
            raise sqlite3.OperationalError("unable to open database file")
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        migrate(self.connection)
        self.connection.set_trace_callback(self._count)
        return self.connection

    def fill(self):
        """Let no page be added."""
        with self.guard:
            self.connection.execute("PRAGMA max_page_count = 1")

    def free(self):
        with self.guard:
            self.connection.execute("PRAGMA max_page_count = 1000000")

    def titles(self):
        return [title for (title,) in sql(self.path, "SELECT title FROM chats ORDER BY chat_id")]

    def _count(self, statement):
        self.commits += statement == "COMMIT"


@pytest.fixture
def disk(path):
    return Disk(path)


@pytest.fixture
def writer(disk):
    made = StoreWriter(disk.connect, disk.guard, journal_s=NEVER_S)
    made.start()
    made.put(add(0)).result(PATIENCE_S)
    yield made
    made.close()


def add(chat_id, title=None):
    """Return a change that adds a chat."""
    values = (chat_id, title or str(chat_id))

    def apply(connection):
        connection.execute("INSERT INTO chats VALUES (?, ?, 0, 0, NULL, '', '{}')", values)

    return apply


def big(chat_id):
    """Return a change that needs many new pages."""
    return add(chat_id, "big" * 10000)


def refuse(connection):
    connection.execute("INSERT INTO chats VALUES (99, 'left out', 0, 0, NULL, '', '{}')")
    connection.execute("INSERT INTO messages SELECT 1, 5, NULL, '', '', '', '', '', '', 0, 0, '', x''")


def test_writes_that_wait_together_are_done_in_order_in_one_transaction(writer, disk):
    done = []
    with disk.guard:  # holds the first of them back until all have been asked for
        first = writer.put(add(1), lambda: done.append(1))
        others = [writer.put(add(n), lambda n=n: done.append(n)) for n in range(2, 10)]
        before = disk.commits
    for future in (first, *others):
        assert future.result(PATIENCE_S) is None
    assert done == list(range(1, 10))
    assert disk.titles() == [str(n) for n in range(10)]
    assert disk.commits - before <= 2


def test_a_journal_waits_for_company_and_goes_with_the_next_write(writer, disk):
    journal = writer.put_journal(7, add(1))
    assert writer.put_journal(7, add(1)) is journal
    other = writer.put_journal(8, add(2))
    assert other is not journal
    assert not journal.done()
    writer.put(add(3)).result(PATIENCE_S)
    assert (journal.done(), other.done()) == (True, True)
    assert writer.put_journal(7, add(4)) is not journal
    assert disk.titles() == ["0", "1", "2", "3"]


def test_a_journal_without_company_is_saved_after_its_time(disk):
    writer = StoreWriter(disk.connect, disk.guard, journal_s=0.01)
    writer.start()
    try:
        writer.put_journal(7, add(1)).result(PATIENCE_S)
        assert disk.titles() == ["1"]
    finally:
        writer.close()


def test_text_waits_half_a_second_at_most():
    assert store_writer.JOURNAL_S == 0.5


def test_settled_means_that_all_before_it_is_on_disk(writer, disk):
    writer.put_journal(7, add(1))
    writer.settled().result(PATIENCE_S)
    assert disk.titles() == ["0", "1"]


def test_a_write_that_contradicts_the_store_is_left_out_alone(writer, disk, allow_log):
    allow_log("a write was refused: FOREIGN KEY constraint failed")
    done = []
    with disk.guard:
        futures = [writer.put(add(1)), writer.put(refuse, lambda: done.append("refused")), writer.put(add(2))]
    assert futures[1].exception(PATIENCE_S).code is StoreCode.REFUSED
    assert (futures[0].result(PATIENCE_S), futures[2].result(PATIENCE_S)) == (None, None)
    assert disk.titles() == ["0", "1", "2"]
    assert done == ["refused"]


def test_what_a_full_disk_refuses_is_written_later_in_the_same_order(writer, disk):
    problems = []
    writer.on_problem(problems.append)
    writer.put(add(1)).result(PATIENCE_S)
    disk.fill()
    first = writer.put(big(2))
    assert first.exception(PATIENCE_S).code is StoreCode.FULL
    assert writer.put(add(3)).exception(PATIENCE_S).code is StoreCode.FULL
    assert writer.put_chore(lambda connection: None).exception(PATIENCE_S).code is StoreCode.FULL
    assert [problem.code for problem in problems] == [StoreCode.FULL]
    assert disk.titles() == ["0", "1"]
    disk.free()
    writer.put(add(4)).result(PATIENCE_S)
    assert disk.titles() == ["0", "1", "big" * 10000, "3", "4"]
    disk.fill()
    writer.put(big(5)).exception(PATIENCE_S)
    assert len(problems) == 2  # told again after it had worked
    disk.free()


def test_a_refused_write_is_tried_again_without_another(writer, disk, monkeypatch):
    monkeypatch.setattr(store_writer, "_RETRY_S", 0.01)
    written = threading.Event()
    disk.fill()
    writer.put(big(1), written.set).exception(PATIENCE_S)
    assert not written.is_set()
    disk.free()
    assert written.wait(PATIENCE_S)
    assert disk.titles() == ["0", "big" * 10000]


def test_a_refused_journal_is_kept_once(writer, disk):
    disk.fill()
    for number in range(1, 4):
        journal = writer.put_journal(7, big(number))
        writer.settled().exception(PATIENCE_S)
        assert journal.exception(PATIENCE_S).code is StoreCode.FULL
    disk.free()
    writer.settled().result(PATIENCE_S)
    assert disk.titles() == ["0", "big" * 10000]
    assert sql(disk.path, "SELECT chat_id FROM chats") == [(0,), (3,)]


def test_what_is_still_refused_is_tried_at_the_end(writer, disk):
    disk.fill()
    writer.put(big(1)).exception(PATIENCE_S)
    disk.free()
    writer.close()
    assert disk.titles() == ["0", "big" * 10000]


def test_a_callback_that_fails_does_not_end_the_writer(writer, disk, allow_log):
    allow_log("exception calling callback")

    def fail(problem):
        raise RuntimeError("the window is gone")

    writer.on_problem(fail)
    disk.fill()
    writer.put(big(1)).exception(PATIENCE_S)
    disk.free()
    writer.put(add(2)).result(PATIENCE_S)


def test_a_file_that_cannot_be_opened_is_tried_again(disk):
    disk.is_there = False
    writer = StoreWriter(disk.connect, disk.guard)
    writer.start()
    try:
        assert writer.put(add(1)).exception(PATIENCE_S).code is StoreCode.DISK
        disk.is_there = True
        writer.put(add(2)).result(PATIENCE_S)
        assert disk.titles() == ["1", "2"]
    finally:
        writer.close()


def test_a_chore_is_done_outside_a_transaction_and_its_failure_is_its_own(writer, disk):
    states = []
    writer.put_chore(lambda connection: states.append(connection.in_transaction)).result(PATIENCE_S)
    assert states == [False]
    failed = writer.put_chore(lambda connection: connection.execute("no such statement"))
    assert failed.exception(PATIENCE_S).code is StoreCode.DISK
    writer.put(add(1)).result(PATIENCE_S)


def test_whoever_writes_is_registered_until_the_end(writer, disk):
    assert [row[0] for row in sql(disk.path, "SELECT writer_id FROM writers")] == [writer.writer_id]
    writer.close()
    assert sql(disk.path, "SELECT * FROM writers") == []


def test_a_doubtful_store_stays_registered_as_not_closed(writer, disk):
    writer.doubt()
    writer.close()
    assert sql(disk.path, "SELECT writer_id, process_started_s FROM writers") == [(writer.writer_id, 0.0)]


def test_closing_writes_what_waits_and_refuses_what_comes(disk):
    writer = StoreWriter(disk.connect, disk.guard, journal_s=NEVER_S)
    writer.start()
    journal = writer.put_journal(7, add(1))
    writer.close()
    writer.close()
    assert journal.result(0) is None
    assert disk.titles() == ["1"]
    for late in (writer.put(add(2)), writer.put_journal(7, add(3)), writer.settled()):
        assert late.exception(0).code is StoreCode.CLOSED


def test_a_writer_that_was_never_started_can_be_closed(disk):
    StoreWriter(disk.connect, disk.guard).close()


def test_nobody_waits_for_ever_when_the_thread_meets_an_error_nobody_foresaw(disk, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    def fail(connection):
        raise KeyError("a mistake of the program")

    writer = StoreWriter(disk.connect, disk.guard)
    writer.start()
    with disk.guard:
        futures = [writer.put(fail), writer.put(add(1)), writer.settled()]
    assert [future.exception(PATIENCE_S).code for future in futures] == [StoreCode.CLOSED] * 3
    writer.close()
    assert seen == [KeyError]
    assert writer.put(add(2)).exception(0).code is StoreCode.CLOSED
