"""The states of an X-ray that the gallery shows: the button under an answer, the choice, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.compare.xray_types import XrayProgress
from tests.helpers.echo_window import OpenWindow, echo_context
from tests.helpers.window_states import ANSWER, QUESTION, ask, opened, wait_for
from tests.helpers.xray_values import sample_xray
from tests.helpers.xray_worker import scripted_quantization

NAME = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Picture:
    """What is drawn, and what is closed afterwards."""

    window: QWidget
    whole: OpenWindow

    def close(self) -> None:
        """Close the program."""
        self.whole.close()


State = Callable[[Path], Iterator[Picture | OpenWindow]]


def xray_button(folder: Path) -> Iterator[OpenWindow]:
    """An answer whose exact tokens are kept, with its two buttons."""
    yield _answered(folder)


def xray_choice(folder: Path) -> Iterator[Picture]:
    """Which quantization reads the answer."""
    window = _answered(folder)
    window.chat.view.findChild(object, "message_xray").click()
    yield Picture(window.chats.xrays.dialog, window)


def xray_progress(folder: Path) -> Iterator[Picture]:
    """The other model being loaded."""
    for picture in xray_choice(folder):
        picture.window.show_progress(XrayProgress("Loading Q4_0", 0.4))
        yield picture


def xray_result(folder: Path) -> Iterator[Picture]:
    """An answer token by token, one of them pointed at."""
    for picture in xray_choice(folder):
        picture.window.show_xray(sample_xray())
        picture.window.view.text.point_at(25)
        yield picture


def xray_table(folder: Path) -> Iterator[Picture]:
    """The same as a table."""
    for picture in xray_result(folder):
        picture.window.view.twin_button.click()
        yield picture


STATES: tuple[State, ...] = (xray_button, xray_choice, xray_progress, xray_result, xray_table)


def _answered(folder: Path) -> OpenWindow:
    entries = [scripted_quantization(folder, NAME, name, ANSWER, token_s=0.002) for name in ("Q8_0", "Q4_0", "Q2_K")]
    window = opened(echo_context(entries))
    ask(window, QUESTION)
    wait_for(window.is_idle)
    return window
