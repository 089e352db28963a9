"""Heights stacked on each other: where does the n-th begin, and which one is at this place.

Tops are summed lazily from the first changed height, so that growth at the end costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class HeightIndex:
    """A column of heights in whole pixels.

    Attributes:
        _heights: height of each entry.
        _tops: top of each entry and, last, the total; right up to and including `_num_valid`.
        _num_valid: index of the last top that is right.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tops = [0] * (len(self._heights) + 1)
        self._num_valid = 0

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        """Height of everything."""
        return self.top(len(self._heights))

    def append(self, height: int) -> None:
        """Add an entry at the end."""
        self._heights.append(height)
        self._tops.append(0)

    def set(self, index: int, height: int) -> bool:
        """Change one height; return whether it differs from before."""
        if self._heights[index] == height:
            return False
        self._heights[index] = height
        self._num_valid = min(self._num_valid, index)
        return True

    def remove(self, index: int) -> None:
        """Take one entry out."""
        del self._heights[index]
        self._tops.pop()
        self._num_valid = min(self._num_valid, index)

    def top(self, index: int) -> int:
        """Return where an entry begins; the total for the index after the last."""
        if index > self._num_valid:
            known = self._num_valid
            self._tops[known:] = accumulate(self._heights[known:], initial=self._tops[known])
            self._num_valid = len(self._heights)
        return self._tops[index]

    def find(self, y: int) -> int:
        """Return the entry at a place, the nearest one outside the column; 0 where there is none."""
        self.top(len(self._heights))
        return max(0, min(bisect_right(self._tops, y) - 1, len(self._heights) - 1))
