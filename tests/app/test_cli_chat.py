"""A chat led by one thread that waits; the echo engine answers."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.chat.messages import MessageState
from app.chat.store import StoreMode
from app.cli_chat import WaitingChat, use_memory_store
from app.context import AppContext, build_context
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words
from backends.echo_engine import Fault
from tests.helpers.command_line import stored_chats, write_script


class Listener:
    """A face that remembers, and may press Ctrl+C at the first piece or notice."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.notices: list[Words] = []
        self.fractions: list[float] = []
        self.on_text = lambda: None
        self.on_notice = lambda: None

    def text(self, piece: str) -> None:
        self.pieces.append(piece)
        self.on_text()

    def notice(self, words: Words) -> None:
        self.notices.append(words)
        self.on_notice()

    def progress(self, fraction: float) -> None:
        self.fractions.append(fraction)


@pytest.fixture
def context(own_home: Path):
    made = build_context()
    yield made
    made.close()


@pytest.fixture
def face() -> Listener:
    return Listener()


def loaded_chat(context: AppContext, face: Listener, script: str) -> WaitingChat:
    chat = WaitingChat(context, face)
    chat.load(LoadRequest(script, "echo"))
    return chat


def test_a_load_shows_its_progress_and_returns_what_the_engine_says(context, face, tmp_path):
    loaded = WaitingChat(context, face).load(LoadRequest(write_script(tmp_path, "x"), "echo"))
    assert (loaded.backend, loaded.context_tokens) == ("echo", 4096)
    assert face.fractions == [tenth / 10 for tenth in range(11)]


def test_a_load_that_fails_is_an_error_in_words(context, face, tmp_path):
    with pytest.raises(AppError, match=r"“none\.json” is not there any more"):
        WaitingChat(context, face).load(LoadRequest(str(tmp_path / "none.json"), "echo"))


def test_an_engine_that_dies_while_loading_is_an_error_in_words(context, face, tmp_path):
    script = write_script(tmp_path, "x", fault=Fault("load", "segv"))
    with pytest.raises(AppError, match=r"The engine crashed.*It was loading the model"):
        WaitingChat(context, face).load(LoadRequest(script, "echo"))


def test_ctrl_c_ends_a_load(context, face, tmp_path):
    chat = WaitingChat(context, face)
    threading.Timer(0.1, chat.interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        chat.load(LoadRequest(write_script(tmp_path, "x", load_s=20.0), "echo"))


def test_questions_follow_each_other_in_one_chat_until_another_begins(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "yes"))
    chat.begin("Be brief.", {"seed": 3})
    assert chat.chat is None
    assert chat.ask("one").message.text == "yes"
    first = chat.chat
    assert chat.ask("two").message.state is MessageState.COMPLETE
    assert chat.chat is first
    chat.begin_anew()
    chat.ask("three")
    chats = context.store.chats()
    assert [[m.text for m in context.store.branch(c.chat_id)] for c in chats] == [
        ["three", "yes"],
        ["one", "yes", "two", "yes"],
    ]
    assert [(c.system_prompt, c.params) for c in chats] == [("Be brief.", {"seed": 3})] * 2
    assert "".join(face.pieces) == "yesyesyes"
    assert face.notices == []


def test_nothing_is_asked_with_nothing_but_spaces(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "yes"))
    with pytest.raises(AppError, match="the prompt is empty"):
        chat.ask(" \n")
    assert context.store.chats() == []


def test_the_first_ctrl_c_stops_the_answer_and_an_old_one_stops_nothing(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "word " * 20, token_s=0.01))
    chat.interrupt()

    def press_once() -> None:
        face.on_text = lambda: None
        chat.interrupt()

    face.on_text = press_once
    answer = chat.ask("go on")
    assert (answer.message.state, answer.is_interrupted, answer.words) == (MessageState.STOPPED, True, None)
    assert 0 < len(answer.message.text) < 100
    assert chat.ask("again").message.state is MessageState.COMPLETE


def test_a_second_ctrl_c_ends_an_engine_that_does_not_stop(context, face, tmp_path):
    chat = loaded_chat(
        context, face, write_script(tmp_path, "word " * 9, token_s=0.02, fault=Fault("decode", "hang", 5))
    )

    def press_twice() -> None:
        face.on_text = lambda: None
        chat.interrupt()
        chat.interrupt()

    face.on_text = press_twice
    answer = chat.ask("go on")
    assert (answer.message.state, answer.is_interrupted) == (MessageState.STOPPED, True)


def test_an_engine_that_died_is_started_again_by_the_next_question(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "a word", token_s=0.02, fault=Fault("decode", "kill", 3)))
    for _ in range(2):
        answer = chat.ask("go on")
        assert (answer.message.text, answer.message.state) == ("a w", MessageState.INTERRUPTED)
        assert answer.words is not None
        assert "probably out of memory" in answer.words.message


def test_an_engine_that_says_nothing_is_told_of_and_can_be_stopped(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "a word", token_s=0.02, fault=Fault("decode", "stop", 3)))
    face.on_notice = chat.interrupt
    answer = chat.ask("go on")
    assert [notice.message for notice in face.notices] == ["The engine does not answer."]
    assert (answer.message.text, answer.message.state) == ("a w", MessageState.STOPPED)


def test_a_limit_ends_a_wait_in_which_nothing_happens(context, face, tmp_path):
    chat = WaitingChat(context, face, limit_s=0.5)
    with pytest.raises(AppError, match="The engine said nothing for 500"):
        chat.load(LoadRequest(write_script(tmp_path, "x", load_s=30.0), "echo"))


def test_a_fallback_is_told_once(context, face, tmp_path):
    chat = loaded_chat(context, face, write_script(tmp_path, "yes", chat_template=""))
    chat.ask("one")
    chat.ask("two")
    assert [notice.message for notice in face.notices] == [
        "This model brings no chat template, so it does not know how a dialogue is written."
    ]


def test_a_memory_store_leaves_nothing_behind(face, tmp_path, own_home):
    context = build_context()
    use_memory_store(context)
    assert context.store.mode is StoreMode.IN_MEMORY
    chat = loaded_chat(context, face, write_script(tmp_path, "yes"))
    chat.ask("one")
    assert len(context.store.chats()) == 1
    context.close()
    assert stored_chats(own_home) == []
