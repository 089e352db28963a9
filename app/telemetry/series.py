"""Readings over time in flat memory: a numpy ring, and a ring with a day of condensed history behind it.

Knows neither what a column means nor who reads it, and holds no lock: its owner does (see store.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TIME = "time_s"

# Ten minutes at ten readings a second are kept as they came.
RECENT_ROWS = 6000
# Older ones are condensed: one row for ten seconds, which is finer than a pixel of a day's plot.
CONDENSED_S = 10.0
CONDENSED_ROWS = int(24 * 3600 / CONDENSED_S)


class Series:
    """A ring of readings: a time in seconds and a fixed set of float64 columns.

    Each row is stored twice, `capacity` apart, so that any run of the newest rows is one slice: appending costs a
    constant time and reading copies nothing.

    Attributes:
        fields: the names of the columns beside the time.
        version: grows with every reading that was taken.
        dropped: readings refused because their time was older than the last one's, or no number.
    """

    def __init__(self, capacity: int, fields: tuple[str, ...], slot_s: float = 0.0) -> None:
        """Store the shape; with `slot_s`, the readings of one slot of time share a row and the last one stays."""
        if capacity < 1:
            raise ValueError("a series needs room for at least one reading")
        self.fields = fields
        self.version = 0
        self.dropped = 0
        self._capacity = capacity
        self._slot_s = slot_s
        self._columns: FloatArray = np.empty((1 + len(fields), 2 * capacity))
        self._next = 0  # where the next row goes, below capacity
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def memory_bytes(self) -> int:
        """What the ring takes; it never grows."""
        return int(self._columns.nbytes)

    @property
    def last_s(self) -> float:
        """The time of the newest reading; minus infinity when there is none."""
        return float(self._columns[0, self._index(-1)]) if self._count else -math.inf

    @property
    def first_s(self) -> float:
        """The time of the oldest reading still held; infinity when there is none."""
        return float(self._columns[0, self._index(0)]) if self._count else math.inf

    def append(self, time_s: float, values: Sequence[float]) -> bool:
        """Take a reading; False when it is dropped since time may not run backwards."""
        if len(values) != len(self.fields):
            raise ValueError(f"{len(self.fields)} values are expected, not {len(values)}")
        last_s = self.last_s
        if not last_s <= time_s < math.inf:
            self.dropped += 1
            return False
        if self._count and self._is_same_slot(last_s, time_s):
            self._back_up(1)
        self._columns[0, self._next] = time_s
        self._columns[1:, self._next] = values
        self._columns[:, self._next + self._capacity] = self._columns[:, self._next]
        self._next = (self._next + 1) % self._capacity
        self._count = min(self._count + 1, self._capacity)
        self.version += 1
        return True

    def view(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return the readings from since_s on, oldest first, by column name.

        The arrays are slices of the ring: they hold until the next append and must be copied to be kept.
        """
        end = self._next + self._capacity if self._next < self._count else self._next
        begin = end - self._count
        begin += int(np.searchsorted(self._columns[0, begin:end], since_s))
        return {name: self._columns[row, begin:end] for row, name in enumerate((TIME, *self.fields))}

    def forget_since(self, time_s: float) -> None:
        """Drop the readings from time_s on."""
        self._back_up(len(self.view(time_s)[TIME]))
        self.version += 1

    def _index(self, row: int) -> int:
        oldest = self._next - self._count
        return (oldest + (row % self._count)) % self._capacity

    def _back_up(self, rows: int) -> None:
        self._next = (self._next - rows) % self._capacity
        self._count -= rows

    def _is_same_slot(self, last_s: float, time_s: float) -> bool:
        return self._slot_s > 0 and math.floor(last_s / self._slot_s) == math.floor(time_s / self._slot_s)


