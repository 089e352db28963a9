"""The whole window on the echo engine: a library whose models are scripts, and a program that is started with it.

For tests and screenshots: everything is the real thing but the weights.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.context import AppContext, build_context
from app.models.entry import ModelDefaults, ModelEntry
from app.models.fit_types import Measured
from app.models.library import Change, DiskUse, Library, LibraryError
from app.models.scan_messages import ScanSummary
from app.models.shape import LayerShape, ModelShape
from backends.echo_engine import EchoScript
from backends.protocol import LifeCycle, MemorySplit
from tests.helpers.engine_client import write_script
from ui.main import Program
from ui.main_window import MainWindow
from ui.models.chat_list_model import CHAT_ID_ROLE
from ui.panels.chat_panel import ChatPanel
from ui.panels.chat_screen import ChatScreen
from ui.widgets.prompt_edit import PromptEdit

ANSWER = "A big buffer is reserved for the longest answer that might come."


# Small enough to fit anywhere: scripts need no memory.
_SHAPE = ModelShape(
    architecture="llama",
    context_tokens=8192,
    embedding_length=64,
    feed_forward_length=128,
    head_count=4,
    vocabulary_tokens=1000,
    parameters_count=10**6,
    weights_bytes=2**20,
    read_bytes=2**20,
    layers=(LayerShape(kv_heads=1, key_length=16, value_length=16, weights_bytes=2**18, read_bytes=2**18),) * 4,
)


class EchoLibrary(Library):
    """A library whose models are scripts; a path that does not exist is refused as a damaged file is.

    Attributes:
        imported: what was imported.
        recorded: what loads took.
    """

    def __init__(self, entries: Sequence[ModelEntry]) -> None:
        super().__init__(Path(os.environ["CUTAWAY_HOME"]) / "data", Path(os.environ["CUTAWAY_HOME"]) / "install")
        self._entries = list(entries)
        self.imported: list[Path] = []
        self.recorded: list[tuple[Path, Measured]] = []

    def entries(self) -> list[ModelEntry]:
        return list(self._entries)

    def add_entries(self, entries: Sequence[ModelEntry]) -> None:
        self._entries += entries

    def find(self, text: str) -> ModelEntry:
        found = next((entry for entry in self._entries if text in (entry.key, entry.name)), None)
        return found if found is not None else super().find(text)

    def set_defaults(self, key: str, defaults: ModelDefaults) -> None:
        self._entries = [replace(one, defaults=defaults) if one.key == key else one for one in self._entries]

    def notices(self) -> list[str]:
        return []

    def scan(self, on_progress=None, cancel=None) -> ScanSummary:
        return ScanSummary()

    def disk_use(self) -> DiskUse:
        size = sum(entry.size_bytes for entry in self._entries)
        return DiskUse(size, size, 0)

    def hash(self, key: str, on_progress=None, cancel=None) -> str:
        return "0" * 64

    def record(self, path: Path, measured: Measured) -> None:
        self.recorded.append((path, measured))

    def measured(self, entry: ModelEntry) -> list[Measured]:
        return [measured for path, measured in reversed(self.recorded) if path == entry.path]

    def probed(self, entry, params) -> MemorySplit:
        return MemorySplit(weights_bytes=2**20, kv_reserved_bytes=2**20, compute_bytes=2**20)

    def looks_changed(self, entry: ModelEntry) -> bool:
        return False

    def change_of(self, entry: ModelEntry) -> Change:
        return Change.UNCHANGED

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
    made = {"quantization": "none", "architecture": "echo", "size_bytes": 94 * 2**20, "shape": _SHAPE, **fields}
    return ModelEntry(f"{name}:{made['quantization']}", name, path, **made)


def script_entry(folder: Path, name: str = "Echo", script: EchoScript | None = None, **fields: object) -> ModelEntry:
    """Write a script and return its entry."""
    path = write_script(folder / f"{name.replace('/', '_')}.json", script or EchoScript(ANSWER))
    return entry_for(path, name, **fields)


def echo_context(entries: Sequence[ModelEntry]) -> AppContext:
    """Return the program's context in the home of CUTAWAY_HOME, with these models, all run by the echo engine."""
    context = build_context(library=EchoLibrary(entries))
    context.backend_of = lambda _entry: "echo"
    return context


class OpenWindow:
    """A program whose window is shown, and shorthands for its parts.

    Attributes:
        program: the program.
        context: its parts.
    """

    def __init__(self, context: AppContext, files: Sequence[str] = ()) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.context = context
        self.program = Program(app, context, list(files))
        self._is_closed = False
        self.program.start()

    @property
    def window(self) -> MainWindow:
        """The window."""
        return self.program.window

    @property
    def chats(self) -> ChatScreen:
        """The chat screen."""
        return self.window.chats

    @property
    def chat(self) -> ChatPanel:
        """The chat that is open."""
        return self.window.chats.chat

    @property
    def prompt(self) -> PromptEdit:
        """Where a prompt is written."""
        return self.chat.composer.prompt

    @property
    def texts(self) -> list[str]:
        """The messages that are shown."""
        return [item.text for item in self.chat.view.items]

    @property
    def titles(self) -> list[str]:
        """The chats in the list, from top to bottom."""
        model = self.chats.list.model
        return [model.index(row).data() for row in range(model.rowCount())]

    def chat_id(self, row: int = 0) -> int:
        """Return the id of a chat of the list."""
        found: int = self.chats.list.model.index(row).data(CHAT_ID_ROLE)
        return found

    def has_plots(self) -> bool:
        """Say whether everything that comes after the first paint is there."""
        return self.window.plots is not None

    def is_ready(self) -> bool:
        """Say whether the model is loaded, nothing is asked of it, and the window has heard of both."""
        is_loaded = self.has_plots() and self.context.engine.state is LifeCycle.READY
        return is_loaded and self.chat.chip.words == self.chats.status.chip_text

    def is_idle(self) -> bool:
        """Say whether no answer is under way in the chat that is open, and the window has heard of it."""
        if self.chat.composer._is_busy:  # Enter would be another thing then
            return False
        return bool(self.chat.view.items) and not any(item.is_streaming for item in self.chat.view.items)

    def close(self) -> None:
        """Close the window as a person does and end what it started; once is enough."""
        if self._is_closed:
            return
        self._is_closed = True
        self.window.close()
        QApplication.processEvents()  # the window says that it is closed once the event has been dealt with
        self.program.close()
        self.window.deleteLater()
        self.program.deleteLater()
