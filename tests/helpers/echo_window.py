"""The whole window on the echo engine: a library whose models are scripts, and a program that is started with it.

For tests and screenshots: everything is the real thing but the weights.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.context import AppContext, build_context
from app.models.library import LibraryError, ModelEntry
from backends.echo_engine import EchoScript
from tests.helpers.engine_client import write_script
from ui.main import Program

ANSWER = "A big buffer is reserved for the longest answer that might come."


class EchoLibrary:
    """Takes the place of app.models.library.Library; a path that does not exist is refused as a damaged file is."""

    def __init__(self, entries: Sequence[ModelEntry]) -> None:
        self._entries = list(entries)
        self.imported: list[Path] = []

    def entries(self) -> list[ModelEntry]:
        return list(self._entries)

    def notices(self) -> list[str]:
        return []

    def import_path(self, path: Path) -> ModelEntry:
        if not path.exists():
            raise LibraryError(f"{path} was not added. It is not there.")
        self.imported.append(path)
        self._entries.append(entry_for(path, origin="imported"))
        return self._entries[-1]

    def remove(self, key: str) -> ModelEntry:
        removed = next((entry for entry in self._entries if entry.key == key), None)
        if removed is None or removed.origin != "imported":
            raise LibraryError(f"{key} was not imported.")
        self._entries.remove(removed)
        return removed


def entry_for(path: Path, name: str = "", **fields: object) -> ModelEntry:
    """Return the library's entry for a script."""
    name = name or path.stem
    made = {"quantization": "none", "architecture": "echo", "size_bytes": 94 * 2**20, **fields}
    return ModelEntry(f"{name}:{made['quantization']}", name, path, **made)


def script_entry(folder: Path, name: str = "Echo", script: EchoScript | None = None, **fields: object) -> ModelEntry:
    """Write a script and return its entry."""
    return entry_for(write_script(folder / f"{name.replace('/', '_')}.json", script or EchoScript(ANSWER)), name, **fields)


def echo_context(entries: Sequence[ModelEntry]) -> AppContext:
    """Return the program's context in the home of CUTAWAY_HOME, with these models, all run by the echo engine."""
    context = build_context()
    context.library = EchoLibrary(entries)
    context.load_model = functools.partial(context.load_model, backend="echo")
    return context


def open_program(context: AppContext, files: Sequence[str] = ()) -> Program:
    """Show the window as the program does; the caller waits for `window.plots` and closes it with close_program."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    program = Program(app, context, list(files))
    program.start()
    return program


def close_program(program: Program) -> None:
    """Close the window as a person does and end what it started."""
    program.window.close()
    program.close()
    program.window.deleteLater()
    program.deleteLater()
