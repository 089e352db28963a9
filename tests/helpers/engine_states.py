"""The states of the window that show which engine runs a model: the chip's menu, a switch, the plain path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtGui import QPainter, QPixmap

from app.context import AppContext
from backends.echo_engine import EchoScript
from tests.helpers.echo_window import OpenWindow
from tests.helpers.two_engines import two_engine_context
from tests.helpers.window_states import (
    ANSWER,
    NARROW,
    QUESTION,
    ask,
    invented_entry,
    opened,
    wait,
    wait_for,
    with_chats,
)

PLAIN_NOTE = "falcon reads its own KV cache, and 1,204 of 4,096 logits differ without it"


class WithMenu:
    """A window with the chip's menu open, drawn as one picture: a menu is a window of its own.

    Attributes:
        window: gives the picture.
    """

    def __init__(self, shown: OpenWindow) -> None:
        self._shown = shown
        self.window = self
        self._menu = shown.chat.chip.menu()
        self._menu.popup(shown.chat.chip.mapToGlobal(shown.chat.chip.rect().bottomLeft()))

    def grab(self) -> QPixmap:
        """Return the window with its menu."""
        picture = self._shown.window.grab()
        painter = QPainter(picture)
        chip = self._shown.chat.chip  # the screen of the offscreen platform is too small for a menu's real place
        place = chip.mapTo(self._shown.window, chip.rect().bottomLeft())
        place.setX(min(place.x(), self._shown.window.width() - self._menu.width()))
        painter.drawPixmap(place, self._menu.grab())
        painter.end()
        return picture

    def close(self) -> None:
        """Take both away."""
        self._menu.close()
        self._shown.close()


State = Callable[[Path], Iterator[OpenWindow | WithMenu]]


def _context(folder: Path, **torch: object) -> AppContext:
    script = EchoScript(ANSWER, token_s=0.001, context_tokens=8192)
    return with_chats(two_engine_context(folder, script, **torch))


def _with_others(context: AppContext, folder: Path) -> AppContext:
    others = (
        ("Qwen3-8B", "Q4_K_M", "gguf"),
        ("Llama-3.1-8B-Instruct", "Q5_K_M", "gguf"),
        ("Gemma-3-1B-it", "BF16", "safetensors"),
    )
    context.library.add_entries(
        [
            invented_entry(name, quantization, folder, format=kind, context_tokens=8192)
            for name, quantization, kind in others
        ]
    )
    return context


def _switched(folder: Path, **torch: object) -> OpenWindow:
    window = opened(_context(folder, **torch))
    ask(window, QUESTION)
    wait_for(window.is_idle)
    window.chats.switch_backend("torch")
    return window


def engine_menu(folder: Path) -> Iterator[WithMenu]:
    """The chip's menu: two engines for the model, and other models."""
    window = opened(_with_others(_context(folder), folder))
    window.chats.refresh_models()
    yield WithMenu(window)


def engine_menu_narrow(folder: Path) -> Iterator[WithMenu]:
    """The same in the smallest window."""
    window = opened(_with_others(_context(folder), folder))
    window.window.resize(*NARROW)
    wait(0.2)
    window.chats.refresh_models()
    yield WithMenu(window)


def engine_switched(folder: Path) -> Iterator[OpenWindow]:
    """Another engine was chosen in the middle of a chat."""
    window = _switched(folder)
    wait_for(lambda: "torch · CPU" in window.chat.chip.words)
    yield window


def engine_plain(folder: Path) -> Iterator[OpenWindow]:
    """A model that runs without KV blocks, with the reason."""
    window = _switched(folder, attention_path="plain", attention_kernel="eager", path_note=PLAIN_NOTE)
    wait_for(lambda: "torch · CPU" in window.chat.chip.words)
    yield window


def engine_failed(folder: Path) -> Iterator[OpenWindow]:
    """The other engine cannot load the model; the way back is offered."""
    window = _switched(folder, fails=True)
    wait_for(lambda: "engine" in window.chat.notices.keys)
    yield window


STATES: tuple[State, ...] = (engine_menu, engine_menu_narrow, engine_switched, engine_plain, engine_failed)
