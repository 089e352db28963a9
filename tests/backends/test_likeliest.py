"""The likeliest tokens against a full sort."""

from __future__ import annotations

import numpy as np
import pytest

from backends.likeliest import likeliest


def by_sorting(values: np.ndarray, count: int) -> list[int]:
    return sorted(range(len(values)), key=lambda token: (-values[token], token))[:count]


@pytest.mark.parametrize("size", [1, 2, 17, 64, 1000, 4097])
def test_they_are_those_of_a_full_sort_and_equal_ones_keep_their_order(size) -> None:
    random = np.random.default_rng(size)
    for spread in (1, 5, 1000):  # with few different values most are equal
        values = random.integers(0, spread, size).astype(np.float32)
        for count in sorted({0, 1, 2, min(5, size), size // 2, size - 1, size}):
            assert likeliest(values, count).tolist() == by_sorting(values, count)


def test_the_largest_may_stand_behind_the_last_whole_group() -> None:
    values = np.zeros(1003, dtype=np.float32)
    values[[1002, 3]] = 2, 1
    assert likeliest(values, 3).tolist() == [1002, 3, 0]
