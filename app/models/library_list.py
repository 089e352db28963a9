"""The list of imported models that earlier versions kept in library.json: read once, then renamed.

Knows the list's format alone; the caller keeps what was in it.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable
from pathlib import Path

from app.i18n import _

_VERSION = 1
_MAX_BYTES = 4 * 2**20


def take_over(list_path: Path, keep: Callable[[list[Path]], None], notice: Callable[[str], None]) -> None:
    """Hand the imported files to the library, and rename the list; a damaged one is moved aside.

    Args:
        list_path: library.json.
        keep: stores the files; what it raises leaves the list as it is, so that the next start tries again.
        notice: says something to a person.
    """
    try:
        with list_path.open("rb") as file:
            imported = _parse(file.read(_MAX_BYTES + 1))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        words = _("The list of imported models could not be read ({reason}). It was left alone.")
        notice(words.format(reason=error.strerror))
        return
    if imported is None:
        _move_aside(list_path, notice)
        return
    keep(imported)
    try:
        list_path.replace(list_path.with_name("library.taken-over.json"))
    except FileNotFoundError:  # another process was faster
        return
    except OSError as error:
        words = _("The old list of imported models was taken over, but {path} could not be renamed ({reason}).")
        notice(words.format(path=list_path, reason=error.strerror))


def _move_aside(list_path: Path, notice: Callable[[str], None]) -> None:
    moment = datetime.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    target = list_path.with_name(f"library.damaged-{moment}.json")
    try:
        list_path.replace(target)
    except OSError as error:
        words = _("The list of imported models is damaged and could not be moved aside ({reason}).")
        notice(words.format(reason=error.strerror))
        return
    words = _(
        "The list of imported models could not be understood. It was moved to {path} and a new one begins; "
        "no model file was touched."
    )
    notice(words.format(path=target))


def _parse(data: bytes) -> list[Path] | None:
    """Return the paths in a list; None when it is damaged or a newer program's."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(stored, dict) or stored.get("version") != _VERSION:
        return None
    imported = stored.get("imported")
    if not isinstance(imported, list) or not all(isinstance(path, str) and path for path in imported):
        return None
    return [Path(path) for path in imported if _is_possible(path)]


def _is_possible(path: str) -> bool:
    """Whether the system can have such a path at all; one with half a character is nobody's file."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True
