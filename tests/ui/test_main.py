"""The program as it starts, is told things from outside, and ends; and the starter model in it once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.context import build_context
from backends.echo_engine import EchoScript
from tests.helpers.echo_window import ANSWER, OpenWindow, echo_context
from tests.helpers.engine_client import write_script
from tests.helpers.notices import shown_notices
from ui import main
from ui.panels.cutaway_panel import CutawayPanel
from ui.single_instance import hand_over, server_name

PATIENCE_MS = 60_000


def test_the_first_paint_is_timed_and_the_rest_follows_it(open_window):
    window = open_window(EchoScript(ANSWER))
    assert 0 < window.program.first_paint_s < main.seconds_since_process_start()
    assert window.window.isVisible()
    assert window.window.plots is not None


def test_files_of_the_command_line_are_opened(open_window, tmp_path):
    file = write_script(tmp_path / "given.gguf", EchoScript(ANSWER))
    window = open_window(context=echo_context([]), files=[str(file)])
    assert window.chat.chip.words == "given · none · echo · CPU"


def test_a_second_start_hands_its_files_to_this_one(open_window, qtbot, tmp_path):
    window = open_window(EchoScript(ANSWER))
    file = write_script(tmp_path / "handed over.gguf", EchoScript("I was handed over."))
    window.window.showMinimized()
    assert hand_over(server_name(window.context.paths.data), [str(file)])
    qtbot.waitUntil(lambda: window.chat.chip.words.startswith("handed over"), timeout=PATIENCE_MS)
    assert not window.window.isMinimized()
    qtbot.waitUntil(window.is_ready, timeout=PATIENCE_MS)


def test_a_second_start_without_files_only_brings_the_window_up(open_window, qtbot):
    window = open_window(EchoScript(ANSWER))
    window.window.showMinimized()
    assert hand_over(server_name(window.context.paths.data), [])
    qtbot.waitUntil(lambda: not window.window.isMinimized(), timeout=PATIENCE_MS)
    assert window.chat.chip.words == "Echo · none · echo · CPU"


def test_a_closed_program_is_handed_nothing(open_window):
    window = open_window(EchoScript(ANSWER))
    window.close()
    assert not hand_over(server_name(window.context.paths.data), [])


def test_an_error_nobody_caught_is_told_and_printed_and_quotes_nothing(open_window, capsys):
    window = open_window(context=echo_context([]), is_ready=OpenWindow.has_plots)
    error = RuntimeError("CANARY")
    window.program.on_exception(RuntimeError, error, None)
    (notice,) = shown_notices(window.chat.notices)
    assert notice.startswith("Error: Something nobody foresaw happened (RuntimeError).")
    assert "CANARY" not in notice
    assert "RuntimeError: CANARY" in capsys.readouterr().err
    window.program.on_exception(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert shown_notices(window.chat.notices) == [notice]


def test_the_theme_of_the_settings_is_followed(open_window):
    context = echo_context([])
    context.settings.change(theme="light")
    window = open_window(context=context, is_ready=OpenWindow.has_plots)
    assert window.program._theme_switch.theme.name == "light"
    context.settings.change(theme="dark")
    assert window.program._theme_switch.theme.name == "dark"


@pytest.fixture
def selftest(qapp):
    """The selftest, which leaves its window to the end of its process."""
    yield main.selftest_window
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, CutawayPanel):
            widget._timer.stop()
            widget.deleteLater()


def test_the_selftests_window_is_drawn_and_saved(selftest, tmp_path):
    picture = tmp_path / "window.png"
    assert selftest(str(picture)) == 0
    image = QImage(str(picture))
    assert image.width() >= 372
    assert image.height() > 100


def test_a_picture_that_cannot_be_saved_is_a_failure(selftest, tmp_path):
    assert selftest(str(tmp_path / "no folder" / "window.png")) == 1


@pytest.mark.usefixtures("starter_model")
def test_the_starter_model_answers_in_the_window(open_window, qtbot):
    # One real answer from the key press to the figures; everything else here runs scripts.
    context = build_context()
    context.settings.change(temperature=0.0, max_tokens=6, context_tokens=512, threads=1, panel_folded=False)
    window = open_window(context=context)
    assert window.chat.chip.words == "SmolLM2-135M-Instruct · Q4_1 · llama.cpp · CPU"
    qtbot.keyClicks(window.prompt, "Say hello.")
    qtbot.keyClick(window.prompt, Qt.Key.Key_Return)
    qtbot.waitUntil(window.is_idle, timeout=PATIENCE_MS)
    item = window.chat.view.items[-1]
    assert item.text.strip()
    assert re.fullmatch(
        r".*tokens/s  ·  first token .*s  ·  \d+ read, 0 reused  ·  (token limit reached|finished)", item.figures
    )
    ids = context.store.branch(window.chat_id())[-1].token_ids
    assert 0 < len(ids) <= 6
    assert Path(context.store.branch(window.chat_id())[-1].model).name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    # The time axis goes on moving, so what is awaited is the value itself, never a moment without anything new.
    memory = window.window.plots.panel.plots[0]
    qtbot.waitUntil(lambda: memory.legend.values.get("weights", "0") != "0", timeout=PATIENCE_MS)
