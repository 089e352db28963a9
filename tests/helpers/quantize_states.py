"""The window that makes quantizations, as the gallery shows it: invented sizes, no engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.compare.quantize_words import source_words
from app.compare.quantizing import Planned
from app.errors import Words
from ui.panels.quantize_dialog import BUNDLED, QuantizeDialog
from ui.theme import apply_theme, load_theme

GIB = 2**30
# Llama 3.1 8B, as llama.cpp's own table has it; the last one is invented.
SIZES: tuple[tuple[str, float, float], ...] = (
    ("Q8_0", 7.95, 8.5), ("Q6_K", 6.14, 6.56), ("Q5_K_M", 5.33, 5.7), ("Q5_K_S", 5.21, 5.57), ("Q4_K_M", 4.58, 4.89),
    ("Q4_K_S", 4.36, 4.67), ("Q4_0", 4.34, 4.64), ("IQ4_XS", 4.17, 4.46), ("Q3_K_L", 4.02, 4.3), ("Q3_K_M", 3.74, 4.0),
    ("Q3_K_S", 3.41, 3.64), ("IQ3_M", 3.52, 3.76), ("IQ3_XXS", 3.04, 3.25), ("Q2_K", 2.95, 3.16),
    ("Q2_K_S", 2.78, 2.97), ("IQ2_M", 2.74, 2.93), ("IQ2_XS", 2.42, 2.59), ("IQ2_XXS", 2.23, 2.38),
    ("IQ1_M", 2.01, 2.15),
)  # fmt: skip
_NEED = frozenset({"IQ3_XXS", "Q2_K_S", "IQ2_M", "IQ2_XS", "IQ2_XXS", "IQ1_M"})


def planned(fell_back: int = 0) -> list[Planned]:
    """Return what can be made of Llama 3.1 8B."""
    found = [
        Planned(name, round(gib * GIB), bits, 291, fell_back, needs_importance=name in _NEED)
        for name, gib, bits in SIZES
    ]
    return [*found, Planned("Q1_0", fault=Words("No type is defined for its rows.", "Choose another one."))]


class ShownDialog:
    """The window, in the theme of the settings.

    Attributes:
        window: it.
    """

    def __init__(self, warning: str = "", size: tuple[int, int] = (820, 720)) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        file = Path(os.environ["CUTAWAY_HOME"]) / "config" / "settings.json"
        theme = load_theme(json.loads(file.read_text(encoding="utf-8"))["theme"])
        apply_theme(app, theme)
        self.window = QuantizeDialog(theme)
        self.window.resize(*size)
        self.window.show_source("Llama-3.1-8B-Instruct", "BF16 · 15.0 GiB", "/home/ada/.local/share/cutaway/models")
        self.window.set_room(48 * GIB, 10**9)
        self.window.show_planned(planned(), {"Q4_0"}, warning)
        self.window.show()

    def close(self) -> None:
        """Take the window away."""
        self.window.close()
        self.window.deleteLater()


State = Callable[[Path], Iterator[ShownDialog]]


def quantize_sizes(_folder: Path) -> Iterator[ShownDialog]:
    """Two are ticked, one of them with an importance matrix."""
    shown = ShownDialog()
    for name in ("Q4_K_M", "IQ2_M"):
        shown.window.rows.boxes[name].setChecked(True)
    shown.window.importance.choose(BUNDLED)
    shown.window.rows.ticked.emit()
    yield shown


def quantize_warned(_folder: Path) -> Iterator[ShownDialog]:
    """The source is quantized; one that is ticked lacks an importance matrix."""
    shown = ShownDialog(source_words("Q8_0"))
    shown.window.rows.boxes["IQ3_XXS"].setChecked(True)
    yield shown


def quantize_busy(_folder: Path) -> Iterator[ShownDialog]:
    """One is being made, in the smallest window."""
    shown = ShownDialog(size=(520, 420))
    shown.window.rows.boxes["Q6_K"].setChecked(True)
    shown.window.show_step("Making Q6_K", 0.42)
    yield shown


def quantize_done(_folder: Path) -> Iterator[ShownDialog]:
    """It was made."""
    shown = ShownDialog()
    shown.window.show_end(Words("Q6_K, Q4_K_M were made and run: 10.7 GiB together."), is_fault=False)
    yield shown


STATES: tuple[State, ...] = (quantize_sizes, quantize_warned, quantize_busy, quantize_done)
