"""What a person is told about the library itself."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from app.models import library_words


def sqlite_error(code):
    error = sqlite3.OperationalError("detail")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            sqlite_error(sqlite3.SQLITE_FULL),
            "The library could not be written (the disk is full). Nothing was changed.",
        ),
        (
            sqlite_error(sqlite3.SQLITE_READONLY),
            "The library could not be written (the file or its folder is not writable). Nothing was changed.",
        ),
        (
            sqlite_error(sqlite3.SQLITE_BUSY),
            "The library could not be written (another program keeps the file locked). Nothing was changed.",
        ),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), "The library's file is damaged. Nothing was changed. Try again."),
        (
            OSError(28, "No space left on device"),
            "The library could not be written (No space left on device). Nothing was changed.",
        ),
    ],
)
def test_a_write_that_failed_says_why(error, words):
    assert str(library_words.not_written(error)) == words


def test_a_read_that_failed_says_why():
    words = "The library could not be read (the disk is full or does not answer). Try again."
    assert str(library_words.not_read(sqlite_error(sqlite3.SQLITE_IOERR))) == words


def test_notices_name_the_file_on_one_line():
    path = Path("/data/a\nb.sqlite3")
    for notice in (
        library_words.moved_aside(path, "it is empty"),
        library_words.newer(path),
        library_words.read_only(path, "why"),
        library_words.not_kept(path, "why"),
    ):
        assert "\n" not in notice
        assert "/data/a" in notice
        assert "{" not in notice
