"""Where cells lie and what they stand for, without a widget."""

from __future__ import annotations

import numpy as np
import pytest

from app.telemetry.block_map import BlockState, logical_view
from backends.protocol import BlockMap, BlockOwner, RequestId
from tests.helpers.block_maps import FREE, KEPT, MAP, SHARED, USED, large_map, view_of
from ui.plots import block_grid
from ui.plots.block_grid import FREE_KIND, KEPT_KIND, LEVELS, MARKED, BlockGrid, cell_kinds, fit_grid

NOBODY = frozenset()
ROW = BlockGrid(8, 1, 8, 10)


@pytest.mark.parametrize("blocks", [1, 8, 96, 512, 3000, 20_000])
@pytest.mark.parametrize("room", [(340, 126), (620, 170), (60, 20)])
@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0, 3.0])
def test_every_block_has_a_cell_inside_the_room(blocks, room, scale):
    width, height = int(room[0] * scale), int(room[1] * scale)
    grid = fit_grid(blocks, width, height, scale)
    assert grid.columns * grid.step_px <= width
    assert grid.rows * grid.step_px <= height
    assert [block for cell in range(grid.num_cells) for block in grid.blocks_of(cell)] == list(range(blocks))
    assert grid.step_px >= block_grid.SMALLEST_STEP_PX * scale * 0.9


def test_cells_are_as_large_as_there_is_room_for():
    assert fit_grid(100, 340, 126, 1.0) == BlockGrid(100, 1, 24, 14)
    assert fit_grid(512, 340, 126, 1.0) == BlockGrid(512, 1, 37, 9)
    assert fit_grid(512, 680, 252, 2.0) == BlockGrid(512, 1, 37, 18)
    # 56 columns and 21 rows of the smallest cells are 1,176: each stands for 18 of 20,000 blocks.
    assert fit_grid(20_000, 340, 126, 1.0) == BlockGrid(20_000, 18, 56, 6)


def test_a_place_is_a_cell_and_a_cell_a_place():
    grid = BlockGrid(10, 1, 4, 9)
    for cell in range(10):
        left, top = grid.place_of(cell)
        assert grid.cell_at(left + 4, top + 4) == cell
    for nowhere in ((-1, 0), (0, -1), (36, 0), (18, 18), (0, 27)):
        assert grid.cell_at(*nowhere) == -1


def test_kinds_say_state_tint_and_filling():
    kinds = cell_kinds(view_of(), ROW, {RequestId(7): 0, RequestId(9): 1}, NOBODY)
    looks = [block_grid.look_of(int(kind)) for kind in kinds]
    assert [look[0] for look in looks] == [SHARED, SHARED, USED, USED, FREE, KEPT, FREE, FREE]
    # 5 of 16 places are 2 of 8 levels, 8 are 4.
    assert looks[2] == (USED, 0, 2)
    assert looks[3] == (USED, 1, 4)
    assert kinds[4] == FREE_KIND
    assert kinds[5] == KEPT_KIND


def test_a_block_that_is_begun_shows_and_only_a_full_one_looks_full():
    for tokens, level in ((1, 1), (15, 7), (16, LEVELS)):
        view = view_of(BlockMap(16, bytes([USED]), (BlockOwner(RequestId(1), (0,), tokens),)))
        kinds = cell_kinds(view, BlockGrid(1, 1, 1, 10), {}, NOBODY)
        assert block_grid.look_of(int(kinds[0])) == (BlockState.USED, 0, level)


def test_kinds_are_one_number_each():
    kinds = [block_grid.used_kind(tint, level) for tint in range(3) for level in range(1, LEVELS + 1)]
    kinds += [block_grid.shared_kind(level) for level in range(1, LEVELS + 1)] + [FREE_KIND, KEPT_KIND]
    assert len(set(kinds)) == len(kinds)
    assert max(kinds) + 1 == MARKED == block_grid.NUM_KINDS / 2
    assert all(block_grid.look_of(kind) == block_grid.look_of(kind + MARKED) for kind in kinds)


def test_the_blocks_of_a_sequence_are_marked_shared_ones_too():
    kinds = cell_kinds(view_of(), ROW, {}, frozenset({1}))
    assert (kinds >= MARKED).tolist() == [True, True, False, True, False, False, False, False]
    assert block_grid.owners_of(view_of(), 0) == {0, 1}
    assert block_grid.owners_of(view_of(), 3) == {1}
    for block in (-1, 4, 5, 99):
        assert block_grid.owners_of(view_of(), block) == NOBODY


def test_a_cell_of_several_blocks_is_filled_by_those_in_use():
    # Cells of three blocks: shared shared used | used free kept | free free.
    grid = BlockGrid(8, 3, 3, 6)
    looks = [block_grid.look_of(int(kind)) for kind in cell_kinds(view_of(), grid, {RequestId(9): 2}, NOBODY)]
    assert looks == [(SHARED, 0, LEVELS), (USED, 2, 2), (FREE, 0, LEVELS)]
    kept = view_of(BlockMap(16, bytes([FREE, KEPT, FREE])))
    assert cell_kinds(kept, BlockGrid(3, 3, 1, 6), {}, NOBODY).tolist() == [KEPT_KIND]


def test_many_cells_agree_with_one_block_a_cell():
    # The plain twin: counts over cells of 7 blocks against a loop over the blocks.
    view = view_of(large_map(5000))
    grid = fit_grid(5000, 170, 126, 1.0)
    assert grid.per_cell > 1
    kinds = cell_kinds(view, grid, {}, NOBODY)
    for cell in range(grid.num_cells):
        states = [int(view.states[block]) for block in grid.blocks_of(cell)]
        used = sum(state >= USED for state in states)
        state, _tint, level = block_grid.look_of(int(kinds[cell]))
        assert (state in (USED, SHARED)) == (used > 0)
        assert (state == SHARED) == (SHARED in states)
        assert (state == KEPT) == (used == 0 and KEPT in states)
        assert level == (min(LEVELS, max(1, used * LEVELS // grid.per_cell)) if used else LEVELS)


def test_a_logical_map_has_kinds_too():
    kinds = cell_kinds(logical_view(100, 20, "llama.cpp", is_busy=True), BlockGrid(7, 1, 7, 10), {}, NOBODY)
    assert [block_grid.look_of(int(kind))[0] for kind in kinds] == [USED, USED, *[FREE] * 5]
    empty = cell_kinds(view_of(BlockMap(16, bytes(3))), BlockGrid(3, 1, 3, 10), {}, NOBODY)
    assert np.all(empty == FREE_KIND)


def test_a_request_keeps_its_tint_and_a_new_one_takes_the_rarest():
    def owners(*ids):
        return view_of(BlockMap(16, b"", tuple(BlockOwner(RequestId(number)) for number in ids)))

    tints = block_grid.next_tints({}, owners(1, 2, 3))
    assert tints == {1: 0, 2: 1, 3: 2}
    tints = block_grid.next_tints(tints, owners(3, 2, 8))
    assert tints == {3: 2, 2: 1, 8: 0}
    assert block_grid.next_tints(tints, owners(*range(10, 16))) == {10: 0, 11: 1, 12: 2, 13: 0, 14: 1, 15: 2}
    assert MAP.owners
