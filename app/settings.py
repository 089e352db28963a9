"""The settings file: read once, changed through one object, never lost.

What is wrong in the file is reset and the file itself put aside under a dated name; what a newer version wrote is
kept. Every write is a temporary file, fsync and rename. The settings themselves are in app/settings_fields.py. Knows
no window and no engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from app.atomic_file import replace_file
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.settings_fields import Settings, checked

__all__ = ["Settings", "SettingsStore"]

_log = logging.getLogger(__name__)

# An honest file is a few kilobytes; anything larger is not ours.
_MAX_FILE_BYTES = 4 * 1024 * 1024

_NAMES = frozenset(made.name for made in dataclasses.fields(Settings))

# Told after each change: the settings and the names of what changed, on the thread that changed them.
Listener = Callable[[Settings, frozenset[str]], None]

# Runs the writing of the file, at once or later on another thread.
Runner = Callable[[Callable[[], None]], object]


def _at_once(work: Callable[[], None]) -> None:
    work()


class SettingsStore:
    """The settings in use and their file. Any thread may call any method.

    Attributes:
        _path: the file.
        _settings: the settings in use.
        _unknown: what the file holds that this version does not know, written back as it was.
        _written: the settings as they are in the file, or None when it must be written anew.
        _run: runs each writing of the file.
        _lock: guards the settings and the listeners; never held while a listener runs.
        _file_lock: lets one writing finish before the next begins.
    """

    def __init__(self, path: Path, settings: Settings | None = None) -> None:
        self._path = path
        self._settings = settings or Settings()
        self._unknown: dict[str, object] = {}
        self._written: Settings | None = None
        self._listeners: list[Listener] = []
        self._run: Runner = _at_once
        self._lock = threading.RLock()
        self._file_lock = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> tuple[SettingsStore, tuple[Words, ...]]:
        """Read the file, or start with the defaults where there is none.

        Returns:
            The store, and what a person must be told: a file that was put aside, or one that cannot be read.
        """
        store = cls(path)
        try:
            stored = _read(path)
        except FileNotFoundError:
            return store, ()
        except OSError as error:
            return store, (_unreadable_words(path, error),)
        except _DamagedError:
            return store, (store._set_aside(()),)
        store._settings, reset = _sorted_out(stored)
        store._unknown = {key: value for key, value in stored.items() if key not in _NAMES}
        if not reset:
            store._written = store._settings
            return store, ()
        notices = [store._set_aside(reset)]
        try:
            store.save()
        except AppError as error:
            notices.append(error.words)
        return store, tuple(notices)

    def get(self) -> Settings:
        """Return the settings in use; they never change, a change makes new ones."""
        with self._lock:
            return self._settings

    def change(self, **fields: object) -> None:
        """Use and save new values of some settings; all of them or, on a bad value, none.

        Raises:
            AppError: a value is not allowed, and nothing changed; or the file could not be written, and the values
                are in use until the end.
            KeyError: there is no such setting.
        """
        values = {name: checked(name, value) for name, value in fields.items()}
        with self._lock:
            changed = frozenset(name for name, value in values.items() if value != getattr(self._settings, name))
            if not changed:
                return
            self._settings = settings = dataclasses.replace(self._settings, **values)
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(settings, changed)
        self._run(self.save)

    def save(self) -> None:
        """Write the file if it does not hold the settings in use.

        Raises:
            AppError: it could not be written; the old file is as it was.
        """
        with self._file_lock:
            settings = self.get()
            if settings == self._written:
                return
            try:
                _write(self._path, {**self._unknown, **dataclasses.asdict(settings)})
            except OSError as error:
                raise AppError(_unsaved_words(self._path, error)) from error
            self._written = settings

    def save_with(self, run: Runner) -> None:
        """Let this run every later writing of the file, so that the calling thread never waits for the disk.

        It is given save(), which may raise AppError. Call save() once more before the program ends.
        """
        self._run = run

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of every change, on the thread that makes it; return what ends this."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock, contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def _set_aside(self, reset: tuple[str, ...]) -> Words:
        """Rename the damaged file so that nothing in it is lost; return the words for it."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
        aside = self._path.with_name(f"{self._path.stem}.damaged-{stamp}{self._path.suffix}")
        count = 1
        while aside.exists():
            count += 1
            aside = self._path.with_name(f"{self._path.stem}.damaged-{stamp}-{count}{self._path.suffix}")
        try:
            self._path.rename(aside)
        except OSError as error:
            return _unreadable_words(self._path, error)
        _log.warning("settings were damaged and put aside as %s; reset: %s", aside.name, ", ".join(reset) or "all")
        if reset:
            names = ", ".join(reset)
            message = _("Some settings were damaged and are back at their defaults: {names}.").format(names=names)
        else:
            message = _("The settings file was damaged, so every setting is back at its default.")
        return Words(message, _("The old file is kept as {path}.").format(path=one_line(str(aside))))


class _DamagedError(Exception):
    """The file is there and readable but holds no settings."""


def _read(path: Path) -> dict[str, object]:
    """Return what the file holds, unchecked.

    Raises:
        OSError: it is missing or cannot be read.
        _DamagedError: it is not a JSON object.
    """
    if path.exists() and not path.is_file():
        raise _DamagedError  # a folder, or a pipe that would never end
    with path.open("rb") as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise _DamagedError
    try:
        # a byte order mark is what some editors leave behind
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _DamagedError from error


def _sorted_out(stored: Mapping[str, object]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings, defaults where a value cannot be used, and the names of those that cannot."""
    good: dict[str, Any] = {}
    reset: list[str] = []
    for name in sorted(_NAMES & stored.keys()):
        try:
            good[name] = checked(name, stored[name])
        except AppError:
            reset.append(name)
    return Settings(**good), tuple(reset)


def _write(path: Path, values: Mapping[str, object]) -> None:
    """Write the file so that at any moment either the old or the new one is there; raises OSError."""
    path.resolve().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n")


def _unreadable_words(path: Path, error: OSError) -> Words:
    return Words(
        _("The settings file {path} cannot be used: {reason}.").format(
            path=one_line(str(path)), reason=one_line(error.strerror or type(error).__name__)
        ),
        _("The defaults are in use. Check that you may read and write the file, then start Cutaway again."),
    )


def _unsaved_words(path: Path, error: OSError) -> Words:
    return Words(
        _("The settings are in use but could not be saved: {reason}.").format(
            reason=one_line(error.strerror or type(error).__name__)
        ),
        _("Check that you may write {path} and that its disk has room.").format(path=one_line(str(path))),
    )
