"""The window's process is killed in the middle of an answer: nothing lives on, next to nothing is lost (S-43)."""

from __future__ import annotations

import time

import pytest

from tests.helpers.program import (
    LONG_ANSWER,
    SHORT_ANSWER,
    ChatFile,
    DrivenProgram,
    is_gone,
    stretched,
    wait_for,
    write_settings,
)

pytestmark = pytest.mark.drill

ORPHANS_GONE_S = 2.0
LOST_S = 1.0
NUM_KILLS_FULL = 20


def kill_in_an_answer(program: DrivenProgram, characters: int) -> list[tuple[float, str]]:
    """Have an answer written, kill the window once it has this many characters; return what was seen, and when."""
    program.ask("new")
    program.ask("send", LONG_ANSWER)
    program.wait_writing(1)
    seen: list[tuple[float, str]] = []
    while not seen or len(seen[-1][1]) < characters:
        seen.append((time.monotonic(), program.state()["messages"][-1]["text"]))
        time.sleep(0.01)
    program.process.kill()
    program.process.wait()
    seen.append((time.monotonic(), ""))
    return seen


def check_kill(home, characters: int) -> None:
    chats = ChatFile(home)
    with DrivenProgram(home) as program:
        program.wait_ready()
        program.ask("send", SHORT_ANSWER)
        program.wait_answered()
        wait_for(lambda: chats.last()["state"] == "complete", "the first answer is stored")
        earlier = chats.messages()
        children = program.children()
        assert len(program.workers()) == len(program.renderers()) == 1
        seen = kill_in_an_answer(program, characters)
        wait_for(lambda: all(map(is_gone, children)), "no process lives on", stretched(ORPHANS_GONE_S))
    assert chats.integrity() == "ok"
    stored = chats.messages()
    assert [(m["role"], m["text"], m["state"]) for m in stored[: len(earlier)]] == [
        (m["role"], m["text"], m["state"]) for m in earlier
    ]
    killed_s = seen.pop()[0]
    kept = stored[-1]
    assert (stored[-2]["role"], stored[-2]["text"]) == ("user", LONG_ANSWER)
    assert kept["role"] == "assistant"
    for seen_s, text in seen:
        if seen_s < killed_s - stretched(LOST_S):
            assert kept["text"].startswith(text)
    with DrivenProgram(home) as program:
        program.ask("open")
        shown = program.state()["messages"][-1]
        assert (shown["text"], shown["is_streaming"]) == (kept["text"], False)
        assert shown["state_text"] == "Interrupted here. What was written is kept."
        assert chats.last()["state"] == "interrupted"
        assert program.quit() == 0


def test_a_window_killed_in_an_answer_leaves_no_process_and_keeps_the_text(own_home):
    write_settings(own_home, max_tokens=2_000)
    check_kill(own_home, 250)


@pytest.mark.full
def test_a_window_killed_twenty_times_keeps_every_earlier_answer(own_home):
    write_settings(own_home, max_tokens=2_000)
    for number in range(NUM_KILLS_FULL):
        check_kill(own_home, 5 + 37 * number % 400)
    assert len(ChatFile(own_home).messages()) == 4 * NUM_KILLS_FULL
