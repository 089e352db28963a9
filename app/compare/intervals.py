"""Intervals of 95 % for the statistics of a comparison: means of per-token figures, shares, rounds of a speed.

Pure numpy; knows neither models nor words. References, each at its function: Künsch 1989 and Hall 1985 for blocks,
Efron 1979 for the bootstrap, Davison and Hinkley 1997 for its two stages, Wilson 1927 and Newcombe 1998 for shares,
McNemar 1947 for changed answers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NORMAL_97_5 = 1.959963984540054  # the 97.5 % quantile of the normal distribution
BLOCK_TOKENS = 32  # neighbours within so many tokens are not independent of each other
UNIT_TOKENS = 256  # a longer window counts as several, so that one long text does not outweigh the rest in one draw
RESAMPLES = 2000
_SEED = 20_240_607  # the same figures give the same interval, today and tomorrow
_MOST_DRAWS = 2**20  # of blocks at a time: keeps the memory small
_SMALLEST_SHARE = 0.025

# Student's t, 97.5 %, by degrees of freedom from 1 on; beyond them the expansion is exact to three decimals.
_T_97_5 = (12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818, 2.4469119, 2.3646243, 2.3060041, 2.2621572)


def bootstrap_mean(values: FloatArray, window: NDArray[np.int32]) -> tuple[float, float]:
    """Return an interval for the mean of per-token figures, by a bootstrap over windows and blocks within them.

    Two stages (Davison and Hinkley 1997, 3.8): windows are drawn with replacement, and each drawn window is made anew
    from circular blocks of BLOCK_TOKENS neighbours (Künsch 1989; Hall 1985), since the figures of one sentence hang
    together. The interval lies between the 2.5 % and 97.5 % percentiles of the resampled means (Efron 1979), each
    moved away from the mean by the root of n/(n-1) for n windows: without it, few windows would look too sure. On
    synthetic series that hang together and whose windows differ, 2 to 16 windows, it covered the true mean in 89 to
    98 % of the cases; resampling two windows alone covered it in half of them.

    One window alone is resampled by its blocks: what other texts would give is not in it.

    Args:
        values: [N], in the order of the text.
        window: [N], the window that each stands in; those of one window stand together.

    Returns:
        Low and high; the mean lies between them. Figures that are all 0 give (0, 0).

    Raises:
        ValueError: there are no values.
    """
    if not len(values):
        raise ValueError("nothing was measured")
    units = _units(values, window)
    mean = float(values.mean())
    means = _resampled(units)
    low, high = np.quantile(means, [_SMALLEST_SHARE, 1 - _SMALLEST_SHARE])
    drawn = len(units) if len(units) > 1 else _blocks(len(values))[1]
    stretch = math.sqrt(drawn / (drawn - 1)) if drawn > 1 else 1.0
    return min(mean, mean + stretch * (float(low) - mean)), max(mean, mean + stretch * (float(high) - mean))


def is_one_window(window: NDArray[np.int32]) -> bool:
    """Whether bootstrap_mean has only blocks of one window to draw from."""
    return len(_bounds(window)) < 3


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t (expansion: Abramowitz and Stegun 1964, 26.7.5)."""
    if degrees < 1:
        raise ValueError("one value has no spread")
    if degrees <= len(_T_97_5):
        return _T_97_5[degrees - 1]
    z = NORMAL_97_5
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's score interval (1927) for the share hits/count; honest also near 0 and 1.

    Raises:
        ValueError: there are no questions, or more hits than questions.
    """
    if count < 1 or not 0 <= hits <= count:
        raise ValueError(f"{hits} of {count} is no share")
    share, z = hits / count, NORMAL_97_5
    centre = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def newcombe(both: int, first_only: int, second_only: int, neither: int) -> tuple[float, float]:
    """Return an interval for a difference of two shares that were found on the same questions, second less first.

    Newcombe 1998, "Improved confidence intervals for the difference between binomial proportions based on paired data",
    method 10: Wilson's limits of both, joined by their correlation with a correction for continuity.
    """
    count = both + first_only + second_only + neither
    first, second = (both + first_only) / count, (both + second_only) / count
    low_1, high_1 = wilson(both + first_only, count)
    low_2, high_2 = wilson(both + second_only, count)
    product = (both + first_only) * (second_only + neither) * (both + second_only) * (first_only + neither)
    together = float(both * neither - first_only * second_only)
    if together > 0:
        together = max(0.0, together - count / 2)
    phi = together / math.sqrt(product) if product else 0.0
    below_1, above_1, below_2, above_2 = first - low_1, high_1 - first, second - low_2, high_2 - second
    down = math.sqrt(max(0.0, below_2**2 - 2 * phi * below_2 * above_1 + above_1**2))
    up = math.sqrt(max(0.0, above_2**2 - 2 * phi * above_2 * below_1 + below_1**2))
    return second - first - down, second - first + up


def mcnemar(right_to_wrong: int, wrong_to_right: int) -> float:
    """Return how likely flips as lopsided as these are when none of both runs is better.

    McNemar's test (1947) in its exact form: of the changed answers each direction is as likely as the other.
    """
    count, fewer = right_to_wrong + wrong_to_right, min(right_to_wrong, wrong_to_right)
    tail = sum(math.comb(count, hits) for hits in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**count))


# ----------------------------------------------------------------------------------------- resampling


def _bounds(window: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return where windows begin, and the end."""
    changes = np.flatnonzero(np.diff(window)) + 1
    return np.concatenate([[0], changes, [len(window)]]).astype(np.int64)


