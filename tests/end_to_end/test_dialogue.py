"""A dialogue's second turn reads only what is new, and Stop is answered at any moment."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from tests.helpers.program import (
    LONG_ANSWER,
    LONG_PROMPT,
    ChatFile,
    DrivenProgram,
    report,
    stretched,
    wait_for,
    write_settings,
)

pytestmark = pytest.mark.drill

STOP_LAW_S, STOP_LIMIT_S = 0.2, 2.0
SEED = 20_261


def test_the_second_turn_reads_only_what_is_new(own_home):
    write_settings(own_home, max_tokens=24)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        for text in (LONG_ANSWER, "Go on.", "And then?"):
            program.ask("send", text)
            program.wait_answered()
        assert program.quit() == 0
    answers = [message["stats"] for message in ChatFile(own_home).messages() if message["role"] == "assistant"]
    assert [stats["new_tokens"] for stats in answers] == [24, 24, 24]
    assert answers[0].get("reused_tokens", 0) == 0
    for before, after in itertools.pairwise(answers):
        # the last token that was drawn is not computed any more
        assert after["reused_tokens"] == before["prompt_tokens"] + before["new_tokens"] - 1


def test_a_chat_that_is_opened_again_in_the_middle_of_an_answer_shows_nothing_twice(own_home):
    write_settings(own_home, max_tokens=60)
    seen = []
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        program.ask("send", LONG_ANSWER)
        program.wait_writing(1)
        while (state := program.state())["is_busy"]:
            seen.append(state["messages"][-1]["text"])
            program.ask("new")
            program.ask("open")
            time.sleep(0.05)  # a frame, in which waiting text would come once more
        shown = state["messages"][-1]["text"]
        assert program.quit() == 0
    assert len(seen) > 5
    assert [text for text in seen if not shown.startswith(text)] == []
    assert ChatFile(own_home).last()["text"] == shown


def test_stop_is_answered_while_reading_and_while_writing(own_home):
    """0.2 s is the law on a quiet machine: tests/benchmarks measures it; here it is printed and bounded."""
    draw = random.Random(SEED)
    waits: dict[str, list[float]] = {"reading": [], "writing": []}
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        for phase, text in [("reading", LONG_PROMPT), ("writing", LONG_ANSWER)] * 6:
            program.ask("new")
            program.ask("send", text)
            if phase == "reading":
                program.wait(lambda s: s["life_cycle"] == "busy", "it reads")
            else:
                program.wait_writing(1)
            time.sleep(draw.uniform(0.0, 0.5))  # any moment
            pressed_s = program.ask("stop")["pressed_s"]
            program.wait(lambda s: not s["is_busy"], "it has stopped")
            waits[phase].append(time.monotonic() - pressed_s)
            wait_for(lambda: ChatFile(own_home).last()["state"] == "stopped", "it is stored")
        assert program.quit() == 0
    for phase, taken in waits.items():
        late = sum(wait > STOP_LAW_S for wait in taken)
        report(f"Stop while {phase}: {' '.join(f'{wait:.3f}' for wait in sorted(taken))} s; {late} over {STOP_LAW_S} s")
        assert max(taken) < stretched(STOP_LIMIT_S)
