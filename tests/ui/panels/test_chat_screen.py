"""Chats from the prompt to the figures under the answer, on a real worker that runs a script."""

from __future__ import annotations

import gc
import os
import re
import signal

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit, QListView

from app.chat.messages import MessageState, Role
from app.chat.store import StoreError
from app.units import NBSP
from backends.echo_engine import EchoScript, Fault
from backends.protocol import LifeCycle
from tests.helpers.echo_window import ANSWER, OpenWindow, echo_context, script_entry
from tests.helpers.notices import button_of, shown_notices
from tests.helpers.two_engines import NAME, two_engine_context

PATIENCE_MS = 30_000
# Long enough to be caught in the middle, whatever else the machine is doing.
SLOW = EchoScript("word " * 400, token_s=0.02)
QUICK = EchoScript(ANSWER)


@pytest.fixture
def wait(qtbot):
    return lambda is_so: qtbot.waitUntil(is_so, timeout=PATIENCE_MS)


def ask(window: OpenWindow, qtbot, text: str) -> None:
    """Type a prompt and press Enter."""
    qtbot.keyClicks(window.prompt, text)
    qtbot.keyClick(window.prompt, Qt.Key.Key_Return)


def button(window: OpenWindow):
    return window.chat.composer._button


def stored(window: OpenWindow, row: int = 0):
    return window.context.store.branch(window.chat_id(row))


def test_a_prompt_is_typed_sent_with_enter_and_answered_with_figures(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER, token_s=0.005))
    seen = []
    window.program._bridge.text_appended.connect(lambda *_parts: seen.append(window.texts[-1]))
    ask(window, qtbot, "Why is paging good?")
    assert window.texts == ["Why is paging good?", ""]
    assert window.prompt.text == ""
    wait(window.is_idle)
    assert window.texts == ["Why is paging good?", ANSWER]
    assert len(seen) > 3  # it came in a stream
    assert all(ANSWER.startswith(text) for text in seen)
    figures = window.chat.view.items[1].figures.replace(NBSP, " ")
    assert re.fullmatch(r"[\d.,]+ tokens/s  ·  first token [\d.]+ m?s  ·  20 read, 0 reused  ·  finished", figures)
    assert [(m.role, m.text, m.state) for m in stored(window)] == [
        (Role.USER, "Why is paging good?", MessageState.COMPLETE),
        (Role.ASSISTANT, ANSWER, MessageState.COMPLETE),
    ]
    assert window.titles == ["Why is paging good?"]
    assert window.chats.list.selected_id == window.chat_id()
    assert window.chat._title.text() == "Why is paging good?"
    assert window.chat.composer._meter.words.endswith("of 4,096 tokens")


def test_a_quick_answer_is_shown_exactly_once(open_window, qtbot, wait):
    # Its end overtakes the frame that the last words wait for.
    window = open_window(QUICK)
    for number in range(5):
        ask(window, qtbot, f"Question {number}")
        wait(window.is_idle)
        qtbot.wait(50)
    assert window.texts[1::2] == [ANSWER] * 5


def test_stop_ends_the_answer_and_keeps_what_was_written(open_window, qtbot, wait):
    window = open_window(SLOW)
    ask(window, qtbot, "Go on")
    wait(lambda: len(window.texts[-1]) > 20)
    assert button(window).text() == "Stop"
    qtbot.mouseClick(button(window), Qt.MouseButton.LeftButton)
    wait(window.is_idle)
    answer = stored(window)[-1]
    assert answer.state is MessageState.STOPPED
    assert window.texts[-1] == answer.text
    assert SLOW.answer.startswith(answer.text)
    assert window.chat.view.items[-1].figures.endswith("stopped")
    assert button(window).text() == "Send"


def test_escape_stops_too_from_the_prompt(open_window, qtbot, wait):
    window = open_window(SLOW)
    window.window.activateWindow()
    ask(window, qtbot, "Go on")
    wait(lambda: len(window.texts[-1]) > 5)
    qtbot.keyClick(window.prompt, Qt.Key.Key_Escape)
    wait(window.is_idle)
    assert stored(window)[-1].state is MessageState.STOPPED


