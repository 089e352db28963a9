from itertools import pairwise

import pytest

from backends.torch_engine.attention_pieces import Call, plan_decode
from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import LayoutRow

PLAIN = LayerPlan(0, 4, 2, 8, 8)


def planned(*tables, lengths=None, layer=PLAIN, slots=100_000, threads=1):
    lengths = lengths or [16 * len(table) for table in tables]
    rows = [
        LayoutRow(n, 1, length - 1, tuple(table)) for n, (table, length) in enumerate(zip(tables, lengths, strict=True))
    ]
    return plan_decode(rows, layer, block_tokens=16, slots=slots, threads=threads)


def read_of(plan, row):
    """The slots that a row's answer is made of."""
    found = []
    for call in plan.calls:
        for place, (owner, length) in enumerate(zip(call.rows, call.lengths, strict=True)):
            if owner == row:
                begin = call.slot + place * call.stride
                found += range(begin, begin + length)
    for one in plan.copied:
        if one.row == row:
            found += [slot for begin, length in one.stretches for slot in range(begin, begin + length)]
    return sorted(found)


def test_one_row_in_neighbouring_blocks_is_one_call_over_a_view():
    plan = planned([4, 5, 6], lengths=[41])
    assert plan.calls == (Call((0,), 64, 0, 41, (41,)),)
    assert plan.copied == ()


def test_rows_that_begin_at_even_distances_are_one_call():
    plan = planned([20, 21], [0, 1], [10, 11], lengths=[30, 32, 25])
    assert plan.calls == (Call((1, 2, 0), 0, 160, 32, (32, 25, 30)),)
    assert plan.calls[0].is_ragged


def test_a_view_never_reaches_beyond_the_last_slot():
    plan = planned([0, 1, 2, 3], [10, 11, 12, 13], [20, 21], slots=22 * 16)
    assert all(call.slot + (len(call.rows) - 1) * call.stride + call.width <= 22 * 16 for call in plan.calls)


def test_rows_of_very_different_lengths_are_not_padded_to_the_longest():
    plan = planned(range(64), range(100, 101), range(200, 264))
    assert sum(call.width * len(call.rows) for call in plan.calls) < 1.5 * (64 + 1 + 64) * 16


def test_crumbs_and_short_rows_anywhere_are_copied_together():
    scattered = [[3, 9, 1, 30], [50, 2, 44, 20], [70, 60, 80, 90]]
    plan = planned(*scattered)
    assert plan.calls == ()
    assert [one.row for one in plan.copied] == [0, 1, 2]
    assert plan.copied[0].stretches == ((48, 16), (144, 16), (16, 16), (480, 16))
    assert plan.copied[0].length == 64


def test_a_beginning_that_rows_share_is_read_once():
    plan = planned([0, 1, 2, 3, 4, 10], [0, 1, 2, 3, 4, 20], [30])
    assert Call((0, 1), 0, 0, 80, (80, 80)) in plan.calls
    assert read_of(plan, 0) == [*range(80), *range(160, 176)]
    assert read_of(plan, 1) == [*range(80), *range(320, 336)]
    assert read_of(plan, 2) == [*range(480, 496)]


def test_a_window_reads_what_it_sees_only():
    plan = planned(range(10), lengths=[150], layer=LayerPlan(0, 4, 2, 8, 8, window=20))
    assert plan.calls == (Call((0,), 130, 0, 20, (20,)),)


def test_a_long_row_is_cut_for_idle_threads():
    plan = planned(range(256), layer=LayerPlan(0, 8, 1, 8, 8), threads=4)
    assert plan.calls == (Call((0,) * 8, 0, 512, 512, (512,) * 8),)
    assert planned(range(256), layer=LayerPlan(0, 8, 8, 8, 8), threads=4).calls[0].rows == (0,)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("layer", [PLAIN, LayerPlan(0, 4, 1, 8, 8, window=48), LayerPlan(0, 4, 1, 8, 8, chunk=64)])
def test_whatever_the_tables_every_visible_slot_is_read_exactly_once(seed, layer, pool_tables):
    tables, lengths = pool_tables(seed)
    plan = planned(*tables, lengths=lengths, layer=layer, slots=401 * 16, threads=3)
    for row, (table, length) in enumerate(zip(tables, lengths, strict=True)):
        visible = range(layer.first_visible(length - 1), length)
        assert read_of(plan, row) == sorted(table[place // 16] * 16 + place % 16 for place in visible)
    for call in plan.calls:
        assert call.slot + (len(call.rows) - 1) * call.stride + call.width <= 401 * 16
        assert call.width == max(call.lengths)
    assert len({one.row for one in plan.copied}) == len(plan.copied)
    assert all(first.row != second.row for first, second in pairwise(plan.copied))


@pytest.fixture
def pool_tables():
    """Tables as a pool in use makes them: runs, crumbs and shared beginnings."""
    import random

    def make(seed):
        generator = random.Random(seed)
        free = list(range(400))
        if seed % 2:
            generator.shuffle(free)
        shared = [free.pop() for _ in range(6)]
        tables, lengths = [], []
        for _ in range(generator.randrange(1, 12)):
            own = [
                free.pop(generator.randrange(len(free)) if seed % 3 == 0 else 0)
                for _ in range(generator.randrange(1, 24))
            ]
            table = (shared if generator.random() < 0.4 else []) + own
            tables.append(table)
            lengths.append(len(table) * 16 - generator.randrange(16))
        return tables, lengths

    return make
