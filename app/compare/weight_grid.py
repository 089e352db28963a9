"""Whether the weights of a matrix lie on the coarse grid of a quantization. Pure numpy; knows no file.

Two signs. Few values: over 99 % of the blocks of 32 weights hold at most 16 distinct ones; types of up to 4 bits leave
it, whatever the shape of their grid. An even grid: within a block all weights are whole multiples of one step, from
zero or from the smallest; 5, 6 and 8 bits leave it. Rounding to 16 bits afterwards blurs the second sign a little.
Measured on normal, Laplace, Student and uniform weights in 32 and 16 bits: a block holds 29 to 32 distinct values, and
one of a hundred lies nearer than 0.13 steps to the best grid that is tried; dequantized ones lie within 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 32
FEW_VALUES = 16
FEW_SHARE = 0.99

# How far from whole multiples weights lie on average, in steps: 0.25 by chance, 0 on a grid. What rounding to 16 bits
# adds grows with the multiple, so only small multiples are looked at.
NEAR_STEPS = 0.1
EVEN_SHARE = 0.9
_SMALL_MULTIPLE = 24
_LEAST_BLOCKS = 64
_LEAST_ROWS = 32

Rows = npt.NDArray[np.float32]
Share = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """What grid the weights lie on.

    Attributes:
        bits: about how many a weight had; 0 for no grid.
        is_few_values: whether it was told by the number of values, not by their distances.
    """

    bits: int
    is_few_values: bool = False


def grid_of(rows: Rows) -> Grid | None:
    """Return the grid that whole rows of a matrix lie on; None where that cannot be told.

    Blocks of one value say nothing, nor do weights that are not all finite.

    Args:
        rows: [R, C], C a multiple of 32.
    """
    if not np.isfinite(rows).all():
        return None
    blocks = rows.reshape(-1, BLOCK)
    ordered = np.sort(blocks, axis=1)
    blocks = blocks[ordered[:, 0] < ordered[:, -1]]
    if len(blocks) < _LEAST_BLOCKS:
        return None
    distinct = distinct_values(blocks)
    if np.mean(distinct <= FEW_VALUES) > FEW_SHARE:
        return Grid(bits=max(1, int(np.ceil(np.log2(np.quantile(distinct, 0.9))))), is_few_values=True)
    for bits, near in (
        (5, _from_smallest(blocks, range(16, 32))),
        (6, _from_zero(blocks.reshape(-1, 16), range(24, 33))),
        (8, _from_zero(blocks, (127,))),
        (8, _from_zero(rows[np.ptp(rows, axis=1) > 0], (127,))),
    ):
        if len(near) >= _LEAST_ROWS and np.mean(near < NEAR_STEPS) > EVEN_SHARE:
            return Grid(bits=bits)
    return Grid(bits=0)


def distinct_values(blocks: Rows) -> npt.NDArray[np.int64]:
    """Return how many values each block holds; [N, 32] to [N]."""
    ordered = np.sort(blocks, axis=1)
    return np.asarray(1 + np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1), np.int64)


def _from_zero(blocks: Rows, largest: Sequence[int]) -> Share:
    """Return how near each block lies to multiples of a step; its largest weight is one of these multiples of it."""
    peaks = np.abs(blocks).max(axis=1, keepdims=True)
    return _best(blocks, peaks, largest)


def _from_smallest(blocks: Rows, largest: Sequence[int]) -> Share:
    """Return the same for steps that are counted from the block's smallest weight."""
    lowest = blocks.min(axis=1, keepdims=True)
    return _best(blocks - lowest, np.ptp(blocks, axis=1, keepdims=True), largest)


def _best(values: Rows, peaks: Rows, largest: Sequence[int]) -> Share:
    """Return the mean distance from whole multiples, of the best step; 0.25 where too few multiples are small."""
    best = np.full(len(values), 0.25)
    for count in largest:
        steps = values / peaks * count
        whole = np.rint(steps)
        size = np.abs(whole)
        small = (size > 0) & (size <= _SMALL_MULTIPLE)
        distance = np.abs(steps - whole) * small
        counted = small.sum(axis=1)
        mean = distance.sum(axis=1) / np.maximum(counted, 1)
        best = np.minimum(best, np.where(counted >= 4, mean, 0.25))
    return best
