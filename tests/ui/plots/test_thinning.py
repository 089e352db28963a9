"""Cutting readings to pixels loses no peak; axes end and count in round numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ui.plots import thinning


def array(*values):
    return np.array(values, dtype=float)


def test_few_readings_stay_as_they_are():
    times = np.linspace(0, 10, 50)
    assert thinning.pixel_starts(times, 0, 10, 50).tolist() == list(range(50))


def test_many_readings_become_one_run_a_pixel():
    times = np.arange(0, 10, 0.01)
    starts = thinning.pixel_starts(times, 0, 10, 10)
    assert starts.tolist() == list(range(0, 1000, 100))


def test_no_peak_is_lost_to_thinning():
    times, values = np.arange(0, 10, 0.01), np.zeros(1000)
    values[437], values[438] = 99.0, -7.0
    starts = thinning.pixel_starts(times, 0, 10, 20)
    assert thinning.highest_each(values, starts).max() == 99
    shown_times, shown = thinning.line_points(times, values, starts)
    assert (shown.max(), shown.min()) == (99, -7)
    assert len(shown) == 40
    assert (np.diff(shown_times) >= 0).all()


def test_a_thin_line_is_left_alone():
    times, values = array(0, 1, 2), array(3, 4, 5)
    shown = thinning.line_points(times, values, np.arange(3))
    assert (shown[0].tolist(), shown[1].tolist()) == ([0, 1, 2], [3, 4, 5])
    assert thinning.highest_each(values, np.arange(3)).tolist() == [3, 4, 5]


def test_a_level_stretch_becomes_its_two_ends():
    times = np.arange(6, dtype=float)
    shown = thinning.simplified(times, array(5, 5.01, 4.99, 5, 9, 9), 0.5)
    assert shown[0].tolist() == [0, 3, 4, 5]
    assert shown[1].tolist() == [5, 5, 9, 9]
    assert thinning.simplified(array(1), array(2), 1)[0].tolist() == [1]
    assert thinning.simplified(array(), array(), 1)[0].tolist() == []


def test_a_stepped_line_holds_until_the_next_reading():
    times, values = thinning.stepped(array(0, 5), array(1, 2))
    assert times.tolist() == [0, 5, 5]
    assert values.tolist() == [1, 1, 2]


def test_restarts_part_the_readings():
    times = array(0, 1, 2, 5, 6)
    assert thinning.segments(times, (5.0,)) == [slice(0, 3), slice(3, 5)]
    assert thinning.segments(times, (3.0, 4.0)) == [slice(0, 3), slice(3, 5)]
    assert thinning.segments(array(), (3.0,)) == []


def test_the_reading_in_force_is_the_last_one_before():
    times = array(1, 2, 3)
    assert [thinning.index_at(times, time_s) for time_s in (0.5, 1, 2.5, 9)] == [None, 0, 1, 2]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (float("nan"), 1), (1, 1), (412, 500), (151, 200), (9.2, 10), (0.011, 0.012), (10, 10)]
)
def test_an_axis_ends_at_a_round_number(value, top):
    assert thinning.ceiling(value) == pytest.approx(top)


def test_values_are_counted_in_round_steps():
    assert thinning.value_ticks(500, 5) == [0, 100, 200, 300, 400, 500]
    assert thinning.value_ticks(200, 3) == [0, 100, 200]
    assert thinning.value_ticks(1.2, 3) == pytest.approx([0, 0.5, 1.0])


def test_times_are_counted_as_people_do():
    assert thinning.time_ticks(0, 60, 6) == [0, 10, 20, 30, 40, 50, 60]
    assert thinning.time_ticks(61.5, 121.5, 3) == [80, 100, 120]
    assert thinning.time_ticks(0, 600, 5) == [0, 120, 240, 360, 480, 600]
    assert thinning.time_ticks(0, 30 * 86400, 5) == [0, 691200, 1382400, 2073600]