def test_the_same_chat_goes_on(open_window, qtbot, wait):
    window = open_window(EchoScript())  # says what it was asked: the whole dialogue
    ask(window, qtbot, "first")
    wait(window.is_idle)
    ask(window, qtbot, "second")
    wait(lambda: window.is_idle() and len(window.texts) == 4)
    assert window.texts == ["first", "first\n", "second", "first\nfirst\n\nsecond\n"]
    assert window.titles == ["first"]


def test_a_new_chat_leaves_an_answer_going_on_in_the_other(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER, token_s=0.01))
    ask(window, qtbot, "first")
    wait(lambda: len(window.texts[-1]) > 3)
    first_id = window.chat_id()
    window.chats.list._new.click()
    assert (window.texts, window.chats.list.selected_id, button(window).text()) == ([], None, "Send")
    assert window.prompt.hasFocus() or not window.window.isActiveWindow()
    ask(window, qtbot, "second")
    assert window.texts == ["second", ""]
    window.chats.open_chat(first_id)
    shown = window.texts[-1]
    assert shown
    assert ANSWER.startswith(shown)
    wait(window.is_idle)
    assert window.texts == ["first", ANSWER]
    window.chats.open_chat(next(window.chat_id(row) for row in range(2) if window.chat_id(row) != first_id))
    wait(window.is_idle)
    assert window.texts == ["second", ANSWER]
    assert sorted(window.titles) == ["first", "second"]


def test_a_chat_that_is_never_written_in_is_never_stored(open_window, qtbot):
    window = open_window(QUICK)
    window.chats.new_chat()
    window.chats.new_chat()
    assert window.titles == []
    assert window.context.store.chats() == []


def test_a_chat_is_renamed_in_the_list(open_window, qtbot, wait):
    window = open_window(QUICK)
    ask(window, qtbot, "first")
    wait(window.is_idle)
    window.chats.list.start_rename()
    editor = window.chats.list.findChild(QListView).findChild(QLineEdit)
    editor.setText("Another <b>title</b>")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    wait(lambda: window.titles == ["Another <b>title</b>"])
    assert window.chat._title.text() == "Another <b>title</b>"
    assert window.context.store.chat(window.chat_id()).title == "Another <b>title</b>"


def test_a_deleted_chat_comes_back_as_it_was(open_window, qtbot, wait):
    window = open_window(QUICK)
    for text in ("first", "second"):
        window.chats.new_chat()
        ask(window, qtbot, text)
        wait(window.is_idle)
    second_id = window.chat_id(0)
    window.chats.delete_chat(second_id)
    assert window.titles == ["first"]
    assert window.texts == ["first", ANSWER]  # the neighbour is opened
    assert window.chats.list.undo_bar.isVisible()
    assert window.chats.list.undo_bar.accessibleName() == "Deleted “second”"
    window.chats.list.undo_bar.undo()
    assert sorted(window.titles) == ["first", "second"]
    assert window.texts == ["second", ANSWER]
    assert not window.chats.list.undo_bar.isVisible()
    assert [message.text for message in window.context.store.branch(second_id)] == ["second", ANSWER]
    ask(window, qtbot, "third")  # and goes on where it was
    wait(lambda: window.is_idle() and len(window.texts) == 4)


def test_a_deletion_is_final_once_its_offer_ends(open_window, qtbot, wait, own_home):
    window = open_window(QUICK)
    ask(window, qtbot, "CANARY-deleted")
    wait(window.is_idle)
    chat_id = window.chat_id()
    window.chats.delete_chat(chat_id)
    assert (window.titles, window.texts) == ([], [])
    assert window.chat.card.isVisible()
    window.chats.list.undo_bar.finish()
    window.context.store.flush(PATIENCE_MS / 1000)
    with pytest.raises(StoreError):
        window.context.store.chat(chat_id)
    window.close()
    assert all(b"CANARY-deleted" not in path.read_bytes() for path in own_home.rglob("chats*") if path.is_file())


def test_the_end_of_the_program_makes_a_deletion_final(open_window, qtbot, wait, own_home):
    window = open_window(QUICK)
    ask(window, qtbot, "CANARY-deleted")
    wait(window.is_idle)
    window.chats.delete_chat(window.chat_id())
    window.close()
    assert all(b"CANARY-deleted" not in path.read_bytes() for path in own_home.rglob("chats*") if path.is_file())


