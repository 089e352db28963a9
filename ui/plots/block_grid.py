"""Where the blocks of a map are drawn and as what: cells in rows, and a small number for each kind of cell.

Plain numpy; knows no widget and no colour. All lengths are in the screen's own pixels, so that cells are sharp at
every scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.telemetry.block_map import BlockState, BlockView
from backends.protocol import RequestId

# A cell with its gap, before scaling: as large as there is room for. Below the smallest, a cell stands for several.
LARGEST_STEP_PX: Final = 14
SMALLEST_STEP_PX: Final = 6

# Fillings that are told apart, the whole one included.
LEVELS: Final = 8
# Lightnesses that sequences are told apart by.
TINTS: Final = 3

FREE_KIND: Final = 0
KEPT_KIND: Final = 1
_USED_KIND: Final = 2
_SHARED_KIND: Final = _USED_KIND + TINTS * LEVELS
# Added for a cell of the sequence under the cursor.
MARKED: Final = _SHARED_KIND + LEVELS
NUM_KINDS: Final = 2 * MARKED

Kinds = NDArray[np.uint8]


def used_kind(tint: int, level: int = LEVELS) -> int:
    """Return the kind of a cell that one sequence uses, filled to level / LEVELS."""
    return _USED_KIND + tint * LEVELS + level - 1


def shared_kind(level: int = LEVELS) -> int:
    """Return the kind of a cell that several sequences use, filled to level / LEVELS."""
    return _SHARED_KIND + level - 1


def look_of(kind: int) -> tuple[BlockState, int, int]:
    """Return what a kind, marked or not, shows: state, tint and level."""
    kind %= MARKED
    if kind in (FREE_KIND, KEPT_KIND):
        return BlockState(kind), 0, LEVELS
    if kind >= _SHARED_KIND:
        return BlockState.SHARED, 0, kind - _SHARED_KIND + 1
    tint, level = divmod(kind - _USED_KIND, LEVELS)
    return BlockState.USED, tint, level + 1


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """Rows of square cells, filled from the left and the top.

    Attributes:
        num_blocks: blocks that are shown.
        per_cell: blocks that a cell stands for.
        columns: cells of a row.
        step_px: a cell with its gap.
    """

    num_blocks: int
    per_cell: int
    columns: int
    step_px: int

    @property
    def num_cells(self) -> int:
        """How many cells there are."""
        return -(-self.num_blocks // self.per_cell)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-self.num_cells // self.columns)

    def cell_at(self, x_px: float, y_px: float) -> int:
        """Return the cell at a place; -1 where there is none."""
        column, row = int(x_px // self.step_px), int(y_px // self.step_px)
        cell = row * self.columns + column
        return cell if 0 <= column < self.columns and row >= 0 and cell < self.num_cells else -1

    def place_of(self, cell: int) -> tuple[int, int]:
        """Return where a cell begins, from the left and from the top."""
        row, column = divmod(cell, self.columns)
        return column * self.step_px, row * self.step_px

    def blocks_of(self, cell: int) -> range:
        """Return the blocks that a cell stands for."""
        first = cell * self.per_cell
        return range(first, min(first + self.per_cell, self.num_blocks))


def fit_grid(num_blocks: int, width_px: int, height_px: int, scale: float) -> BlockGrid:
    """Return the grid with the largest cells that fit; cells stand for several blocks where even small ones do not.

    Args:
        num_blocks: at least 1.
        width_px: room from left to right.
        height_px: room from top to bottom.
        scale: of the screen.
    """
    for step in range(LARGEST_STEP_PX, SMALLEST_STEP_PX - 1, -1):
        step_px = max(2, round(step * scale))
        columns, rows = max(1, width_px // step_px), max(1, height_px // step_px)
        if columns * rows >= num_blocks:
            return BlockGrid(num_blocks, 1, columns, step_px)
    return BlockGrid(num_blocks, -(-num_blocks // (columns * rows)), columns, step_px)


def next_tints(tints: Mapping[RequestId, int], view: BlockView) -> dict[RequestId, int]:
    """Return a tint for each request of a view: the one it had, else the one that fewest others have."""
    found = {owner.request_id: tints[owner.request_id] for owner in view.owners if owner.request_id in tints}
    for owner in view.owners:
        if owner.request_id not in found:
            taken = list(found.values())
            found[owner.request_id] = min(range(TINTS), key=taken.count)
    return found


def owners_of(view: BlockView, block: int) -> frozenset[int]:
    """Return the indices in view.owners of those whose tables name a block."""
    if not 0 <= block < view.num_blocks or not view.users[block]:
        return frozenset()
    return frozenset(number for number, owner in enumerate(view.owners) if block in owner.blocks)


def cell_kinds(view: BlockView, grid: BlockGrid, tints: Mapping[RequestId, int], marked: frozenset[int]) -> Kinds:
    """Return the kind of every cell, [cells].

    Args:
        view: what is in the blocks.
        grid: how many of them a cell stands for.
        tints: of each request, from 0 to TINTS - 1.
        marked: indices in view.owners of the sequences under the cursor.
    """
    owner_tints = np.array([tints.get(owner.request_id, 0) for owner in view.owners] or [0], np.int64)
    in_use = view.states >= BlockState.USED
    tint = owner_tints[np.maximum(view.holders, 0)]
    if grid.per_cell == 1:
        places, level_of = view.filled, view.block_tokens
        is_kept, is_shared, tint_of_cell = view.states == BlockState.KEPT, view.states == BlockState.SHARED, tint
        is_used = in_use
    else:
        used = _cells(in_use, grid)
        places, level_of = used.sum(axis=1, dtype=np.int64), used.shape[1]
        is_used = places > 0
        is_kept = _cells(view.states == BlockState.KEPT, grid).any(axis=1)
        is_shared = _cells(view.states == BlockState.SHARED, grid).any(axis=1)
        first = used.argmax(axis=1)  # the first block in use gives the cell its tint
        tint_of_cell = _cells(tint, grid)[np.arange(len(used)), first]
    # What is begun shows, and only what is full looks full.
    level = np.clip(np.where(places >= level_of, LEVELS, places * LEVELS // level_of), 1, LEVELS)
    kinds = np.where(is_kept, KEPT_KIND, FREE_KIND)
    kinds = np.where(is_used, np.where(is_shared, _SHARED_KIND, _USED_KIND + tint_of_cell * LEVELS) + level - 1, kinds)
    if marked:
        kinds = kinds + MARKED * _cells(_is_of(view, marked), grid).any(axis=1)
    return kinds.astype(np.uint8)


def _is_of(view: BlockView, owners: frozenset[int]) -> NDArray[np.bool_]:
    """Return which blocks are in the tables of these owners, [N]."""
    found = np.zeros(view.num_blocks, np.bool_)
    for number in owners:
        blocks = np.array(view.owners[number].blocks, np.int64)
        found[blocks[(blocks >= 0) & (blocks < view.num_blocks)]] = True
    return found


def _cells(values: NDArray[np.generic], grid: BlockGrid) -> NDArray[np.generic]:
    """Return the values of blocks by cell, [cells, per_cell]; zeros stand for what the last cell lacks."""
    missing = grid.num_cells * grid.per_cell - len(values)
    return np.pad(values, (0, missing)).reshape(grid.num_cells, grid.per_cell)
