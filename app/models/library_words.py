"""What a person is told about the library itself: its errors, and notices of its opening.

SQLite's error codes become sentences here. Knows no table and no model.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.errors import AppError, Words, one_line
from app.i18n import _
from app.sqlite_file import is_damage, reason_of


class LibraryError(AppError):
    """Something asked of the library cannot be done; the text says what and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(Words(text))


def not_written(error: Exception) -> LibraryError:
    """Return the error for a change that could not be written; the library is as it was."""
    if isinstance(error, sqlite3.Error) and is_damage(error):
        return LibraryError(_("The library's file is damaged. Nothing was changed. Try again."))
    words = _("The library could not be written ({reason}). Nothing was changed.")
    return LibraryError(words.format(reason=reason_of(error)))


def not_read(error: sqlite3.Error) -> LibraryError:
    """Return the error for a library that cannot be read."""
    return LibraryError(_("The library could not be read ({reason}). Try again.").format(reason=reason_of(error)))


def moved_aside(moved_to: Path, reason: str) -> str:
    """Return the notice for a damaged library that was moved aside."""
    words = _(
        "The library's file is damaged ({reason}). It was moved to {path} and a new one begins; no model file was "
        "touched. Notes and imported models that could still be read were taken over."
    )
    return words.format(reason=reason, path=_shown(moved_to))


def newer(path: Path) -> str:
    """Return the notice for a library that a newer version of the program made."""
    words = _(
        "The library was last saved by a newer version of Cutaway. {path} is left as it is; what is changed now is "
        "kept until the program ends. Install the newest version to go on with it."
    )
    return words.format(path=_shown(path))


def read_only(path: Path, reason: str) -> str:
    """Return the notice for a library that can be read but not written."""
    words = _(
        "The library can be read but not changed: {reason}. What is changed now is kept until the program ends. Make "
        "{path} and its folder writable and start Cutaway again."
    )
    return words.format(path=_shown(path), reason=reason)


def not_kept(path: Path, reason: str) -> str:
    """Return the notice for a place where no library can be opened at all."""
    words = _(
        "The library cannot be opened: {reason}. What is changed now is kept until the program ends. Nothing was "
        "changed at {path}. Make the folder usable and start Cutaway again."
    )
    return words.format(path=_shown(path), reason=reason)


def _shown(path: Path) -> str:
    return one_line(str(path))
