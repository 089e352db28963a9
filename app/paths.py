"""Where things lie: the folders of the program and of the person, made usable or explained.

CUTAWAY_HOME holds everything when it is set; otherwise the system's own places are used (platformdirs). A folder that
cannot be written never stops the program: it is replaced by a temporary one, or kept for reading, and the words for
it are returned. Knows nothing of what is put into the folders.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.errors import Words, one_line
from app.i18n import _

# The person's chats and the engine's logs are nobody else's to read.
_PRIVATE_MODE = 0o700

_APP_NAME = "cutaway"

# What is already there is worth reading even when nothing can be written; the other folders are for writing only.
_WORTH_READING = frozenset({"data", "config", "models"})


@dataclass(frozen=True, slots=True)
class Paths:
    """The person's folders. Each exists and can be written unless a problem was told.

    Attributes:
        data: chats, comparisons, the library's index.
        config: the settings.
        cache: what can be made again.
        logs: logs of the program and its engines.
        models: model files that were downloaded or added.
    """

    data: Path
    config: Path
    cache: Path
    logs: Path
    models: Path


def open_paths(environment: Mapping[str, str] | None = None) -> tuple[Paths, tuple[Words, ...]]:
    """Find the person's folders and make them where they are missing (readable by this person only).

    Args:
        environment: where CUTAWAY_HOME is looked up; None takes the process's own.

    Returns:
        The folders, and what a person must be told: one entry a folder that cannot be used as asked.
    """
    spare = _SpareFolder()
    problems: list[Words] = []
    usable: dict[str, Path] = {}
    for name, asked in _asked_folders(os.environ if environment is None else environment).items():
        reason = _why_not_writable(asked)
        if not reason:
            usable[name] = asked
        elif name in _WORTH_READING and _has_content(asked):
            usable[name] = asked
            problems.append(_read_only_words(asked, reason))
        else:
            usable[name] = spare.folder(name) or asked
            problems.append(_replaced_words(asked, reason, usable[name]))
    return Paths(**usable), tuple(problems)


def install_folder() -> Path:
    """Return the folder that holds app/, ui/, backends/ and resources/."""
    return Path(__file__).resolve().parent.parent


def resources_folder() -> Path:
    """Return the folder of themes, icons and translations."""
    return install_folder() / "resources"


def _asked_folders(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders as the person or the system wants them, by field of Paths."""
    home = environment.get("CUTAWAY_HOME", "").strip()
    if home:
        # absolute, since the worker and a file dialog may have another current folder
        root = Path(os.path.abspath(os.path.expanduser(home)))  # noqa: PTH100, PTH111
        folders = {name: root / name for name in ("data", "config", "cache", "logs")}
        return {**folders, "models": folders["data"] / "models"}
    places = platformdirs.PlatformDirs(_APP_NAME, appauthor=False)
    data = Path(places.user_data_dir)
    folders = {
        "data": data,
        "config": Path(places.user_config_dir),
        "cache": Path(places.user_cache_dir),
        "logs": Path(places.user_log_dir),
        "models": data / "models",
    }
    if places.user_data_dir == places.user_config_dir:  # macOS and Windows: one folder for both, kept apart by name
        folders["config"] = data / "config"
    return folders


def _why_not_writable(folder: Path) -> str:
    """Make the folder if it is missing and try to write in it; return why that failed, or ""."""
    if not folder.is_absolute():  # HOME is unset and the system knows no home of this person
        return _("no home folder is known")
    try:
        _make_private(folder)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)  # a full disk still takes an empty file
    except OSError as error:
        return one_line(error.strerror or type(error).__name__)
    return ""


def _make_private(folder: Path) -> None:
    """Make the folder and its missing parents, each for this person only; leave what exists as it is."""
    missing: list[Path] = []
    step = folder
    while not step.exists() and step != step.parent:
        missing.append(step)
        step = step.parent
    for path in reversed(missing):
        path.mkdir(mode=_PRIVATE_MODE, exist_ok=True)


def _has_content(folder: Path) -> bool:
    """Return whether the folder can be read and holds something."""
    with contextlib.suppress(OSError):
        return next(folder.iterdir(), None) is not None
    return False


class _SpareFolder:
    """A temporary folder for what has no other place, made when first needed; readable by this person only.

    Attributes:
        _root: the folder once it is made.
    """

    def __init__(self) -> None:
        self._root: Path | None = None

    def folder(self, name: str) -> Path | None:
        """Return a folder of this name, or None when even the temporary place cannot be written."""
        try:
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix=f"{_APP_NAME}-"))
            folder = self._root / name
            folder.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
        except OSError:
            return None
        return folder


def _read_only_words(folder: Path, reason: str) -> Words:
    return Words(
        _("The folder {path} can be read but not written: {reason}.").format(path=_shown(folder), reason=reason),
        _("What it holds is shown; what is new is lost at the end. Make it writable and start Cutaway again."),
    )


def _replaced_words(folder: Path, reason: str, used: Path) -> Words:
    message = _("The folder {path} cannot be used: {reason}.").format(path=_shown(folder), reason=reason)
    if used == folder:
        return Words(message, _("No temporary folder can be used either, so nothing is saved."))
    hint = _("Until the next start {used} is used instead. Set CUTAWAY_HOME to a folder you can write to.")
    return Words(message, hint.format(used=_shown(used)))


def _shown(path: Path) -> str:
    return one_line(str(path))
