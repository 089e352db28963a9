"""Figures of several rounds as one: the median, and how far the rounds lie apart. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from app.chat.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure that was measured several times.

    Attributes:
        median: of all.
        spread: the distance of the largest from the smallest as a share of the median; 0 for a single one.
        values: each, in the order in which they were measured.
    """

    median: float
    spread: float
    values: tuple[float, ...]

    def as_json(self) -> JsonObject:
        """Return it with six digits behind the point, as JSON."""
        return {
            "median": round(self.median, 6),
            "spread": round(self.spread, 6),
            "values": [round(value, 6) for value in self.values],
        }


def spread_of(values: Sequence[float]) -> Spread:
    """Return the median of some values and how far they lie apart.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("no values")
    median = statistics.median(values)
    share = (max(values) - min(values)) / median if median > 0 else 0.0
    return Spread(median, share, tuple(values))
