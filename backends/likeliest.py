"""The likeliest tokens of a row, without sorting the row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Values of a group. The groups' largest values bound the answer from below, where there are groups enough.
_GROUP = 16
_GROUPS_A_VALUE = 4


def likeliest(values: NDArray[np.float32], count: int) -> NDArray[np.int32]:
    """Return the indices of the largest of [V] values, largest first; of equal ones the smaller index comes first.

    Args:
        values: finite.
        count: how many; at most V.
    """
    size = len(values)
    groups = size // _GROUP
    if not 0 < count < size:
        candidates = np.arange(size if count else 0)
    else:
        tops = values
        if groups >= _GROUPS_A_VALUE * count:  # a group is a column: that maximum is taken over whole cache lines
            tops = values[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        bound = np.partition(tops, len(tops) - count)[len(tops) - count]  # at least count values reach it
        candidates = np.flatnonzero(values >= bound)
    order = np.argsort(-values[candidates], kind="stable")[:count]
    return candidates[order].astype(np.int32)
