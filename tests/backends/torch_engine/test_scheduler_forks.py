"""Sequences that share a partly filled block, and sequences that go back."""

from __future__ import annotations

import pytest

from backends.torch_engine.scheduler import StepPlan
from tests.helpers.fake_model import FakeEngine, alone

TEXT = list(range(10, 34))  # six blocks of four


def shape(plan: StepPlan) -> list[tuple[int, int, int, bool]]:
    return [(row.sequence.request.request_id, row.past, row.count, row.wants_logits) for row in plan.rows]


def test_a_fork_shares_blocks_and_copies_the_one_that_is_partly_filled() -> None:
    engine = FakeEngine(40, token_budget=64)
    parent = engine.add(TEXT[:10], new_tokens=5)
    engine.step()
    children = [engine.scheduler.fork(parent, engine.request(5, seed)) for seed in (1, 2)]
    assert all(child.block_table == parent.block_table for child in children)
    plan = engine.step()
    assert plan.copies[0][0] == plan.copies[1][0]
    tables = [sequence.block_table for sequence in (parent, *children)]
    assert all(table[:2] == tables[0][:2] for table in tables)
    assert len({table[2] for table in tables}) == 3
    engine.run()
    first = alone(TEXT[:10], 1)
    assert engine.said == {
        1: alone(TEXT[:10], 5),
        2: first + alone([*TEXT[:10], *first], 4, seed=1),
        3: first + alone([*TEXT[:10], *first], 4, seed=2),
    }
    assert (children[0].reused, children[0].prompt_tokens) == (10, 10)


def test_a_fork_at_the_end_of_a_block_copies_nothing() -> None:
    engine = FakeEngine(40, token_budget=64)
    parent = engine.add(TEXT[:8], new_tokens=3)
    engine.step()
    engine.scheduler.fork(parent, engine.request(3))
    assert engine.step().copies == ()
    engine.run()
    assert engine.said[1] == engine.said[2] == alone(TEXT[:8], 3)


def test_a_fork_without_a_place_waits() -> None:
    engine = FakeEngine(40, token_budget=64, max_sequences=1)
    parent = engine.add(TEXT[:10], new_tokens=3)
    engine.step()
    child = engine.scheduler.fork(parent, engine.request(3))
    assert engine.scheduler.waiting == [child]
    engine.run()
    assert child.reused == 8
    assert engine.said[1] == engine.said[2]


def test_a_copy_whose_row_finds_no_room_is_taken_back() -> None:
    """Found by a random story: the source of a copy without a row stayed held for ever."""
    engine = FakeEngine(5, token_budget=64)
    scheduler = engine.scheduler
    parent = engine.add(TEXT[:6])
    scheduler.commit(scheduler.schedule())
    other = engine.add(TEXT[12:20])
    plan = scheduler.schedule()
    scheduler.remove(other)
    child = scheduler.fork(parent, engine.request(9))
    for token in range(4):
        child.append(token)
    assert (engine.pool.available, engine.pool.resting) == (1, 2)
    assert scheduler.schedule() == StepPlan(())  # a copy and one block more: one of the two could be had
    assert child.block_table == parent.block_table
    scheduler.check_invariants()
    scheduler.commit(plan)
    assert len(scheduler.schedule().copies) == 1


def test_a_planned_copy_goes_with_the_blocks_of_its_sequence() -> None:
    engine = FakeEngine(6, token_budget=64)
    parent = engine.add(TEXT[:10], new_tokens=9)
    engine.step()
    child = engine.scheduler.fork(parent, engine.request(9))
    for _ in range(8):
        parent.append(1)  # as drafts would: its row needs a copy and two blocks more, and comes last
    plan = engine.plan()
    assert (plan.preempted, plan.copies, len(plan.rows)) == ((child,), (), 1)
    engine.scheduler.remove(parent)
    engine.run()
    assert engine.pool.available == 6
    assert engine.said == {2: alone(TEXT[:10], 9)}


def test_a_copy_that_was_not_made_is_planned_again() -> None:
    engine = FakeEngine(40, token_budget=64)
    parent = engine.add(TEXT[:10], new_tokens=3)
    engine.step()
    child = engine.scheduler.fork(parent, engine.request(3))
    table = list(child.block_table)
    plan = engine.scheduler.schedule()
    assert len(plan.copies) == 2
    engine.scheduler.cancel(plan)
    assert child.block_table == parent.block_table == table
    engine.scheduler.check_invariants()
    engine.run()
    assert engine.said[1] == engine.said[2] == alone(TEXT[:10], 3)


@pytest.mark.parametrize("accepted", [0, 1, 2, 3, 5])
def test_refused_drafts_leave_no_trace(accepted: int) -> None:
    """Drafts join the text, are computed in one row, and the refused ones go with their blocks."""
    engine = FakeEngine(40, token_budget=64)
    sequence = engine.add(TEXT[:10], new_tokens=12)
    engine.step()
    right = alone(TEXT[:10], 12)
    for token in right[1 : 1 + accepted] + [39 - right[1 + accepted]] * (5 - accepted):
        sequence.append(token)
    plan = engine.scheduler.schedule()
    assert shape(plan) == [(1, 10, 6, True)]
    engine.model.execute(engine.model.launch(plan))
    engine.model.in_flight.clear()
    engine.scheduler.commit(plan)
    engine.scheduler.roll_back(sequence, 11 + accepted)
    sequence.cut(11 + accepted)
    engine.scheduler.check_invariants()
    assert len(sequence.block_table) == engine.pool.blocks_for(11 + accepted)
    sequence.append(right[1 + accepted])
    engine.run()
    assert engine.said == {1: right}


def test_rolled_back_blocks_that_others_need_stay_as_they_are() -> None:
    engine = FakeEngine(40, token_budget=64)
    first = engine.add(TEXT[:13], new_tokens=6)
    engine.step()
    second = engine.add(TEXT[:14], new_tokens=6)
    engine.step()
    assert second.reused == 12
    engine.scheduler.roll_back(first, 6)
    plan = engine.step()
    assert [source for source, _ in plan.copies] == [second.block_table[1]]
    engine.run()
    assert engine.said == {1: alone(TEXT[:13], 6), 2: alone(TEXT[:14], 6)}


def test_who_is_in_a_step_is_neither_forked_nor_rolled_back() -> None:
    engine = FakeEngine(40)
    sequence = engine.add(TEXT[:6])
    engine.plan()
    with pytest.raises(AssertionError, match="in a step"):
        engine.scheduler.fork(sequence, engine.request(1))
    with pytest.raises(AssertionError, match="in a step"):
        engine.scheduler.roll_back(sequence, 0)
