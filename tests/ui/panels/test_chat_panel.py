"""The chat that is open: what its session tells is shown once, whichever way it comes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject, Signal

from app.chat.messages import Chat, Message, MessageState, Role
from app.chat.session_events import (
    AnswerWaiting,
    ChatChanged,
    ContextMeasured,
    MessageAdded,
    MessageChanged,
    NoticeRaised,
    TextAppended,
)
from app.errors import Words
from tests.helpers.notices import shown_notices
from ui.bridge import Bridge
from ui.panels.chat_panel import ChatPanel
from ui.theme import load_theme

ASKED = Message(1, 5, None, Role.USER, "Why?")
ANSWER = Message(2, 5, 1, Role.ASSISTANT, "", MessageState.STREAMING)


class Session:
    """Stands in for a chat's session."""

    def __init__(self, *messages: Message, title: str = "Why?") -> None:
        self.chat = Chat(5, title, 0.0, 0.0)
        self.stored = list(messages)
        self.is_waiting = any(message.state is MessageState.STREAMING for message in messages)
        self.measured = self.stopped = 0

    def messages(self) -> list[Message]:
        return self.stored

    def measure_context(self) -> None:
        self.measured += 1

    def stop(self) -> None:
        self.stopped += 1


class Status(QObject):
    """Stands in for the engine in words."""

    changed = Signal()

    def __init__(self, entry: object = None, line: str = "") -> None:
        super().__init__()
        self.entry, self.line, self.is_ready, self.chip_text = entry, line, entry is not None, "Echo · none"
        self.backend = ""


@pytest.fixture
def bridge(qapp):
    made = Bridge()
    yield made
    made.close()


@pytest.fixture
def panel(qtbot, bridge):
    made = ChatPanel(bridge, load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 700)
    made.show()
    return made


@pytest.fixture
def tell(bridge):
    """Return a function that tells events as sessions do, and hands on the text of a frame at the end."""

    def tell(*events, frame=True):
        for event in events:
            bridge.on_session_event(event)
        if frame:
            bridge.flush()

    return tell


def texts(panel):
    return [item.text for item in panel.view.items]


def test_an_answer_grows_by_what_is_told(panel, tell):
    panel.show_session(Session())
    tell(MessageAdded(ASKED), MessageAdded(ANSWER), AnswerWaiting(5, True))
    tell(TextAppended(5, 2, "Be", 0), TextAppended(5, 2, "cau", 2))
    tell(TextAppended(5, 2, "se.", 5))
    assert texts(panel) == ["Why?", "Because."]
    assert panel.view.items[1].is_streaming


def test_text_of_the_last_frame_is_not_shown_again_after_the_end(panel, tell):
    # The end of an answer brings all of its text, and may overtake the frame that its last words wait for.
    panel.show_session(Session(ASKED, ANSWER))
    tell(TextAppended(5, 2, "Because", 0))
    ended = replace(ANSWER, text="Because.", state=MessageState.COMPLETE, stats={"stop_reason": "end_of_text"})
    tell(TextAppended(5, 2, ".", 7), MessageChanged(ended), frame=False)
    assert texts(panel)[1] == "Because."
    tell()
    assert texts(panel)[1] == "Because."
    assert panel.view.items[1].figures == "finished"
    assert not panel.view.items[1].is_streaming


def test_the_last_frame_of_an_earlier_answer_adds_nothing_once_the_next_has_begun(panel, tell):
    panel.show_session(Session(ASKED, ANSWER))
    tell(TextAppended(5, 2, "Be", 0))
    ended = replace(ANSWER, text="Because.", state=MessageState.COMPLETE, stats={"stop_reason": "end_of_text"})
    tell(TextAppended(5, 2, "cause.", 2), MessageChanged(ended), frame=False)
    tell(MessageAdded(replace(ASKED, message_id=3)), MessageAdded(replace(ANSWER, message_id=4)), frame=False)
    tell(TextAppended(5, 4, "So", 0))
    assert texts(panel) == ["Why?", "Because.", "Why?", "So"]


def test_text_that_an_opened_chat_brought_along_is_not_shown_again(panel, tell):
    tell(TextAppended(5, 2, "Beca", 0), TextAppended(5, 2, "use", 4), frame=False)
    panel.show_session(Session(ASKED, replace(ANSWER, text="Because")))
    tell()
    assert texts(panel)[1] == "Because"
    tell(TextAppended(5, 2, "!", 7))
    assert texts(panel)[1] == "Because!"