def test_deleting_a_chat_ends_its_answer(open_window, qtbot, wait):
    window = open_window(SLOW)
    ask(window, qtbot, "Go on")
    wait(lambda: len(window.texts[-1]) > 5)
    window.chats.delete_chat(window.chat_id())
    wait(lambda: window.context.engine.state is LifeCycle.READY)
    assert button(window).text() == "Send"
    window.chats.list.undo_bar.undo()
    assert window.chat.view.items[-1].state_text == "Interrupted here. What was written is kept."
    assert SLOW.answer.startswith(window.texts[-1])


def test_without_a_model_sending_asks_for_a_file(open_window, qtbot, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_asked: ("", ""))  # the person cancels
    window = open_window(context=echo_context([]), is_ready=OpenWindow.has_plots)
    assert window.chat.chip.words == "No model"
    assert window.chat.composer._live_label.text() == "Choose a model first"
    with qtbot.waitSignal(window.chats.file_requested):
        window.chat.card._choose.click()
    with qtbot.waitSignal(window.chats.file_requested):
        window.chats.send("asked although there is no model")
    ask(window, qtbot, "kept")
    assert window.prompt.text == "kept"
    assert window.context.store.chats() == []


def test_the_death_of_the_engine_keeps_the_text_and_one_click_restarts(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER, token_s=0.01))
    ask(window, qtbot, "first")
    wait(lambda: len(window.texts[-1]) > 10)
    os.kill(window.context.engine.pid, signal.SIGKILL)
    wait(lambda: bool(shown_notices(window.chat.notices)))
    wait(window.is_idle)
    item, answer = window.chat.view.items[-1], stored(window)[-1]
    assert answer.state is MessageState.INTERRUPTED
    assert item.text == answer.text
    assert len(item.text) > 10
    assert ANSWER.startswith(item.text)
    assert item.state_text == (
        "The system ended the engine, probably out of memory. It was writing; the text so far is kept."
    )
    assert window.chat.composer._live_label.text() == "The engine is not running; sending starts it again"
    button_of(window.chat.notices, "Restart").click()
    wait(window.is_ready)
    assert shown_notices(window.chat.notices) == []
    ask(window, qtbot, "again")
    wait(lambda: window.is_idle() and len(window.texts) == 4)
    assert window.texts[2:] == ["again", ANSWER]


def test_sending_restarts_a_dead_engine(open_window, qtbot, wait):
    window = open_window(QUICK)
    os.kill(window.context.engine.pid, signal.SIGKILL)
    wait(lambda: window.context.engine.state is LifeCycle.DEAD)
    ask(window, qtbot, "first")
    wait(window.is_idle)
    assert window.texts == ["first", ANSWER]


def test_an_engine_that_dies_at_the_same_word_each_time_keeps_the_window_alive(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER, fault=Fault("decode", "segv", 12)))
    for number in range(2):
        ask(window, qtbot, "try")
        wait(lambda number=number: window.is_idle() and len(window.texts) == 2 * number + 2)
        assert window.texts[-1] == ANSWER[: len(window.texts[-1])]
        assert "reached for memory" in window.chat.view.items[-1].state_text


def test_a_prompt_written_while_the_model_loads_is_answered_by_it(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER, load_s=0.6), is_ready=OpenWindow.has_plots)
    ask(window, qtbot, "early")
    assert window.texts == ["early", ""]
    wait(window.is_idle)
    assert window.texts == ["early", ANSWER]


def test_another_model_chosen_in_the_middle_stops_the_answer_and_answers_next(open_window, qtbot, wait, tmp_path):
    one = script_entry(tmp_path, "One", SLOW)
    two = script_entry(tmp_path, "Two", EchoScript("I am the second."))
    window = open_window(context=echo_context([one, two]))
    ask(window, qtbot, "first")
    wait(lambda: len(window.texts[-1]) > 10)
    window.chat.chip.chosen.emit(two.key)
    wait(window.is_idle)
    assert stored(window)[-1].state is MessageState.STOPPED
    assert SLOW.answer.startswith(window.texts[-1])
    wait(window.is_ready)
    assert window.chat.chip.words == "Two · none · echo · CPU"
    assert window.context.settings.get().last_model == two.key
    assert shown_notices(window.chat.notices) == []
    ask(window, qtbot, "second")
    wait(lambda: window.is_idle() and len(window.texts) == 4)
    assert window.texts[-1] == "I am the second."


