"""The median of several rounds and how far they lie apart."""

from __future__ import annotations

import pytest

from app.bench.figures import spread_of


def test_the_median_is_not_moved_by_one_bad_round() -> None:
    found = spread_of([10.0, 11.0, 2.0])
    assert (found.median, found.spread) == (10.0, 0.9)
    assert found.as_json() == {"median": 10.0, "spread": 0.9, "values": [10.0, 11.0, 2.0]}


def test_a_single_round_has_no_spread_and_nought_is_no_reason_to_fail() -> None:
    assert spread_of([5.0]).spread == 0.0
    assert spread_of([0.0, 0.0]).spread == 0.0
    with pytest.raises(ValueError, match="no values"):
        spread_of([])
