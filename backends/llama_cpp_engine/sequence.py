"""A request on its way through the context, and what two texts share. Knows integers, no llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence as Ids

from backends.sequence import BaseSequence


class Sequence(BaseSequence):
    """One request and its tokens; what is computed has its KV in the context."""

    def begin(self, reused: int, note: str) -> None:
        """Note that the first step starts, with this many tokens reused: they are computed."""
        super().begin(reused, note)
        self.computed = reused


def common_prefix_length(first: Ids[int], second: Ids[int]) -> int:
    """Return how many leading ids are equal."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    low, high = 0, shorter  # the slices compare in C, so a bisection beats a loop over ids
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