def test_one_click_takes_the_chat_to_the_other_engine_and_back(open_window, qtbot, wait, tmp_path):
    # The same model, loaded by what stands in for llama.cpp and for torch: the real worker, without weights.
    window = open_window(context=two_engine_context(tmp_path))
    wait(window.is_ready)
    assert window.chat.chip.words == f"{NAME} · Q4_1 · llama.cpp · CPU"
    ask(window, qtbot, "first")
    wait(lambda: window.is_idle() and window.chat.used_tokens > 0)
    labels = [action.text() for action in window.chat.chip.menu().actions() if action.data() is not None]
    assert [label.split(" · ")[0] for label in labels] == ["llama.cpp", "torch", NAME]
    window.chat.chip.backend_chosen.emit("torch")
    (notice,) = shown_notices(window.chat.notices)
    assert re.match(r"Notice: The chat is kept. torch reads its \d+ tokens anew with your next prompt.", notice)
    wait(lambda: window.is_ready() and window.context.engine.loaded.backend == "torch")
    assert window.chat.chip.words == f"{NAME} · Q4_1 as bf16 · torch · CPU"
    assert window.texts == ["first", ANSWER]
    ask(window, qtbot, "second")
    wait(lambda: window.is_idle() and len(window.texts) == 4)
    assert shown_notices(window.chat.notices) == []
    wait(lambda: window.context.backend_of(window.context.library.entries()[0]) == "torch")
    window.chats.switch_backend("llama_cpp")
    wait(lambda: window.is_ready() and window.context.engine.loaded.backend == "llama_cpp")
    wait(lambda: window.context.library.entries()[0].defaults.backend is None)


def test_an_engine_that_cannot_load_the_model_leaves_the_chat_and_offers_the_way_back(
    open_window, qtbot, wait, tmp_path
):
    window = open_window(context=two_engine_context(tmp_path, fails=True))
    wait(window.is_ready)
    ask(window, qtbot, "first")
    wait(window.is_idle)
    window.chats.switch_backend("torch")
    wait(lambda: window.context.engine.state is LifeCycle.DEAD and "engine" in window.chat.notices.keys)
    assert len(shown_notices(window.chat.notices)) == 1  # what the switch meant for the chat is true no more
    button_of(window.chat.notices, "Back to llama.cpp").click()
    wait(window.is_ready)
    assert window.chat.chip.words == f"{NAME} · Q4_1 · llama.cpp · CPU"
    assert window.texts == ["first", ANSWER]


def test_an_unknown_model_changes_nothing(open_window):
    window = open_window(QUICK)
    window.chats.use_model("gone:Q4_1")
    assert window.chat.chip.words == "Echo · none · echo · CPU"


def test_chats_of_before_are_listed_and_open(open_window, qtbot, wait):
    context = echo_context([])
    chat = context.store.add_chat("Of before")
    asked = context.store.add_message(chat.chat_id, None, Role.USER, "question")
    context.store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, "answer")
    window = open_window(context=context, is_ready=OpenWindow.has_plots)
    assert (window.titles, window.texts) == (["Of before"], [])
    view = window.chats.list.findChild(QListView)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.model().index(0, 0)).center())
    assert window.texts == ["question", "answer"]


def test_the_list_gives_way_to_the_cutaway_panel_in_a_narrow_window(open_window, qtbot):
    window = open_window(QUICK)
    panel = window.window.plots.panel
    window.window.resize(960, 600)
    assert window.chats.list.isVisible()
    panel.set_folded(False)
    qtbot.waitUntil(lambda: not window.chats.list.isVisible())
    assert window.window.width() == 960
    qtbot.waitUntil(lambda: panel.mapTo(window.window, panel.rect().bottomRight()).x() < 960)
    assert window.chat.width() >= 440
    window.window.resize(1440, 900)
    qtbot.waitUntil(window.chats.list.isVisible)
    window.window.resize(960, 600)
    qtbot.waitUntil(lambda: not window.chats.list.isVisible())
    panel.set_folded(True)
    assert window.chats.list.isVisible()


def test_nothing_of_a_closed_window_stays_alive(open_window, qtbot, wait):
    window = open_window(SLOW)
    ask(window, qtbot, "Go on")
    wait(lambda: len(window.texts[-1]) > 5)
    window.close()
    gc.collect()
    assert window.context.engine.state is LifeCycle.DEAD