def test_a_frame_that_is_known_in_part_adds_the_rest(panel, tell):
    panel.show_session(Session(ASKED, replace(ANSWER, text="Beca")))
    tell(TextAppended(5, 2, "Beca", 0), TextAppended(5, 2, "use", 4))
    assert texts(panel)[1] == "Because"


def test_what_other_chats_tell_is_not_shown(panel, tell):
    panel.show_session(Session(ASKED, ANSWER))
    other = replace(ANSWER, chat_id=6)
    tell(TextAppended(6, 2, "x", 0), MessageChanged(other), MessageAdded(replace(other, message_id=9)))
    tell(AnswerWaiting(6, False), ContextMeasured(6, 1, 2), ChatChanged(6))
    assert texts(panel) == ["Why?", ""]
    assert panel.composer._button.text() == "Stop"


def test_without_a_session_nothing_is_shown_but_the_card(panel, tell):
    panel.show_session(None)
    tell(TextAppended(5, 2, "x", 0), MessageAdded(ASKED))
    assert texts(panel) == []
    assert panel.card.isVisible()


def test_the_card_gives_way_to_the_first_message(panel, tell):
    panel.show_session(Session())
    assert panel.card.isVisible()
    tell(MessageAdded(ASKED))
    assert not panel.card.isVisible()
    assert panel.view.isVisible()


def test_opening_a_chat_shows_its_title_and_has_its_context_measured(panel, tell):
    session = Session(ASKED, title="A <b>title</b>")
    panel.show_session(session)
    assert panel._title.text() == "A <b>title</b>"
    assert session.measured == 1
    assert not panel.composer._meter.isVisible()
    tell(ContextMeasured(5, 435, 8192))
    assert panel.composer._meter.words == "435 of 8,192 tokens"
    panel.show_session(None)
    assert panel._title.text() == "New chat"
    assert not panel.composer._meter.isVisible()


def test_stop_is_offered_while_an_answer_is_under_way(panel, tell, qtbot):
    session = Session(ASKED, ANSWER)
    panel.show_session(session)
    panel.composer._button.click()
    assert session.stopped == 1
    tell(AnswerWaiting(5, False))
    assert panel.composer._button.text() == "Send"


def test_a_notice_of_any_chat_is_shown_once(panel, tell):
    words = Words("This model's chat template is broken.", "A plain one is used.")
    tell(NoticeRaised("template m", words), NoticeRaised("template m", words))
    assert shown_notices(panel.notices) == ["Warning: This model's chat template is broken. A plain one is used."]


def test_what_went_wrong_stands_under_the_answer(panel, tell):
    panel.show_session(Session(ASKED, ANSWER))
    ended = replace(ANSWER, text="Beca", state=MessageState.INTERRUPTED, stats={"problem": "The engine crashed."})
    tell(MessageChanged(ended))
    assert (texts(panel)[1], panel.view.items[1].state_text) == ("Beca", "The engine crashed.")


def test_the_engines_words_stand_before_the_panels(panel):
    status = Status(SimpleNamespace(origin="starter", name="SmolLM2"), "Starting the engine")
    panel.set_panel_line("151 tokens/s")
    panel.follow(status)
    assert panel.composer._live_label.text() == "Starting the engine"
    status.line = ""
    status.changed.emit()
    assert panel.composer._live_label.text() == "151 tokens/s"
    assert panel.chip.words == "Echo · none"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "Cutaway needs a model to answer: one from the hub, or a file that ends in .gguf."),
        (
            SimpleNamespace(origin="starter", name="S"),
            "This small model shows the engine; for real work pick a larger one.",
        ),
        (SimpleNamespace(origin="imported", name="<b>Mine</b>"), "<b>Mine</b> answers here."),
    ],
)
def test_the_card_says_what_the_model_is_for(panel, entry, words):
    panel.follow(Status(entry))
    assert panel.card._sentence.accessibleName() == words
    assert panel.composer._is_ready is (entry is not None)


def test_an_example_of_the_card_is_sent(panel, qtbot):
    with qtbot.waitSignal(panel.prompt_sent) as caught:
        panel.card._examples[1].click()
    assert caught.args == ["Write a short poem about a lighthouse."]


def test_a_long_title_leaves_the_model_readable_and_the_other_way_round(panel, qtbot):
    panel.resize(448, 500)
    panel.show_title("A title of many words " * 9)
    panel.chip.set_text("A-model-with-a-name-of-its-own-kind-32B-Instruct · Q4_K_M · llama.cpp · CPU")
    qtbot.waitUntil(lambda: panel.chip.width() < panel.chip.sizeHint().width())
    assert panel._title.width() >= 140
    assert panel.chip.geometry().right() < panel.width()
