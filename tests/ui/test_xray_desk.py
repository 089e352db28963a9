"""An answer of a chat is read by another quantization: from the button under it to the marked tokens."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.errors import Words
from backends.echo_engine import EchoScript, Fault
from tests.helpers.echo_window import OpenWindow, echo_context, script_entry
from tests.helpers.xray_worker import OTHER_VOCABULARY, scoring_command, scripted_quantization

PATIENCE_MS = 60_000
NAME = "Tiny"
WRITTEN = "the sky is blue"
OTHER = "the sea is blur"


@pytest.fixture
def wait(qtbot):
    return lambda is_so: qtbot.waitUntil(is_so, timeout=PATIENCE_MS)


@pytest.fixture
def answered(open_window, qtbot, wait, tmp_path):
    """Return a function that opens a window with these other quantizations, and an answer in its chat."""

    def make(*others, writer=None) -> OpenWindow:
        own = writer or scripted_quantization(tmp_path, NAME, "Q8_0", WRITTEN)
        window = open_window(context=echo_context([own, *others]))
        qtbot.keyClicks(window.prompt, "Why?")
        qtbot.keyClick(window.prompt, Qt.Key.Key_Return)
        wait(lambda: window.is_idle() and len(window.texts) == 2)
        return window

    return make


@pytest.fixture
def other(tmp_path):
    return lambda name="Q4_0", text=OTHER, **script: scripted_quantization(tmp_path, NAME, name, text, **script)


def open_xray(window: OpenWindow, tmp_path):
    """Press the button under the answer and return the desk."""
    button = window.chat.view.findChild(object, "message_xray")
    assert button.isVisible()
    button.click()
    desk = window.chats.xrays
    desk.command = scoring_command(tmp_path)
    return desk


def test_an_answer_is_read_and_its_tokens_are_marked(answered, other, wait, tmp_path):
    window = answered(other(), other("Q2_K"), scripted_quantization(tmp_path, "Another", "Q4_0", OTHER))
    desk = open_xray(window, tmp_path)
    dialog = desk.dialog
    assert [dialog.choices.item(row).text() for row in range(dialog.choices.count())] == ["Q2_K", "Q4_0"]
    dialog.choices.setCurrentRow(1)

    dialog.begin_button.click()
    wait(lambda: dialog.is_showing)

    found = dialog.view.xray
    assert found.sentence == "Q4_0 would have chosen 12 of 15 tokens the same."
    assert found.own_label == "Q8_0"
    assert [number for number, token in enumerate(found.tokens) if token.is_different] == [5, 6, 14]
    assert found.prompt_tokens == len("Why?\n")
    assert window.context.engine.loaded is not None, "the chat's model is still there"


def test_a_model_without_other_quantizations_is_said_and_one_that_is_gone(answered, tmp_path):
    window = answered()
    dialog = open_xray(window, tmp_path).dialog
    assert "no other quantization of Tiny" in dialog._nothing.text()
    window.context.library._entries = []
    dialog = open_xray(window, tmp_path).dialog
    assert "not in the library any more" in dialog._nothing.text()


def test_what_goes_wrong_is_a_sentence_and_another_one_can_be_chosen(answered, other, wait, tmp_path, allow_log):
    window = answered(other(chat_template=OTHER_VOCABULARY), other("Q2_K", fault=Fault("prefill", "kill")))
    dialog = open_xray(window, tmp_path).dialog
    dialog.choices.setCurrentRow(1)
    dialog.begin_button.click()
    wait(lambda: dialog.failure_text != "")
    assert "cuts text into other tokens" in dialog.failure_text

    dialog.retry_button.click()
    dialog.choices.setCurrentRow(0)
    dialog.begin_button.click()
    wait(lambda: dialog.failure_text != "")

    assert "Q2_K" not in dialog.step_text
    assert window.is_ready(), "a worker that dies ends the X-ray and not the chat"


def test_cancel_offers_the_choice_again_and_closing_ends_what_is_under_way(answered, other, wait, tmp_path):
    """Workers, threads and windows that stay behind fail every test."""
    window = answered(other(load_s=600.0))
    desk = open_xray(window, tmp_path)
    desk.dialog.begin_button.click()
    wait(lambda: desk.dialog.step_text == "Loading Q4_0")
    desk.dialog.cancel_button.click()
    assert desk.dialog.key
    assert desk._run is None

    desk.dialog.begin_button.click()
    wait(lambda: desk.dialog.step_text == "Loading Q4_0")
    window.close()

    assert desk.dialog is None


def test_models_that_may_not_fit_beside_the_chats_are_asked_about_or_left_out(
    answered, other, wait, tmp_path, monkeypatch
):
    window = answered(other())
    desk = open_xray(window, tmp_path)
    assert desk._advisor is not window.context.advisor
    assert desk._advisor._held_bytes() == 0, "a load in the chat ends the engine first; an X-ray does not"
    asked = []

    def question(entry, params, backend=""):
        asked.append((entry.quantization, params.context_tokens))
        return Words(f"{entry.quantization} needs 3 GB.", "Load it?")

    monkeypatch.setattr(desk._gate, "question", question)
    desk.dialog.begin_button.click()
    wait(lambda: not desk.dialog.question.isHidden())
    assert asked == [("Q4_0", 256), ("Q8_0", 256)]
    window.window._theme_switch.set_mode("light")
    assert desk.dialog.view.text._theme.name == "light"
    window.window._theme_switch.set_mode("dark")

    desk.dialog.question.findChild(QPushButton, "answer_anyway").click()
    wait(lambda: desk.dialog.is_showing)

    assert desk.dialog.view.xray.own_label == ""
    assert "no room for it beside the chat's model" in desk.dialog.view.xray.notes[0]


def test_a_persons_own_message_has_no_button(open_window):
    window = open_window(context=echo_context([]), is_ready=OpenWindow.has_plots)
    assert window.chat.view.findChild(object, "message_xray").isHidden()


def test_an_answer_still_being_written_has_no_button(open_window, qtbot, wait, tmp_path):
    script = EchoScript("word " * 400, token_s=0.02)
    window = open_window(context=echo_context([script_entry(tmp_path, NAME, script)]))
    qtbot.keyClicks(window.prompt, "Why?")
    qtbot.keyClick(window.prompt, Qt.Key.Key_Return)
    wait(lambda: len(window.texts) == 2 and bool(window.texts[1]))

    assert window.chat.view.findChild(object, "message_xray").isHidden()
    window.chat.stop()
    wait(lambda: window.chat.view.findChild(object, "message_xray").isVisible())
