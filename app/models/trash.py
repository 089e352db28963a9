"""The system's trash: whether a file has one, moving it there, and taking it back where the system lets us.

On Linux by the freedesktop.org trash specification 1.0: https://specifications.freedesktop.org/trash-spec/
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_INFO_BYTES = 65_536


def has_trash(path: Path) -> bool:
    """Whether the system has a trash for this file."""
    if sys.platform in ("win32", "darwin"):
        return True
    try:
        device = os.lstat(path).st_dev
        home = Path.home()
        if device == os.stat(os.path.realpath(home)).st_dev:  # noqa: PTH116 - of what is behind links
            return os.access(_nearest_folder(_home_trash(home)), os.W_OK)
        top = _mount_point(path)
        uid = str(os.getuid())
        return any(os.access(folder, os.W_OK) for folder in (top / ".Trash" / uid, top / f".Trash-{uid}", top))
    except (OSError, RuntimeError):  # RuntimeError: this person has no home
        return False


def to_trash(path: Path) -> None:
    """Move a file to the system's trash; raises OSError."""
    # Asks the system for its folders when it is imported.
    from send2trash import send2trash

    send2trash(os.fspath(path))


def can_take_back() -> bool:
    """Whether take_back() can find what lies in this system's trash; elsewhere the person does it in the trash."""
    return sys.platform not in ("win32", "darwin")


def take_back(path: Path) -> None:
    """Put the file that was last moved to the trash from this path back there.

    Raises:
        OSError: it is not in the trash any more, or something else has its name now.
    """
    if os.path.lexists(path):
        raise FileExistsError(17, os.strerror(17), str(path))
    dated = [found for trash, top in _trashes(path) for found in _trashed(trash, top, path)]
    if not dated:
        raise FileNotFoundError(2, os.strerror(2), str(path))
    _date, content, info = max(dated)
    path.parent.mkdir(parents=True, exist_ok=True)
    content.rename(path)
    info.unlink(missing_ok=True)


def _trashes(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the trashes that a file may have gone to, each with the folder that its paths begin at."""
    with contextlib.suppress(RuntimeError):  # no home
        yield _home_trash(Path.home()), Path("/")
    top, uid = _mount_point(path), str(os.getuid())
    yield top / ".Trash" / uid, top
    yield top / f".Trash-{uid}", top


def _trashed(trash: Path, top: Path, path: Path) -> Iterator[tuple[str, Path, Path]]:
    """Yield date, content and note of everything in a trash that came from a path."""
    wanted = os.path.realpath(path.parent), path.name
    try:
        notes = [entry.path for entry in os.scandir(trash / "info") if entry.name.endswith(".trashinfo")]
    except OSError:
        return
    for note in map(Path, notes):
        content = trash / "files" / note.name.removesuffix(".trashinfo")
        origin, date = _told(note)
        found = top / origin if origin else None
        if found is not None and (os.path.realpath(found.parent), found.name) == wanted and os.path.lexists(content):
            yield date, content, note


def _told(note: Path) -> tuple[str, str]:
    """Return where a trashed file came from and when; "" where its note does not tell."""
    try:
        with note.open("rb") as file:
            lines = file.read(_INFO_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return "", ""
    told = dict(line.split("=", 1) for line in lines if "=" in line)
    return unquote(told.get("Path", "")), told.get("DeletionDate", "")


def _home_trash(home: Path) -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "Trash"


def _nearest_folder(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _mount_point(path: Path) -> Path:
    folder = Path(os.path.realpath(_nearest_folder(path.parent)))
    while not folder.is_mount():
        folder = folder.parent
    return folder
