"""The bugs of engine.md, section 8, that bookkeeping alone can make: each has a test that finds it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.fake_model import POISON, VOCABULARY, FakeEngine, alone

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]  # three blocks of four


def test_bug_2_two_requests_with_one_prefix_in_one_step_read_no_empty_blocks() -> None:
    """Blocks are published once they are written, not when they are scheduled."""
    engine = FakeEngine(20, token_budget=64)
    first, second = engine.add([*PROMPT, 7]), engine.add([*PROMPT, 8])
    plan = engine.plan()
    assert [row.sequence for row in plan.rows] == [first, second]
    assert engine.pool.match(first.chain, PROMPT, 3) == []
    assert second.reused == 0
    engine.land()
    assert len(engine.pool.match(first.chain, PROMPT, 3)) == 3
    engine.run()
    assert engine.said == {1: alone([*PROMPT, 7], 4), 2: alone([*PROMPT, 8], 4)}


def test_bug_2_blocks_of_a_step_in_flight_or_broken_off_are_not_found() -> None:
    engine = FakeEngine(20, token_budget=64)
    engine.add(PROMPT)
    engine.plan()
    late = engine.add([*PROMPT, 7])
    engine.plan()
    assert late.reused == 0
    engine.break_off(rows=0)
    engine.break_off(rows=1)
    assert engine.pool.match(late.chain, PROMPT, 3) == []
    engine.run()
    assert engine.said == {1: alone(PROMPT, 4), 2: alone([*PROMPT, 7], 4)}


def test_bug_3_a_prompt_that_is_kept_to_its_last_token_still_computes_one() -> None:
    engine = FakeEngine(20)
    for number in (1, 2):
        sequence = engine.add(PROMPT)
        (row,) = engine.step().rows
        assert row.wants_logits
        assert row.count >= 1
        engine.run()
        assert engine.said[number] == alone(PROMPT, 4)
    assert (sequence.reused, row.past, row.count) == (8, 8, 4)


def test_bug_4_a_block_with_the_content_of_another_stays_with_its_request() -> None:
    engine = FakeEngine(8, token_budget=64)
    first, second = engine.add(PROMPT, new_tokens=2), engine.add(PROMPT, new_tokens=8)
    engine.step()
    assert not set(first.block_table) & set(second.block_table)
    engine.step()  # the first ends; its blocks are kept, then given up for what the third needs
    assert not first.is_running
    engine.add([20, 21, 22, 23], new_tokens=6)
    engine.run()
    assert engine.said == {1: alone(PROMPT, 2), 2: alone(PROMPT, 8), 3: alone([20, 21, 22, 23], 6)}


def test_bug_5_nothing_leaks_whatever_a_request_is_doing_when_it_ends() -> None:
    engine = FakeEngine(10, token_budget=6)
    for steps in range(6):
        for keep in (True, False):
            sequences = [engine.add(PROMPT, seed=steps), engine.add(PROMPT[: steps + 1]), engine.add([])]
            engine.scheduler.remove(sequences.pop())
            for _ in range(steps):
                engine.step()
            for sequence in sequences:
                if sequence.request.request_id not in engine.said:
                    engine.scheduler.remove(sequence, keep=keep)
            engine.scheduler.check_invariants()
            assert (engine.pool.used, engine.pool.available) == (0, 10)


def test_bug_6_found_blocks_cannot_be_given_up_for_the_rest_of_the_same_prompt() -> None:
    """Six blocks; the kept beginning counts as available until the prompt itself takes it."""
    engine = FakeEngine(6, token_budget=64)
    engine.add(PROMPT, new_tokens=1)
    engine.run()
    assert engine.pool.kept == 3
    longer = [*PROMPT, *range(10)]
    sequence = engine.add(longer, new_tokens=2)
    engine.step()
    assert sequence.reused == 12
    assert sorted(sequence.block_table) == [0, 1, 2, 3, 4, 5]
    engine.run()
    assert engine.said[2] == alone(longer, 2)


@pytest.mark.parametrize("max_sequences", [2, 6])
def test_bug_6_a_pool_of_ten_blocks_says_what_an_endless_one_says(max_sequences: int) -> None:
    prompts = [[*PROMPT[: 2 + number % 9], number % 3] for number in range(12)]
    small = FakeEngine(10, max_sequences=max_sequences)
    large = FakeEngine(1_000, max_sequences=max_sequences)
    for engine in (small, large):
        for prompt in prompts:
            engine.add(prompt, new_tokens=9)
        engine.run()
    assert small.said == large.said
    assert small.said == {number: alone(prompt, 9) for number, prompt in enumerate(prompts, 1)}
    assert (small.preempted > 0) == (max_sequences == 6)
    assert large.preempted == 0


def test_bug_7_blocks_given_back_rest_until_the_step_that_uses_them_has_ended() -> None:
    engine = FakeEngine(4)
    first = engine.add(PROMPT)
    engine.plan()
    theirs = list(first.block_table)
    engine.scheduler.remove(first)
    second = engine.add([7] * 8)
    assert engine.plan().rows == ()  # one block is free, two are needed, three rest
    assert engine.pool.resting == 3
    engine.land()
    engine.step()
    assert set(second.block_table) & set(theirs)
    engine.run()
    assert engine.said == {2: alone([7] * 8, 4)}


def test_bug_7_a_step_that_was_planned_ahead_does_not_count_for_a_request_that_lost_its_blocks() -> None:
    """Its logits would say the next token a second time."""
    engine = FakeEngine(12, token_budget=64, max_sequences=1)
    low = engine.add(PROMPT, new_tokens=4)
    engine.step()
    engine.plan()
    high = engine.add([7], priority=1)
    assert engine.plan().preempted == (low,)
    engine.scheduler.remove(high)
    (row,) = engine.plan().rows
    assert (row.sequence, row.wants_logits, len(engine.model.in_flight)) == (low, True, 3)
    engine.run()
    assert engine.said == {1: alone(PROMPT, 4)}


def test_bug_8_nobody_gets_the_block_where_padded_rows_write() -> None:
    """The fake model compares every other block before and after each step, too."""
    engine = FakeEngine(5, token_budget=64)
    sequence = engine.add(PROMPT, new_tokens=8)
    for _ in range(8):
        engine.step()
        assert set(sequence.block_table) <= {0, 1, 2, 3, 4}
    assert engine.said == {1: alone(PROMPT, 8)}
    assert engine.model.kv[5].tolist() == [0, POISON, POISON, POISON]
    assert np.count_nonzero(engine.model.kv[:5] != POISON) == len(PROMPT) + 7


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_bug_22_a_seed_says_the_same_with_and_without_preemption(seed: int) -> None:
    prompts = [[number, *PROMPT[:5]] for number in range(4)]
    roomy, tight = FakeEngine(100, max_sequences=4), FakeEngine(9, max_sequences=4)
    for engine in (roomy, tight):
        for prompt in prompts:
            engine.add(prompt, new_tokens=14, seed=seed)
        engine.run()
    assert tight.preempted > 0
    assert roomy.preempted == 0
    assert tight.said == roomy.said


def test_the_fake_model_s_answers_depend_on_every_token_before() -> None:
    """Otherwise the tests above would prove nothing. One token in forty is equal by chance."""
    said = alone(PROMPT, 8)
    for position in range(len(PROMPT)):
        other = [*PROMPT[:position], (PROMPT[position] + 1) % VOCABULARY, *PROMPT[position + 1 :]]
        assert alone(other, 8) != said
    assert alone(PROMPT, 8, seed=1) != said
