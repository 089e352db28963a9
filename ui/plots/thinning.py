"""Readings cut down to what a plot's pixels can show, and the round numbers of its axes.

Plain numpy; knows no widget.
"""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.telemetry.series import FloatArray

Indices = NDArray[np.intp]

# Steps of a time axis, in seconds, that people count in.
_TIME_STEPS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600)
_ROUND: Final = (1.0, 2.0, 5.0, 10.0)
# An axis ends at one of these times a power of ten, so that it seldom jumps while a value grows.
_CEILINGS: Final = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def pixel_starts(times: FloatArray, begin_s: float, end_s: float, pixels: int) -> Indices:
    """Return where each pixel's readings begin, for `reduceat`; every reading is its own when there are few.

    Args:
        times: [T], in order.
        begin_s: time at the left edge.
        end_s: time at the right edge, after begin_s.
        pixels: width of the plot.
    """
    if len(times) <= pixels:
        return np.arange(len(times))
    pixel = np.floor((times - begin_s) * (pixels / (end_s - begin_s)))
    return np.flatnonzero(np.diff(pixel, prepend=-np.inf))


def line_points(times: FloatArray, values: FloatArray, starts: Indices) -> tuple[FloatArray, FloatArray]:
    """Return a line of at most two points a pixel: the lowest and the highest value in it, so no peak is lost."""
    if len(starts) == len(times):
        return times, values
    lowest, highest = np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)
    return np.repeat(times[starts], 2), np.column_stack((lowest, highest)).ravel()


def highest_each(values: FloatArray, starts: Indices) -> FloatArray:
    """Return the highest value of each pixel."""
    return np.fmax.reduceat(values, starts) if len(starts) < len(values) else values


def simplified(times: FloatArray, values: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Return the line without the points inside its level stretches; values are rounded to multiples of step.

    With a step of half a pixel nothing changes for the eye, and a line that stands still is two points.
    """
    rounded = np.round(values / step) * step
    is_bend = np.ones(len(times), dtype=bool)
    is_bend[1:-1] = (rounded[1:-1] != rounded[:-2]) | (rounded[1:-1] != rounded[2:])
    return times[is_bend], rounded[is_bend]


def stepped(times: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a line that holds each value until the next reading, for what does not move in between."""
    return np.repeat(times, 2)[1:], np.repeat(values, 2)[:-1]


def segments(times: FloatArray, restarts: tuple[float, ...]) -> list[slice]:
    """Return the runs of readings between restarts, those without a reading left out."""
    borders = [0, *np.searchsorted(times, restarts).tolist(), len(times)]
    return [slice(begin, end) for begin, end in itertools.pairwise(borders) if end > begin]


def index_at(times: FloatArray, time_s: float) -> int | None:
    """Return the reading in force at a time: the last one not after it; None before the first."""
    index = int(np.searchsorted(times, time_s, side="right")) - 1
    return index if index >= 0 else None


def ceiling(value: float) -> float:
    """Return a round number at or above this one, for the end of an axis; 1 for nothing."""
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _CEILINGS if step * power >= value * (1 - 1e-9))


def value_ticks(top: float, most: int) -> list[float]:
    """Return round values from 0 to top, at most this many above 0."""
    raw = top / max(1, most)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in _ROUND if factor * power >= raw * (1 - 1e-9))
    return [number * step for number in range(math.floor(top / step * (1 + 1e-9)) + 1)]


def time_ticks(begin_s: float, end_s: float, most: int) -> list[float]:
    """Return round times within a span, at most this many."""
    raw = (end_s - begin_s) / max(1, most)
    step = next((step for step in _TIME_STEPS_S if step >= raw), _TIME_STEPS_S[-1])
    while (end_s - begin_s) / step > most:
        step *= 2
    first = math.ceil(begin_s / step - 1e-9)
    return [number * step for number in range(first, math.floor(end_s / step + 1e-9) + 1)]
