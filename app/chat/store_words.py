"""What a person is told about the chat store: errors of reads and writes, and notices of its opening.

SQLite's error codes become sentences here and nowhere else. Knows no table and no thread.
"""

from __future__ import annotations

import enum
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from app.errors import AppError, Words, one_line
from app.i18n import _
from app.sqlite_file import primary_code


class StoreCode(enum.StrEnum):
    """Why a read or write failed, or what was special about opening the store."""

    FULL = "full"  # the disk is full
    READ_ONLY = "read_only"  # the store can be read but not changed
    BUSY = "busy"  # another process kept it locked for too long
    DAMAGED = "damaged"  # the file's content cannot be true
    DISK = "disk"  # the disk or its connection failed
    REFUSED = "refused"  # the write contradicts what is stored, such as a message of a deleted chat
    MISSING = "missing"  # the chat or message is not there any more
    FINISHED = "finished"  # text for an answer that was already finished
    CLOSED = "closed"  # the store was closed
    MOVED_ASIDE = "moved_aside"  # notice: a damaged store was moved aside and a fresh one made
    NEWER = "newer"  # notice: a newer version of the program made the store; opened read-only
    NOT_KEPT = "not_kept"  # notice: nothing can be stored; the chats of this run live in memory


class StoreError(AppError):
    """A chat could not be read or written; what was acknowledged before is safe.

    Attributes:
        code: why.
        words: what happened and what to do.
    """

    def __init__(self, code: StoreCode, words: Words) -> None:
        super().__init__(words)
        self.code = code

    @property
    def message(self) -> str:
        """What happened, for a person."""
        return self.words.message

    @property
    def hint(self) -> str:
        """What to do about it; "" when there is nothing to do."""
        return self.words.hint


@dataclass(frozen=True, slots=True)
class StoreNotice:
    """Something a person must be told about the opening of the store.

    Attributes:
        code: which notice this is.
        message: what happened.
        hint: what to do about it.
    """

    code: StoreCode
    message: str
    hint: str


def error_for(error: sqlite3.Error) -> StoreError:
    """Return SQLite's error in words."""
    code, words = _words_for(error)
    return StoreError(code, words)


def _words_for(error: sqlite3.Error) -> tuple[StoreCode, Words]:
    kept = _("What is new is kept in memory, and Cutaway keeps trying to save it.")
    match primary_code(error):
        case sqlite3.SQLITE_FULL:
            return StoreCode.FULL, Words(
                _("The disk is full, so new messages are not saved yet."),
                _("Free some space. {kept}").format(kept=kept),
            )
        case sqlite3.SQLITE_READONLY:
            return StoreCode.READ_ONLY, Words(
                _("The chats can be read but not changed."), _("What is new is shown until the program ends.")
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreCode.BUSY, Words(_("Another program keeps the chats locked."), kept)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCode.DAMAGED, damaged().words
        case 0 if isinstance(error, sqlite3.ProgrammingError):
            return StoreCode.CLOSED, closed().words
        case _:
            detail = one_line(str(error))
            return StoreCode.DISK, Words(
                _("The chats could not be read or saved: {detail}.").format(detail=detail),
                _("Check that the disk is connected. {kept}").format(kept=kept),
            )


def missing(what: str) -> StoreError:
    """Return the error for a chat or message that is not there; what is its id, for the log."""
    words = Words(_("This chat or message is not there any more."), _("It was deleted, perhaps in another window."))
    error = StoreError(StoreCode.MISSING, words)
    error.add_note(what)
    return error


def damaged() -> StoreError:
    """Return the error for content that cannot be true."""
    words = Words(
        _("The file of the chats is damaged."),
        _("Start Cutaway again: it checks the file and keeps it under another name if it cannot be used."),
    )
    return StoreError(StoreCode.DAMAGED, words)


def refused() -> StoreError:
    """Return the error for a write that contradicts what is stored."""
    words = Words(
        _("A change could not be saved because its chat or message is not there any more."),
        _("It was deleted, perhaps in another window. All else is untouched."),
    )
    return StoreError(StoreCode.REFUSED, words)


def finished() -> StoreError:
    """Return the error for text that belongs to an answer which was already finished."""
    return StoreError(StoreCode.FINISHED, Words(_("This answer is already finished."), ""))


def closed() -> StoreError:
    """Return the error for a read or write after the store was closed."""
    words = Words(_("The chats are closed."), _("Start Cutaway again; what was saved is there."))
    return StoreError(StoreCode.CLOSED, words)


def moved_aside(moved_to: Path, reason: str) -> StoreNotice:
    """Return the notice for a damaged store that was moved aside."""
    return StoreNotice(
        StoreCode.MOVED_ASIDE,
        _("The file of your chats is damaged ({reason}), so a new, empty one was begun.").format(reason=reason),
        _("Nothing was deleted: the old file is kept as {path}. If you have a backup, put it in its place.").format(
            path=one_line(str(moved_to))
        ),
    )


def newer(path: Path) -> StoreNotice:
    """Return the notice for a store that a newer version of the program made and this one can read."""
    return StoreNotice(
        StoreCode.NEWER,
        _("Your chats were last saved by a newer version of Cutaway. They are shown, and nothing in them is changed."),
        _("Install the newest version to go on with them. Chats of this run are not kept. The file is {path}.").format(
            path=one_line(str(path))
        ),
    )


def read_only(path: Path, reason: str) -> StoreNotice:
    """Return the notice for a store that can be read but not written."""
    return StoreNotice(
        StoreCode.READ_ONLY,
        _("Your chats can be read but not changed: {reason}. Chats of this run are not kept.").format(reason=reason),
        _("Make {path} and its folder writable and start Cutaway again.").format(path=one_line(str(path))),
    )


def not_kept(path: Path, reason: str) -> StoreNotice:
    """Return the notice for a place where no store can be opened at all."""
    return StoreNotice(
        StoreCode.NOT_KEPT,
        _("Your chats cannot be opened: {reason}. Chats of this run are not kept.").format(reason=reason),
        _("Nothing was changed at {path}. Make the folder usable and start Cutaway again.").format(
            path=one_line(str(path))
        ),
    )
