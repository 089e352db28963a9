"""Tokens per second, from steps whose times are known exactly."""

from __future__ import annotations

import pytest

from app.telemetry.speed import WritingSpeed
from backends.protocol import StepStats


def step(ended_s, duration_s=0.1, prefill=0, decode=1, running=1):
    return StepStats(
        step=0, ended_s=ended_s, duration_s=duration_s, prefill_tokens=prefill, decode_tokens=decode, running=running
    )


def feed(speed, *steps):
    return [speed.add(stats.ended_s, stats) for stats in steps]


def test_even_steps_give_their_rate():
    rates = feed(WritingSpeed(), *(step(1 + number * 0.1) for number in range(20)))
    assert rates == pytest.approx([10.0] * 20)


def test_only_the_last_half_second_counts():
    speed = WritingSpeed()
    feed(speed, *(step(1 + number * 0.1) for number in range(10)))
    rates = feed(speed, *(step(1.9 + (number + 1) * 0.05, 0.05) for number in range(12)))
    assert rates[-1] == pytest.approx(20.0)
    assert 10 < rates[3] < 20


def test_a_step_longer_than_the_window_gives_its_own_rate():
    assert feed(WritingSpeed(), step(2, 2.0), step(4, 2.0)) == [0.5, 0.5]


def test_a_pause_is_not_part_of_the_speed():
    rates = feed(WritingSpeed(), step(1), step(1.1), step(1.5), step(1.6))
    assert rates == pytest.approx([10, 10, 10, 10])


def test_reading_is_never_part_of_writing():
    rates = feed(WritingSpeed(), step(1), step(1.05, 0.05, prefill=512, decode=1), step(1.15))
    assert rates[1] is None
    assert (rates[0], rates[2]) == pytest.approx((10, 10))


def test_sequences_that_write_beside_a_reading_one_count():
    assert feed(WritingSpeed(), step(1, 0.5, prefill=512, decode=3, running=4)) == [6.0]


def test_several_tokens_of_one_step_all_count():
    assert feed(WritingSpeed(), step(1, 0.1, decode=4)) == pytest.approx([40])


def test_a_step_without_tokens_or_length_has_no_speed():
    assert feed(WritingSpeed(), step(1, decode=0), step(1, 0.0), step(1, -1.0)) == [None, None, None]
