"""Who computes what in the next step, into which blocks, and who has to wait."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.torch_engine.block_pool import BlockPool
from backends.torch_engine.scheduler import Scheduler, StepPlan
from backends.torch_engine.sequence import Sequence
from tests.helpers.fake_model import FakeEngine, alone

TEXT = list(range(10, 34))  # six blocks of four


def shape(plan: StepPlan) -> list[tuple[int, int, int, bool]]:
    return [(row.sequence.request.request_id, row.past, row.count, row.wants_logits) for row in plan.rows]


def test_a_scheduler_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room"):
        Scheduler(BlockPool(4), token_budget=0, max_sequences=1, context_tokens=1)


def test_a_long_prompt_is_read_in_pieces_and_then_written_on() -> None:
    engine = FakeEngine(20, token_budget=10)
    engine.add(TEXT, new_tokens=2)
    assert shape(engine.step()) == [(1, 0, 10, False)]
    assert shape(engine.step()) == [(1, 10, 10, False)]
    assert shape(engine.step()) == [(1, 20, 4, True)]
    assert shape(engine.step()) == [(1, 24, 1, True)]
    assert shape(engine.step()) == []
    assert engine.said == {1: alone(TEXT, 2)}


def test_who_writes_goes_before_who_reads() -> None:
    engine = FakeEngine(20, token_budget=8)
    engine.add([1, 2], new_tokens=9)
    engine.step()
    engine.add(TEXT)
    engine.add([3, 4])
    assert shape(engine.step()) == [(1, 2, 1, True), (2, 0, 7, False)]
    assert shape(engine.step()) == [(1, 3, 1, True), (2, 7, 7, False)]


def test_the_budget_never_keeps_a_running_sequence_from_its_one_token() -> None:
    engine = FakeEngine(20, token_budget=1, max_sequences=4)
    for number in range(4):
        engine.add([number], new_tokens=3)
    assert len(engine.step().rows) == 4
    assert len(engine.step().rows) == 4


def test_higher_priority_comes_first_then_who_came_first() -> None:
    engine = FakeEngine(40, token_budget=12, max_sequences=2)
    for priority in (0, 0, 7):
        engine.add(TEXT[:8], priority=priority)
    assert [row[0] for row in shape(engine.step())] == [3, 1]
    assert [sequence.request.request_id for sequence in engine.scheduler.waiting] == [2]


def test_a_higher_priority_takes_the_place_of_a_lower_one() -> None:
    engine = FakeEngine(40, max_sequences=1)
    low = engine.add(TEXT[:8], new_tokens=6)
    engine.step()
    engine.add(TEXT[:4], new_tokens=2, priority=1)
    plan = engine.step()
    assert (shape(plan), plan.preempted) == ([(2, 0, 4, True)], (low,))
    assert not low.is_running
    engine.run()
    assert low.preemptions == 1
    assert engine.said == {1: alone(TEXT[:8], 6), 2: alone(TEXT[:4], 2)}


def test_borrowed_blocks_make_the_last_wait_and_what_is_said_stays_the_same() -> None:
    """Five blocks are free beside both; for eight, the last in the order makes room and the first does not."""
    engine = FakeEngine(12)
    first = engine.add(TEXT[:8], new_tokens=6)
    last = engine.add(TEXT[8:24], new_tokens=4)
    engine.step()
    held = engine.scheduler.borrow(20)
    assert len(held) == 5
    assert not set(held) & set(first.block_table)
    engine.scheduler.pool.release(held)
    engine.scheduler.check_invariants()
    held = engine.scheduler.borrow(30)
    assert (len(held), first.is_running, last.is_running, last.preemptions) == (8, True, False, 1)
    engine.scheduler.pool.release(held)
    engine.scheduler.check_invariants()
    engine.run()
    assert engine.said == {1: alone(TEXT[:8], 6), 2: alone(TEXT[8:24], 4)}


def test_borrowing_all_makes_everybody_wait() -> None:
    engine = FakeEngine(8)
    engine.add(TEXT[:8], new_tokens=3)
    engine.step()
    held = engine.scheduler.borrow(32)
    assert len(held) == 8
    assert not engine.scheduler.running
    engine.scheduler.pool.release(held, keep=False)
    engine.run()
    assert engine.said == {1: alone(TEXT[:8], 3)}


def test_nobody_is_displaced_when_that_would_not_help() -> None:
    engine = FakeEngine(6, max_sequences=4)
    engine.add(TEXT[:12], new_tokens=2, priority=3)
    engine.add(TEXT[12:16], new_tokens=2)
    engine.step()
    engine.add([1] * 20, priority=1)
    assert engine.step().preempted == ()
    engine.run()
    assert engine.preempted == 0
    assert len(engine.said) == 3


def test_only_as_many_are_displaced_as_it_takes() -> None:
    engine = FakeEngine(40, token_budget=64, max_sequences=2)
    first, second = engine.add(TEXT[:8]), engine.add(TEXT[8:16])
    engine.step()
    third = engine.add([1], priority=1)
    assert engine.step().preempted == (second,)
    assert engine.scheduler.running == [third, first]
    engine.run()
    assert len(engine.said) == 3


def test_shared_blocks_are_no_gain_when_one_of_their_users_is_displaced() -> None:
    engine = FakeEngine(7, token_budget=64)
    engine.add(TEXT[:13], priority=3, new_tokens=3)
    engine.step()
    sharing = engine.add(TEXT[:14], new_tokens=3)
    engine.step()
    assert sharing.reused == 12
    engine.add([1] * 16, new_tokens=1, priority=1)  # needs four blocks; two are free, one is the other's alone
    assert engine.step().preempted == ()
    engine.run()
    assert len(engine.said) == 3


def test_nobody_overtakes_the_one_who_was_displaced() -> None:
    engine = FakeEngine(6, token_budget=64)
    low = engine.add(TEXT[:18], new_tokens=2)
    engine.step()
    small = engine.add([1], new_tokens=1)
    engine.add([2] * 8, new_tokens=1, priority=1)
    plan = engine.step()
    assert (shape(plan), plan.preempted) == ([(3, 0, 8, True)], (low,))
    assert engine.scheduler.waiting == [low, small]
    engine.run()
    assert engine.said[1] == alone(TEXT[:18], 2)


def test_nobody_loses_blocks_while_others_are_about_to_come_back() -> None:
    engine = FakeEngine(6, token_budget=64)
    first, second, third = (engine.add(TEXT[4 * n : 4 * n + 4], new_tokens=9) for n in range(3))
    engine.step()
    engine.plan()
    engine.scheduler.remove(second)
    for _ in range(5):
        first.append(1)  # as drafts would
    assert engine.pool.available == 0
    assert engine.plan().preempted == ()
    assert third.is_running
    engine.scheduler.remove(first)
    engine.run()
    assert engine.said == {3: alone(TEXT[8:12], 9)}


def test_nobody_starves_while_a_step_in_flight_holds_a_block() -> None:
    engine = FakeEngine(3, token_budget=64)
    scheduler = engine.scheduler
    parent = engine.add(TEXT[:6])
    scheduler.commit(scheduler.schedule())
    child = scheduler.fork(parent, engine.request(9))
    child.append(1)
    plan = scheduler.schedule()
    assert plan.copies == ((1, 2),)
    scheduler.remove(parent)
    assert (engine.pool.available, engine.pool.resting) == (0, 0)
    for token in (2, 3, 4):
        child.append(token)
    assert scheduler.schedule().rows == ()
    assert scheduler.starved == []
    scheduler.commit(plan)
    assert [(row.past, row.count) for row in scheduler.schedule().rows] == [(7, 3)]
    scheduler.check_invariants()


def test_blocks_that_run_out_are_taken_from_the_youngest_of_the_lowest_priority() -> None:
    engine = FakeEngine(9, token_budget=64)
    first, second, third = (engine.add(TEXT[8 * n : 8 * n + 8], 12, priority=p) for n, p in enumerate((0, 1, 0)))
    while not (plan := engine.step()).preempted:
        pass
    assert plan.preempted == (third,)
    assert third.preemptions == 1
    assert engine.scheduler.running == [second, first]
    engine.run()
    assert engine.said == {n + 1: alone(TEXT[8 * n : 8 * n + 8], 12) for n in range(3)}
    assert third.figures(0).preemptions >= 1


def test_who_was_preempted_waits_in_front_and_reuses_what_is_left() -> None:
    engine = FakeEngine(7, token_budget=64, max_sequences=2)
    engine.add(TEXT[:12], new_tokens=9)
    second = engine.add(TEXT[12:20], new_tokens=12)
    third = engine.add([1, 2], new_tokens=1)
    while not engine.step().preempted:
        pass
    assert engine.scheduler.waiting == [second, third]
    before = engine.computed_tokens
    engine.run()
    assert engine.said[2] == alone(TEXT[12:20], 12)
    assert second.reused == 0  # what it found the second time was its own
    read_again = engine.computed_tokens - before
    assert read_again < 8 + 12 + 12


def test_places_are_limited_and_taken_in_order() -> None:
    engine = FakeEngine(40, max_sequences=2, token_budget=64)
    for number in range(3):
        engine.add([number], new_tokens=2)
    assert [row[0] for row in shape(engine.step())] == [1, 2]
    engine.step()
    assert [row[0] for row in shape(engine.step())] == [3]


def test_nobody_overtakes_a_request_that_waits_for_room() -> None:
    engine = FakeEngine(8, token_budget=64)
    engine.add(TEXT[:16], new_tokens=2)
    engine.step()
    engine.add([1] * 24, new_tokens=2)
    engine.add([1], new_tokens=2)
    assert [row[0] for row in shape(engine.step())] == [1]
    assert [row[0] for row in shape(engine.step())] == [2, 3]


def test_what_can_never_fit_is_named_and_the_others_go_on() -> None:
    engine = FakeEngine(4)
    scheduler = engine.scheduler
    assert (scheduler.fits(16), scheduler.fits(17)) == (True, False)
    large, small = engine.add(list(range(17))), engine.add([1])
    plan = scheduler.schedule()
    assert (shape(plan), scheduler.starved) == ([(2, 0, 1, True)], [large])
    scheduler.cancel(plan)
    scheduler.remove(large)
    scheduler.remove(small)


def test_what_is_longer_than_the_context_never_fits() -> None:
    scheduler = Scheduler(BlockPool(100), token_budget=8, max_sequences=1, context_tokens=20)
    assert (scheduler.fits(20), scheduler.fits(21)) == (True, False)


def test_a_sequence_that_outgrows_the_pool_alone_is_named() -> None:
    engine = FakeEngine(2, token_budget=64)
    sequence = engine.add(TEXT[:6], new_tokens=9)
    for _ in range(3):
        engine.step()
    assert engine.starved == []
    plan = engine.scheduler.schedule()
    assert (plan.rows, plan.preempted, engine.scheduler.starved) == ((), (), [sequence])
    assert len(sequence.known) == 9  # eight have KV; the last one was said and cannot be computed
    engine.scheduler.remove(sequence)
    assert engine.scheduler.schedule() == StepPlan(())
    assert engine.scheduler.starved == []


# ------------------------------------------------------------------------------------------------- reuse


def test_what_was_reused_is_told_with_the_reason() -> None:
    engine = FakeEngine(40, token_budget=64)
    cases = [
        (TEXT[:10], 0, "first"),
        (TEXT[:10], 8, ""),
        ([*TEXT[:10], 1, 2, 3], 8, "differs"),  # the answer that was kept goes another way
        ([*TEXT[:4], 1, 2, 3, 4, 5], 4, "differs"),
        ([1, 2, 3, 4, 5], 0, "differs"),
        ([1, 2], 0, ""),  # too short for a block: nothing could be reused
    ]
    for prompt, reused, note in cases:
        sequence = engine.add(prompt, new_tokens=4)
        engine.run()
        assert (sequence.reused, sequence.reuse_note) == (reused, note), prompt
        assert engine.said[sequence.request.request_id] == alone(prompt, 4)


def test_a_dialogue_reuses_its_answers_too() -> None:
    engine = FakeEngine(40, token_budget=64)
    first = engine.add(TEXT[:6], new_tokens=7)
    engine.run()
    turn = [*first.known, 1, 2, 3]
    second = engine.add(turn)
    engine.run()
    assert (second.reused, second.reuse_note) == (12, "")  # the last sampled token has no KV
    assert engine.said[2] == alone(turn, 4)
    assert second.block_table == []


def test_salts_keep_texts_apart() -> None:
    engine = FakeEngine(40, token_budget=64)
    for salt, reused in ((b"a", 0), (b"b", 0), (b"a", 8)):
        sequence = engine.add(TEXT[:12], salt=salt)
        engine.run()
        assert sequence.reused == reused


def test_clearing_forgets_everything() -> None:
    engine = FakeEngine(20)
    engine.add(TEXT[:8], new_tokens=1)
    engine.run()
    engine.add(TEXT)
    engine.scheduler.schedule()
    engine.add([1])
    engine.scheduler.clear()
    engine.scheduler.check_invariants()
    assert (engine.pool.available, engine.pool.kept) == (20, 0)
    assert engine.scheduler.schedule().rows == ()


# ------------------------------------------------------------------------------------------------ places


def test_prompts_that_come_together_begin_at_evenly_spaced_places_and_stay_in_one_run() -> None:
    engine = FakeEngine(64, token_budget=256, max_sequences=8)
    sequences = [engine.add([number, *TEXT[:9]], new_tokens=20) for number in range(8)]
    for _ in range(19):
        engine.step()
    assert [sequence.block_table for sequence in sequences] == [list(range(8 * n, 8 * n + 7)) for n in range(8)]


def test_a_chat_that_is_alone_lies_in_one_run_from_turn_to_turn() -> None:
    engine = FakeEngine(64, token_budget=256)
    known = TEXT[:7]
    for _ in range(4):
        sequence = engine.add(known, new_tokens=10)
        for _ in range(9):
            engine.step()
        assert sequence.block_table == list(range(len(sequence.block_table)))
        engine.run()
        known = [*sequence.known, 1, 2, 3, 4, 5]


# ------------------------------------------------------------------------------------------------- steps


def test_steps_are_committed_in_order_and_cancelled_the_newest_first() -> None:
    scheduler = FakeEngine(40, token_budget=4).scheduler
    request = protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("x"))
    sequence = Sequence(request, TEXT, block_tokens=4)
    scheduler.add(sequence)
    plans = [scheduler.schedule() for _ in range(3)]
    assert [plan.rows[0].past for plan in plans] == [0, 4, 8]
    scheduler.cancel(plans[2])
    assert scheduler.commit(plans[0]) == plans[0].rows
    assert (sequence.computed, sequence.scheduled) == (4, 8)
    scheduler.remove(sequence)
    assert scheduler.commit(plans[1]) == ()
    assert scheduler.commit(StepPlan(())) == ()
    scheduler.check_invariants()


def test_the_map_names_who_runs_and_a_block_its_tokens() -> None:
    engine = FakeEngine(6, token_budget=64)
    sequence = engine.add(TEXT[:6])
    engine.step()
    block_map = engine.scheduler.block_map()
    assert block_map.states == b"\2\2\0\0\0\0"
    assert block_map.owners == (protocol.BlockOwner(sequence.request.request_id, (0, 1), 6),)
    assert engine.scheduler.block_map(0).owners == ()
    assert engine.scheduler.describe(1) == ((14, 15), 1)
    engine.run()
    assert engine.scheduler.describe(0) == ((10, 11, 12, 13), 0)
