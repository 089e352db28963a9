"""What a person is told about the chat store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.chat import store_words
from app.chat.store_words import StoreCode
from app.errors import AppError
from app.sqlite_file import reason_of


def sqlite_error(code, kind=sqlite3.OperationalError):
    error = kind("detail")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_FULL, StoreCode.FULL),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreCode.READ_ONLY),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreCode.BUSY),
        (sqlite3.SQLITE_CORRUPT, StoreCode.DAMAGED),
        (sqlite3.SQLITE_NOTADB, StoreCode.DAMAGED),
        (sqlite3.SQLITE_IOERR_WRITE, StoreCode.DISK),
        (sqlite3.SQLITE_CANTOPEN, StoreCode.DISK),
    ],
)
def test_sqlites_codes_become_ours_with_a_sentence_and_a_hint(code, expected):
    error = store_words.error_for(sqlite_error(code))
    assert (error.code, isinstance(error, AppError)) == (expected, True)
    assert error.message.endswith(".")
    assert error.hint.endswith(".")
    assert "{" not in error.message + error.hint
    assert reason_of(sqlite_error(code))


def test_a_closed_connection_is_told_as_closed():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.close()
        with pytest.raises(sqlite3.ProgrammingError) as caught:
            connection.execute("SELECT 1")
    assert store_words.error_for(caught.value).code is StoreCode.CLOSED


def test_notices_name_the_file_on_one_line():
    path = Path("/data/a\nb.db")
    notices = [
        store_words.moved_aside(path, "it is empty"),
        store_words.newer(path),
        store_words.read_only(path, "why"),
        store_words.not_kept(path, "why"),
    ]
    assert [notice.code for notice in notices] == [
        StoreCode.MOVED_ASIDE,
        StoreCode.NEWER,
        StoreCode.READ_ONLY,
        StoreCode.NOT_KEPT,
    ]
    for notice in notices:
        assert "/data/a b.db" in notice.hint
        assert "{" not in notice.message + notice.hint


def test_a_missing_record_is_named_for_the_log_only():
    error = store_words.missing("chat 5")
    assert error.__notes__ == ["chat 5"]
    assert "5" not in error.message + error.hint
