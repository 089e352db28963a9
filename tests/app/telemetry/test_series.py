"""The ring against the plainest thing that could hold readings: a list."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from app.telemetry import series
from app.telemetry.series import TIME, Series, TieredSeries


def test_readings_come_back_in_order():
    ring = Series(4, ("a", "b"))
    for time_s in range(3):
        assert ring.append(time_s, (time_s * 10, time_s * 100))
    view = ring.view()
    assert list(view) == [TIME, "a", "b"]
    assert view[TIME].tolist() == [0, 1, 2]
    assert view["b"].tolist() == [0, 100, 200]


def test_a_full_ring_forgets_the_oldest():
    ring = Series(3, ("a",))
    for time_s in range(8):
        ring.append(time_s, (time_s,))
    assert ring.view()[TIME].tolist() == [5, 6, 7]
    assert len(ring) == 3
    assert (ring.first_s, ring.last_s) == (5, 7)


def test_a_view_copies_nothing_and_begins_where_asked():
    ring = Series(5, ("a",))
    for time_s in range(7):
        ring.append(time_s, (time_s,))
    view = ring.view(since_s=4.5)
    assert view["a"].tolist() == [5, 6]
    assert view["a"].base is not None
    assert ring.view(since_s=99)["a"].tolist() == []


def test_the_ring_equals_a_list_at_every_length():
    # The plain twin: a list cut to its last rows, for every capacity and with random steps back in time.
    chance = random.Random(5)
    for capacity in range(1, 7):
        ring, plain, dropped = Series(capacity, ("a",)), [], 0
        for number in range(40):
            time_s = number + chance.choice((0, 0, 0, -3))
            if plain and time_s < plain[-1][0]:
                dropped += 1
            else:
                plain.append((time_s, number))
            ring.append(time_s, (number,))
            view = ring.view()
            assert list(zip(view[TIME], view["a"], strict=True)) == plain[-capacity:]
        assert ring.dropped == dropped > 0
        assert ring.version == len(plain)


def test_time_never_runs_backwards():
    ring = Series(4, ("a",))
    ring.append(2.0, (1,))
    assert not ring.append(1.9, (2,))
    assert not ring.append(math.nan, (2,))
    assert not ring.append(math.inf, (2,))
    assert ring.append(2.0, (3,))
    assert (ring.dropped, ring.version) == (3, 2)
    assert ring.view()["a"].tolist() == [1, 3]


def test_readings_of_one_slot_share_a_row():
    ring = Series(10, ("a",), slot_s=0.1)
    for time_s in (0.01, 0.02, 0.09, 0.11, 0.35, 0.36):
        ring.append(time_s, (time_s,))
    assert ring.view()[TIME].tolist() == [0.09, 0.11, 0.36]
    assert ring.version == 6


def test_a_burst_cannot_push_the_history_out():
    ring = Series(5, ("a",), slot_s=0.1)
    ring.append(0.0, (1,))
    for number in range(20_000):
        ring.append(1.0 + number * 1e-6, (number,))
    assert ring.view()["a"].tolist() == [1, 19_999]


def test_readings_can_be_forgotten_from_a_time_on():
    ring = Series(4, ("a",))
    for time_s in range(6):
        ring.append(time_s, (time_s,))
    ring.forget_since(4)
    assert ring.view()["a"].tolist() == [2, 3]
    ring.append(3.5, (9,))
    assert ring.view()["a"].tolist() == [2, 3, 9]
    ring.forget_since(-1)
    assert (len(ring), ring.last_s, ring.first_s) == (0, -math.inf, math.inf)


def test_a_wrong_number_of_values_is_refused():
    with pytest.raises(ValueError):
        Series(4, ("a",)).append(0, (1, 2))
    with pytest.raises(ValueError):
        Series(0, ("a",))


def test_old_readings_leave_minimum_maximum_and_mean():
    tiers = TieredSeries(("a",), recent_rows=10)
    for number in range(40):
        tiers.append(float(number), (number % 10,))
    condensed = tiers.condensed()
    assert condensed[TIME].tolist() == [9, 19, 29]
    assert condensed["a_min"].tolist() == [0, 0, 0]
    assert condensed["a_max"].tolist() == [9, 9, 9]
    assert condensed["a_mean"].tolist() == [4.5, 4.5, 4.5]


def test_a_view_joins_history_and_recent_readings_without_overlap():
    tiers = TieredSeries(("a",), recent_rows=10)
    for number in range(40):
        tiers.append(float(number), (number,))
    view = tiers.view()
    assert view[TIME].tolist() == [9, 19, 29, *range(30, 40)]
    assert view["a"].tolist() == [4.5, 14.5, 24.5, *range(30, 40)]
    assert tiers.view(35)[TIME].tolist() == [35, 36, 37, 38, 39]
    assert tiers.view(15)[TIME].tolist() == [19, 29, *range(30, 40)]


def test_a_view_of_tiers_is_a_copy():
    tiers = TieredSeries(("a",))
    tiers.append(0.0, (1,))
    view = tiers.view()
    view["a"][0] = 99
    assert tiers.view()["a"].tolist() == [1]


def test_values_that_are_no_number_are_left_out_of_the_history():
    tiers = TieredSeries(("a", "b"))
    tiers.append(1.0, (math.nan, math.nan))
    tiers.append(2.0, (4, math.nan))
    tiers.append(11.0, (5, 5))
    condensed = tiers.condensed()
    assert condensed["a_mean"].tolist() == [4]
    assert np.isnan(condensed["b_min"]).all()


def test_the_highest_value_survives_in_the_history():
    tiers = TieredSeries(("a",), recent_rows=2)
    assert math.isnan(tiers.highest("a"))
    for number in range(30):
        tiers.append(float(number), (1000 if number == 3 else 1,))
    assert tiers.highest("a") == 1000


def test_forgetting_reaches_both_tiers():
    tiers = TieredSeries(("a",), recent_rows=4)
    for number in range(40):
        tiers.append(float(number), (number,))
    tiers.forget_since(19)
    assert tiers.view()[TIME].tolist() == [9]
    assert tiers.last_s == -math.inf


def test_a_day_of_readings_takes_flat_memory(monkeypatch):
    # A day is 864,000 readings at ten a second; fewer of them, with shorter spans, turn the rings over as often.
    monkeypatch.setattr(series, "CONDENSED_S", 1.0)
    tiers = TieredSeries(("a",), recent_rows=60)
    before = tiers.memory_bytes
    for number in range(9000):
        tiers.append(float(number), (number,))
    assert tiers.memory_bytes == before
    view = tiers.view()
    # All closed spans, the newest 59 of them as they came, and the one that is still open.
    assert len(view[TIME]) == series.CONDENSED_ROWS + 1
    assert (np.diff(view[TIME]) > 0).all()
