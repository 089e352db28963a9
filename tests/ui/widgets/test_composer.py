"""Send sends once and only when it can, Stop stops, and writing is always possible."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from ui.theme import load_theme
from ui.widgets.composer import Composer


@pytest.fixture
def composer(qtbot):
    made = Composer(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(600, 140)
    made.show()
    made.activateWindow()
    return made


def button(composer) -> QPushButton:
    return composer.findChild(QPushButton, "send_button")


def test_enter_and_the_button_send_the_text_and_empty_the_editor(composer, qtbot):
    for act in (lambda: qtbot.keyClick(composer.prompt, Qt.Key.Key_Return), button(composer).click):
        composer.prompt.set_text("Hi 😀\nthere")
        with qtbot.waitSignal(composer.send_requested) as told:
            act()
        assert told.args == ["Hi 😀\nthere"]
        assert composer.prompt.text == ""


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_nothing_is_sent_where_nothing_is_written(composer, qtbot, text):
    composer.prompt.set_text(text)
    assert not button(composer).isEnabled()
    assert button(composer).toolTip() == "Write something first"
    with qtbot.assertNotEmitted(composer.send_requested):
        qtbot.keyClick(composer.prompt, Qt.Key.Key_Return)
    assert composer.prompt.text == text


def test_while_a_model_loads_one_can_write_but_not_send_and_is_told_why(composer, qtbot):
    composer.set_live_text("412 MB of memory")
    composer.set_ready(False, "Loading <b>SmolLM2</b>")
    qtbot.keyClicks(composer.prompt, "Hi")
    assert not button(composer).isEnabled()
    assert "&lt;b&gt;SmolLM2" in button(composer).toolTip()
    assert composer._live_label.text() == "Loading <b>SmolLM2</b>"
    with qtbot.assertNotEmitted(composer.send_requested):
        qtbot.keyClick(composer.prompt, Qt.Key.Key_Return)
    assert composer.prompt.text == "Hi"
    composer.set_ready(True)
    assert button(composer).isEnabled()
    assert composer._live_label.text() == "412 MB of memory"


def test_while_an_answer_is_written_the_button_and_escape_stop(composer, qtbot):
    composer.prompt.set_text("next")
    composer.set_busy(True)
    assert (button(composer).text(), button(composer).accessibleName()) == ("Stop", "Stop")
    assert button(composer).isEnabled()
    with qtbot.waitSignal(composer.stop_requested):
        button(composer).click()
    with qtbot.waitSignal(composer.stop_requested):
        composer._stop_key.activated.emit()
    with qtbot.assertNotEmitted(composer.send_requested):
        qtbot.keyClick(composer.prompt, Qt.Key.Key_Return)
    assert composer.prompt.text == "next"
    composer.set_busy(False)
    assert button(composer).text() == "Send"
    assert not composer._stop_key.isEnabled()


def test_escape_on_the_keyboard_stops_only_while_busy(composer, qtbot):
    composer.prompt.setFocus()
    with qtbot.assertNotEmitted(composer.stop_requested):
        qtbot.keyClick(composer.prompt, Qt.Key.Key_Escape)
    composer.set_busy(True)
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.keyClick(composer.prompt, Qt.Key.Key_Escape)


def test_it_says_when_something_else_is_written(composer, qtbot):
    with qtbot.waitSignal(composer.text_changed):
        qtbot.keyClicks(composer.prompt, "H")


def test_the_frame_shows_that_the_editor_has_the_focus(composer):
    frame = composer.prompt.parentWidget()
    composer.prompt.setFocus()
    assert frame.property("focused") is True
    composer.prompt.clearFocus()
    assert frame.property("focused") is False


def test_a_click_into_the_frame_means_the_editor(composer, qtbot):
    composer.prompt.clearFocus()
    qtbot.mouseClick(composer.prompt.parentWidget(), Qt.MouseButton.LeftButton)
    assert composer.prompt.hasFocus()


def test_context_and_theme_reach_the_meter(composer):
    composer.set_context(435, 8192, approximate=True)
    assert composer._meter.words == "about 435 of 8,192 tokens"
    composer.set_theme(load_theme("light"))
    assert composer._meter._bar.theme.name == "light"