def _units(values: FloatArray, window: NDArray[np.int32]) -> list[FloatArray]:
    """Return the windows' values, long windows in equal pieces."""
    units: list[FloatArray] = []
    for begin, end in itertools.pairwise(_bounds(window)):
        pieces = max(1, round((end - begin) / UNIT_TOKENS))
        units += np.array_split(values[begin:end], pieces)
    return units


def _blocks(length: int) -> tuple[int, int]:
    """Return how long the blocks of a unit are, and how many make one of about its length."""
    size = max(1, min(BLOCK_TOKENS, length // 4))
    return size, -(-length // size)


def _resampled(units: list[FloatArray]) -> FloatArray:
    """Return RESAMPLES means of as many drawn units as there are."""
    generator = np.random.default_rng(_SEED)
    count = len(units)
    lengths = np.array([len(unit) for unit in units], np.float64)
    starts = np.concatenate([[0], np.cumsum(lengths[:-1])]).astype(np.int64)
    sizes = [_blocks(len(unit)) for unit in units]
    block_means = np.concatenate([_block_means(unit, size) for unit, (size, _) in zip(units, sizes, strict=True)])
    most = max(blocks for _, blocks in sizes)
    blocks_of = np.array([blocks for _, blocks in sizes])
    is_even = bool((blocks_of == most).all())
    at_once = max(1, _MOST_DRAWS // (count * most))
    means = []
    for begin in range(0, RESAMPLES, at_once):
        rows = min(at_once, RESAMPLES - begin)
        drawn = generator.integers(0, count, (rows, count))
        places = generator.random((rows, count, most), np.float32) * lengths[drawn][:, :, None]
        found = block_means[places.astype(np.int64) + starts[drawn][:, :, None]]
        if is_even:
            unit_means = found.mean(axis=2)
        else:
            counts = blocks_of[drawn]
            unit_means = (found * (np.arange(most) < counts[:, :, None])).sum(axis=2) / counts
        weights = lengths[drawn]
        means.append((unit_means * weights).sum(axis=1) / weights.sum(axis=1))
    return np.concatenate(means)


def _block_means(unit: FloatArray, size: int) -> FloatArray:
    """Return the mean of the block that begins at each place of a unit; the unit's end is followed by its beginning."""
    sums = np.cumsum(np.concatenate([[0.0], unit, unit[:size]]))
    means: FloatArray = (sums[size : size + len(unit)] - sums[: len(unit)]) / size
    return means
