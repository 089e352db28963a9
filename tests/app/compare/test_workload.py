"""The amounts: how many windows, answers, questions and rounds, and which text gets which window."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.compare.plan import TextSpec
from app.compare.texts import bundled_texts
from app.compare.workload import AMOUNTS, FEWEST_WINDOWS, preset, with_prompts, with_windows

OWN = TextSpec(text_id="own", title="notes.txt", path="/notes.txt")


def dealt(workload) -> dict[str, int]:
    return {text.text_id: text.windows for text in workload.texts}


@pytest.mark.parametrize(
    ("amount", "windows", "scored", "answers", "tokens", "choices", "speed"),
    [
        ("quick", 2, 510, 1, 48, 0, (128, 32, 2)),
        ("normal", 4, 1020, 3, 64, 0, (512, 64, 3)),
        ("thorough", 16, 4080, 8, 200, 50, (512, 128, 5)),
    ],
)
def test_each_amount_is_as_large_as_it_says(amount, windows, scored, answers, tokens, choices, speed):
    work = preset(amount, bundled_texts(), context_tokens=4096)
    assert (work.amount, work.windows, work.scored_tokens) == (amount, windows, scored)
    assert len(work.prompts) == answers
    assert {prompt.max_tokens for prompt in work.prompts} == {tokens}
    assert len(work.choices) == choices
    assert (work.speed.prompt_tokens, work.speed.new_tokens, work.speed.rounds) == speed
    assert work.context_tokens == 4096


def test_a_larger_amount_does_all_that_a_smaller_one_does():
    works = [preset(amount, bundled_texts()) for amount in AMOUNTS]
    for smaller, larger in pairwise(works):
        assert {prompt.text for prompt in smaller.prompts} < {prompt.text for prompt in larger.prompts}
        assert set(dealt(smaller)) <= set(dealt(larger))
        assert smaller.speed.rounds < larger.speed.rounds


def test_windows_are_dealt_to_the_texts_in_turn():
    assert dealt(preset("quick", bundled_texts())) == {"encyclopaedia": 1, "chat": 1}
    assert dealt(preset("normal", bundled_texts())) == {"encyclopaedia": 1, "chat": 1, "code": 1, "multilingual": 1}
    assert set(dealt(preset("thorough", bundled_texts())).values()) == {4}


def test_a_person_s_own_text_takes_the_place_of_the_last_bundled_one():
    texts = (*bundled_texts(), OWN)
    assert dealt(preset("quick", texts)) == {"encyclopaedia": 1, "own": 1}
    assert dealt(preset("normal", texts)) == {"encyclopaedia": 1, "own": 1, "chat": 1, "code": 1}


def test_a_text_alone_gets_all_windows():
    assert dealt(preset("thorough", (OWN,))) == {"own": 16}


def test_no_text_and_no_window_are_refused():
    with pytest.raises(ValueError, match="no text"):
        preset("quick", ())
    with pytest.raises(ValueError, match="no window"):
        with_windows(preset("quick", (OWN,)), 0)


def test_the_same_work_with_fewer_windows_leaves_everything_else():
    work = preset("normal", bundled_texts())
    fewer = with_windows(work, FEWEST_WINDOWS)
    assert dealt(fewer) == {"encyclopaedia": 1, "chat": 1}
    assert (fewer.prompts, fewer.speed) == (work.prompts, work.speed)


def test_own_prompts_take_the_place_of_the_bundled_ones():
    work = with_prompts(preset("normal", bundled_texts()), ["  What is a quark?\n", "", "Why?"])
    assert [(prompt.prompt_id, prompt.text, prompt.max_tokens) for prompt in work.prompts] == [
        ("own-1", "What is a quark?", 64),
        ("own-2", "Why?", 64),
    ]