class TieredSeries:
    """A series with a day of history: the last minutes as they came, before them minimum, maximum and mean.

    Attributes:
        fields: the names of the columns beside the time.
    """

    def __init__(self, fields: tuple[str, ...], slot_s: float = 0.0, recent_rows: int = RECENT_ROWS) -> None:
        self.fields = fields
        self._recent = Series(recent_rows, fields, slot_s)
        condensed = tuple(f"{field}_{kind}" for kind in ("min", "max", "mean") for field in fields)
        self._condensed = Series(CONDENSED_ROWS, condensed)
        self._open = _OpenSpan(len(fields))

    @property
    def version(self) -> int:
        """Grows with every reading that was taken."""
        return self._recent.version

    @property
    def dropped(self) -> int:
        """Readings refused because their time was older than the last one's."""
        return self._recent.dropped

    @property
    def last_s(self) -> float:
        """The time of the newest reading; minus infinity when there is none."""
        return self._recent.last_s

    @property
    def memory_bytes(self) -> int:
        """What both rings take; it never grows."""
        return self._recent.memory_bytes + self._condensed.memory_bytes

    def append(self, time_s: float, values: Sequence[float]) -> bool:
        """Take a reading; False when it is dropped since time may not run backwards."""
        if not self._recent.append(time_s, values):
            return False
        if not self._open.covers(time_s):
            self._close_span()
        self._open.add(time_s, values)
        return True

    def view(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return copies of the readings from since_s on, oldest first; means where only the history is left."""
        recent = self._recent.view(since_s)
        if since_s >= self._recent.first_s or not len(self._condensed):
            return {name: column.copy() for name, column in recent.items()}
        history = self._condensed.view(since_s)
        rows = int(np.searchsorted(history[TIME], self._recent.first_s))
        joined = {TIME: np.concatenate((history[TIME][:rows], recent[TIME]))}
        for field in self.fields:
            joined[field] = np.concatenate((history[f"{field}_mean"][:rows], recent[field]))
        return joined

    def condensed(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return copies of the condensed rows: the time of each one's last reading, then NAME_min, _max, _mean."""
        return {name: column.copy() for name, column in self._condensed.view(since_s).items()}

    def highest(self, field: str) -> float:
        """Return the largest value still known of a column, also where only the history is left; NaN if none."""
        columns = (self._recent.view()[field], self._condensed.view()[f"{field}_max"])
        found = [float(np.nanmax(column)) for column in columns if not np.isnan(column).all()]
        return max(found, default=math.nan)

    def forget_since(self, time_s: float) -> None:
        """Drop the readings from time_s on, and every condensed row that holds one of them."""
        self._recent.forget_since(time_s)
        self._condensed.forget_since(time_s)
        self._open = _OpenSpan(len(self.fields))

    def _close_span(self) -> None:
        if self._open.count:
            self._condensed.append(self._open.last_s, self._open.row())
        self._open = _OpenSpan(len(self.fields))


class _OpenSpan:
    """The condensed row that is being filled; values that are no number are left out of it.

    Attributes:
        count: readings taken.
        last_s: the time of the last one.
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self.last_s = 0.0
        self._lowest = [math.inf] * columns
        self._highest = [-math.inf] * columns
        self._sums = [0.0] * columns
        self._known = [0] * columns

    def covers(self, time_s: float) -> bool:
        """Say whether this time belongs to the span; every time does before the first reading."""
        return not self.count or math.floor(self.last_s / CONDENSED_S) == math.floor(time_s / CONDENSED_S)

    def add(self, time_s: float, values: Sequence[float]) -> None:
        """Take a reading."""
        self.count += 1
        self.last_s = time_s
        # A plain loop: for a dozen values it is faster than numpy's calls.
        for column, value in enumerate(values):
            if not math.isnan(value):
                self._known[column] += 1
                self._sums[column] += value
                self._lowest[column] = min(self._lowest[column], value)
                self._highest[column] = max(self._highest[column], value)

    def row(self) -> list[float]:
        """Return the minima, maxima and means; NaN for a column without a number."""
        known = list(enumerate(self._known))
        lowest = [self._lowest[column] if count else math.nan for column, count in known]
        highest = [self._highest[column] if count else math.nan for column, count in known]
        means = [self._sums[column] / count if count else math.nan for column, count in known]
        return [*lowest, *highest, *means]
