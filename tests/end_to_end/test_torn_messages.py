"""What comes from the engine is torn, oversized, unknown or nothing at all: it is ended, in words, and started again.

The real worker cannot be made to do this from outside, so the program is started with a stand-in for the first time.
"""

from __future__ import annotations

import pytest

from tests.helpers.program import SHORT_ANSWER, ChatFile, DrivenProgram, is_gone, stretched, wait_for, write_settings
from tests.helpers.stand_in_worker import stand_in

pytestmark = pytest.mark.drill

NONSENSE = "The engine said something Cutaway does not understand, so Cutaway ended it."
BY_ITSELF = "The engine ended by itself."
WRITING = {
    "sends garbage": NONSENSE,
    "sends a message over the limit": NONSENSE,
    "sends an unknown message": NONSENSE,
    "sends a torn message and ends": BY_ITSELF,
    "exits while writing": BY_ITSELF,
}


def check_next_answer(program: DrivenProgram) -> None:
    assert program.ask("press", "Restart") == {"pressed": True}
    program.wait_ready()
    program.ask("new")
    program.ask("send", SHORT_ANSWER)
    program.wait_writing(1, stretched(10.0))
    program.ask("stop")
    assert program.wait_answered()["notices"] == []
    assert program.quit() == 0


@pytest.mark.parametrize("misbehaviour", WRITING)
def test_an_engine_that_misbehaves_while_writing_is_told_and_started_again(misbehaviour, own_home, tmp_path):
    write_settings(own_home, max_tokens=50)
    with DrivenProgram(own_home, worker=stand_in(tmp_path, misbehaviour)) as program:
        program.wait_ready()
        bad = program.worker()
        program.ask("send", "Go on.")
        program.wait_notice(WRITING[misbehaviour], stretched(2.0))
        shown = program.wait_answered()["messages"][-1]
        assert shown["text"] == "Half a sent"
        assert shown["state_text"] == f"{WRITING[misbehaviour]} It was writing; the text so far is kept."
        stored = wait_for(lambda: (last := ChatFile(own_home).last())["state"] == "interrupted" and last, "it is kept")
        assert stored["text"] == "Half a sent"
        wait_for(lambda: is_gone(bad), "the worker is gone", stretched(2.0))
        check_next_answer(program)


def test_an_engine_that_ends_by_itself_while_loading_is_told_and_started_again(own_home, tmp_path):
    write_settings(own_home, max_tokens=50)
    with DrivenProgram(own_home, worker=stand_in(tmp_path, "exits while loading")) as program:
        program.wait_notice(f"{BY_ITSELF} It was loading the model.", stretched(5.0))
        check_next_answer(program)


def test_an_engine_of_another_version_is_told_and_ended(own_home, tmp_path):
    write_settings(own_home, max_tokens=50)
    with DrivenProgram(own_home, worker=stand_in(tmp_path, "speaks another protocol")) as program:
        state = program.wait(lambda s: s["life_cycle"] == "dead" and s["notices"], "it is told", stretched(5.0))
        assert "The program and its engine are of different versions" in state["notices"][0]
        wait_for(lambda: not program.workers(), "the worker is gone")
        assert program.quit() == 0
