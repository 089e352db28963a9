"""A speed is known after a second, follows the last five, and never promises what nobody knows."""

from __future__ import annotations

import pytest

from app.downloads.speed import SpeedMeter

MB = 1_000_000


def fed(meter, points):
    for now_s, here_bytes in points:
        meter.add(now_s, here_bytes)
    return meter


def test_nothing_is_known_at_first():
    meter = SpeedMeter()
    assert meter.bytes_per_s(10) is None
    assert meter.left_s(10, MB) is None
    fed(meter, [(0.0, 0), (0.9, 50 * MB)])
    assert meter.bytes_per_s(0.9) is None


def test_an_even_stream_has_its_speed_and_an_end():
    meter = fed(SpeedMeter(), [(step / 10, step * 10 * MB) for step in range(100)])
    assert meter.bytes_per_s(9.9) == pytest.approx(100 * MB)
    assert meter.left_s(9.9, 500 * MB) == pytest.approx(5.0)
    assert meter.left_s(9.9, 0) == 0
    assert meter.left_s(9.9, -5) == 0


def test_only_the_last_seconds_count():
    slow = [(float(second), second * MB) for second in range(60)]
    fast = [(60.0 + second, 59 * MB + second * 50 * MB) for second in range(11)]
    meter = fed(SpeedMeter(), slow + fast)
    assert meter.bytes_per_s(70.0) == pytest.approx(50 * MB)


def test_what_was_here_before_is_not_speed():
    meter = fed(SpeedMeter(), [(100.0, 40_000 * MB), (102.0, 40_010 * MB)])
    assert meter.bytes_per_s(102.0) == pytest.approx(5 * MB)


def test_a_silent_server_has_no_speed_and_no_end():
    meter = fed(SpeedMeter(), [(step / 10, step * MB) for step in range(31)])
    assert meter.bytes_per_s(6.0) == pytest.approx(30 * MB / 5, rel=0.5)
    assert meter.bytes_per_s(30.0) == 0
    assert meter.left_s(30.0, MB) is None


def test_years_are_not_promised():
    meter = fed(SpeedMeter(), [(0.0, 0), (2.0, 10)])
    assert meter.left_s(2.0, 10**12) is None


def test_fewer_bytes_begin_anew_and_a_restart_forgets():
    meter = fed(SpeedMeter(), [(0.0, 0), (2.0, 100 * MB), (3.0, 0)])
    assert meter.bytes_per_s(3.5) is None
    fed(meter, [(5.0, 20 * MB)])
    assert meter.bytes_per_s(5.0) == pytest.approx(10 * MB)
    meter.restart()
    assert meter.bytes_per_s(9.0) is None


def test_many_small_steps_take_no_memory():
    meter = fed(SpeedMeter(), [(step / 1000, step) for step in range(100_000)])
    assert len(meter._points) <= 52
