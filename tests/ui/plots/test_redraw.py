"""The one timer: how often it draws, what it skips, and that a flood of readings costs no more than its rate."""

from __future__ import annotations

import pytest

from app.telemetry.store import TelemetryStore
from tests.helpers import live_store
from ui.plots.redraw import RedrawTimer, redraws_per_s, usable_cores


class Member:
    """Counts its redraws; has moved whenever its number is not the one drawn last."""

    def __init__(self):
        self.number, self.drawn, self.redraws, self.shown, self.due = 0, 0, 0, True, True

    def has_moved(self):
        return self.number != self.drawn

    def is_due(self):
        return self.due

    def is_shown(self):
        return self.shown

    def redraw(self):
        self.drawn = self.number
        self.redraws += 1


@pytest.fixture
def timer(qapp):
    timer = RedrawTimer(cores=2)
    yield timer
    timer.stop()


def test_few_cores_draw_half_as_often():
    assert [redraws_per_s(cores) for cores in (1, 2, 4, 5, 16)] == [5, 5, 5, 10, 10]
    assert usable_cores() >= 1


def test_the_rate_is_the_timers_interval(qapp):
    assert RedrawTimer(cores=4).interval_ms == 200
    assert RedrawTimer(cores=8).interval_ms == 100


def test_waking_draws_nothing_by_itself(timer):
    member = Member()
    timer.add(member)
    member.number = 1
    timer.wake()
    assert timer.is_active
    assert member.redraws == 0


def test_only_what_moved_and_is_seen_is_drawn(timer):
    moved, still, hidden = Member(), Member(), Member()
    for member in (moved, still, hidden):
        timer.add(member)
    moved.number = hidden.number = 1
    hidden.shown = False
    timer._on_timeout()
    assert (moved.redraws, still.redraws, hidden.redraws) == (1, 0, 0)
    assert timer.redraws == 1


def test_the_timer_stands_still_once_nothing_moves(timer, qtbot):
    member = Member()
    timer.add(member)
    member.number = 1
    qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
    assert member.redraws == 1


def test_what_is_not_due_waits_and_keeps_the_timer_going(timer):
    member = Member()
    timer.add(member)
    member.number, member.due = 1, False
    timer.wake()
    timer._on_timeout()
    assert (member.redraws, timer.is_active) == (0, True)
    member.due = True
    timer._on_timeout()
    assert member.redraws == 1
    timer.stop()


def test_what_is_removed_is_drawn_no_more(timer):
    member = Member()
    timer.add(member)
    timer.remove(member)
    timer.remove(member)
    member.number = 1
    timer._on_timeout()
    assert member.redraws == 0


def test_a_flood_of_readings_costs_one_redraw_a_timeout(timer):
    # 20,000 readings, each with its wake, between two timeouts: the member is drawn once, not 20,000 times.
    store, member = TelemetryStore(), Member()
    timer.add(member)
    for burst in range(1, 4):
        for number in range(20_000):
            live_store.memory(store, burst + number * 1e-5, 100)
            member.number = store.version
            timer.wake()
        assert member.redraws == burst - 1
        timer._on_timeout()
        assert member.redraws == burst
