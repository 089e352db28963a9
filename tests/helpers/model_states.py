"""The states of the models screen that the gallery shows: the screen alone, an invented library."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.models.removal import Deletion
from tests.helpers import model_entries
from tests.helpers.model_entries import GIB
from ui.panels.models_panel import ModelsPanel
from ui.theme import apply_theme, load_theme

PANEL_PX = (1440 - 84, 900)
LARGE_PX = (2560 - 84, 1440)
NARROW_PX = (960 - 84, 600)
_DISK_BYTES, _COPY_BYTES = int(63.2 * GIB), int(4.91 * GIB)


class ShownPanel:
    """A models screen in a window of its own, in the theme of the settings.

    Attributes:
        window: the screen.
    """

    def __init__(self, size: tuple[int, int] = PANEL_PX) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        theme = load_theme(_theme_name())
        apply_theme(app, theme)
        self.window = ModelsPanel(theme)
        self.window.setObjectName("alone")
        self.window.setStyleSheet(f"QWidget#alone {{ background: {theme.roles['window']}; }}")
        self.window.set_machine(model_entries.MACHINE)
        self.window.resize(*size)
        self.window.show()
        self.window.setFocus()

    def close(self) -> None:
        """Take the screen away."""
        self.window.close()
        self.window.deleteLater()


State = Callable[[Path], Iterator[ShownPanel]]


def _theme_name() -> str:
    file = Path(os.environ["CUTAWAY_HOME"]) / "config" / "settings.json"
    name: str = json.loads(file.read_text(encoding="utf-8"))["theme"]
    return name


def _filled(size: tuple[int, int] = PANEL_PX, shown: str = "Llama-3.1-8B-Instruct:Q4_K_M") -> ShownPanel:
    panel = ShownPanel(size)
    entries, fits = model_entries.library()
    panel.window.set_entries(entries)
    panel.window.set_fits(fits)
    panel.window.set_disk_use(_DISK_BYTES, _COPY_BYTES)
    panel.window.set_loaded("SmolLM2-135M-Instruct:Q4_1", "f16", 8192)
    panel.window.choose(shown)
    return panel


def models_here(_folder: Path) -> Iterator[ShownPanel]:
    """Seven quantizations of one model, one recommended, a scan under way."""
    panel = _filled()
    panel.window.set_scan(6, 1204)
    yield panel


def models_measured(_folder: Path) -> Iterator[ShownPanel]:
    """The same after a load: the measured bar stands under the predicted one."""
    panel = _filled()
    entries, fits = model_entries.library()
    entry = next(found for found in entries if found.key == "Llama-3.1-8B-Instruct:Q4_K_M")
    panel.window.set_loaded(entry.key, "f16", 16_384)
    panel.window.set_measured(entry.key, model_entries.measured(entry, fits[entry.key]))
    yield panel


def models_twin(_folder: Path) -> Iterator[ShownPanel]:
    """The table twin of the bars."""
    for panel in models_measured(_folder):
        panel.window.page.detail.memory.show_table(True)
        yield panel


def models_too_large(_folder: Path) -> Iterator[ShownPanel]:
    """A model that needs more than there is."""
    yield _filled(shown="Llama-3.3-70B-Instruct:Q4_K_M")


def models_unknown(_folder: Path) -> Iterator[ShownPanel]:
    """A model of which nobody knows what it takes."""
    yield _filled(shown="Mamba9-3B:Q5_K_M")


def models_faulty(_folder: Path) -> Iterator[ShownPanel]:
    """A model that cannot be used."""
    yield _filled(shown="Mistral-Nemo-12B:Q6_K")


def models_starter(_folder: Path) -> Iterator[ShownPanel]:
    """The starter model, loaded and measured, its defaults open."""
    panel = _filled(shown="SmolLM2-135M-Instruct:Q4_1")
    entries, fits = model_entries.library()
    panel.window.set_measured(entries[0].key, model_entries.measured(entries[0], fits[entries[0].key]))
    panel.window.page.detail.defaults.open_fields()
    yield panel


def models_deleting(_folder: Path) -> Iterator[ShownPanel]:
    """The question before a model is deleted."""
    panel = _filled(shown="Qwen3-8B:Q4_K_M")
    path = Path("/home/ada/.local/share/cutaway/models/Qwen3-8B-Q4_K_M.gguf")
    panel.window.show_deletion("Qwen3-8B:Q4_K_M", Deletion((path,), int(4.68 * GIB), True, ""))
    yield panel


def models_nothing_here(_folder: Path) -> Iterator[ShownPanel]:
    """No model anywhere."""
    panel = ShownPanel()
    panel.window.set_entries([])
    yield panel


def models_large_screen(_folder: Path) -> Iterator[ShownPanel]:
    """A large screen."""
    yield _filled(LARGE_PX)


def models_narrow_memory(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window, scrolled to the memory and the file."""
    panel = _filled(NARROW_PX)
    QApplication.processEvents()
    panel.window.page.show_below()
    yield panel


def models_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window."""
    yield _filled(NARROW_PX)


STATES: tuple[State, ...] = (
    *(models_here, models_measured, models_twin, models_too_large, models_unknown, models_faulty, models_starter),
    *(models_deleting, models_nothing_here, models_narrow, models_narrow_memory, models_large_screen),
)
