"""The engine's process dies or falls silent, whatever it does at that moment; the window says so and goes on (S-41)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.helpers.program import (
    LONG_ANSWER,
    LONG_PROMPT,
    SHORT_ANSWER,
    ChatFile,
    DrivenProgram,
    caught_loading,
    is_gone,
    let_die_of,
    stretched,
    wait_for,
    write_settings,
    zombies,
)

pytestmark = pytest.mark.drill

DEATHS = {
    signal.SIGKILL: "The system ended the engine, probably out of memory.",
    signal.SIGSEGV: "The engine crashed: it reached for memory that is not its own.",
    signal.SIGABRT: "The engine gave up: it found an error it cannot go on from.",
    signal.SIGTERM: "Another program or the system asked the engine to end.",
}
SILENCE = "The engine has not answered for"
ENDED_BY_US = "The engine did not answer any more, so Cutaway ended it."
NOTICED_S, SILENCE_NOTICED_S, ANSWERED_S = 2.0, 4.0, 10.0


class Drill:
    """One program that goes through the phases of an engine's life, and what must hold after each death.

    Attributes:
        model: the starter model.
        chats: the database file, seen from outside.
    """

    def __init__(self, program: DrivenProgram, home: Path, model: Path) -> None:
        self.program = program
        self.model = model
        self.chats = ChatFile(home)

    def worker_in(self, phase: str):
        """Bring the engine into a phase and return its process."""
        program = self.program
        if phase == "loading":
            return caught_loading(program, self.model)
        program.wait_ready()
        if phase == "reading":
            program.ask("new")
            program.ask("send", LONG_PROMPT)
            program.wait(lambda s: s["life_cycle"] == "busy" and s["messages"][-1]["is_streaming"], "it reads")
        if phase == "writing":
            program.ask("new")
            program.ask("send", LONG_ANSWER)
            program.wait_writing()
        return program.worker()

    def check_death(self, phase: str, words: str, limit_s: float = NOTICED_S) -> None:
        """The cause is told in time, by a window that never stood still; what was written is kept."""
        seen = self.program.state()["messages"]
        self.program.worst_gap_s = 0.0
        state = self.program.wait_notice(words, stretched(limit_s))
        assert self.program.worst_gap_s < stretched(0.5)
        if phase == "loading":
            assert any(words in notice and "It was loading the model." in notice for notice in state["notices"])
        if phase in ("reading", "writing"):
            self.check_kept(phase, words, seen)

    def check_kept(self, phase: str, words: str, seen) -> None:
        """The answer ends with its cause in words, in the window and in the file, and with all that was seen of it."""
        shown = self.program.wait_answered()["messages"][-1]
        assert shown["state_text"].startswith(words)
        assert f"It was {phase}" in shown["state_text"]
        assert shown["text"].startswith(seen[-1]["text"])
        stored = wait_for(lambda: (last := self.chats.last())["state"] == "interrupted" and last, "the answer is kept")
        assert stored["text"] == shown["text"]
        assert bool(stored["text"]) is (phase == "writing")

    def check_next_answer(self, dead, phase: str) -> None:
        """The next prompt starts the engine again; of the dead one nothing is left."""
        if phase != "writing":  # there the same chat goes on
            self.program.ask("new")
        self.program.ask("send", SHORT_ANSWER)
        state = self.program.wait_writing(1, stretched(ANSWERED_S))
        assert state["notices"] == []
        self.program.ask("stop")
        self.program.wait_answered()
        wait_for(lambda: is_gone(dead) and not zombies(self.program), "the dead one is gone and was waited for")
        wait_for(lambda: len(self.program.workers()) == 1, "there is one worker")
        assert self.program.worker().pid != dead.pid


@pytest.mark.parametrize("number", DEATHS, ids=lambda number: number.name)
def test_a_dead_engine_is_told_and_the_next_prompt_starts_another(number, own_home, starter_model):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        drill = Drill(program, own_home, starter_model)
        for phase in ("idle", "writing", "loading", "reading"):
            worker = drill.worker_in(phase)
            let_die_of(worker, number)
            drill.check_death(phase, DEATHS[number])
            drill.check_next_answer(worker, phase)
        assert program.quit() == 0
        assert drill.chats.integrity() == "ok"


def test_a_silent_engine_can_be_stopped_and_the_next_prompt_starts_another(own_home, starter_model):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        drill = Drill(program, own_home, starter_model)
        for phase in ("idle", "writing", "loading", "reading"):
            worker = drill.worker_in(phase)
            worker.suspend()
            program.wait_notice(SILENCE, stretched(SILENCE_NOTICED_S))
            assert program.ask("press", "Stop the engine") == {"pressed": True}
            drill.check_death(phase, ENDED_BY_US)
            drill.check_next_answer(worker, phase)
        assert program.quit() == 0


def test_an_engine_that_answers_again_takes_its_notice_back(own_home):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        worker = program.worker()
        worker.suspend()
        program.wait_notice(SILENCE)
        worker.resume()
        program.wait(lambda state: state["notices"] == [], "the notice is gone")
        assert program.worker().pid == worker.pid
        assert program.quit() == 0


def test_stop_ends_a_silent_engine_and_keeps_what_it_wrote(own_home):
    """Stop is the composer's own button here: unanswered for two seconds, it becomes a kill."""
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        program.ask("send", LONG_ANSWER)
        seen = program.wait_writing()["messages"][-1]["text"]
        worker = program.worker()
        worker.suspend()
        program.ask("stop")
        state = program.wait_answered(stretched(4.0))
        assert state["messages"][-1]["text"].startswith(seen)
        stored = wait_for(lambda: (last := ChatFile(own_home).last())["state"] == "stopped" and last, "it is stopped")
        assert stored["text"] == state["messages"][-1]["text"]
        wait_for(lambda: is_gone(worker), "the worker is gone")
        assert program.quit() == 0


@pytest.mark.full
def test_an_engine_that_falls_silent_before_its_first_word_can_be_stopped(own_home, starter_model):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        first = program.worker()
        program.ask("load", str(starter_model))
        worker = wait_for(lambda: [w for w in program.workers() if w.pid != first.pid], "another worker")[0]
        worker.suspend()
        program.wait_notice(SILENCE, stretched(15.0))
        assert program.ask("press", "Stop the engine") == {"pressed": True}
        program.wait_notice(ENDED_BY_US)
        assert program.ask("press", "Restart") == {"pressed": True}
        program.wait_ready()
        assert program.quit() == 0
