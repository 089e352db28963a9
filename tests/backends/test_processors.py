"""The engine takes what it may use and not more."""

from __future__ import annotations

import os
from types import SimpleNamespace

import psutil
import pytest

from backends.processors import SpareThreads, physical_cores


@pytest.mark.parametrize(
    ("physical", "allowed", "expected"), [(8, 16, 8), (8, 2, 2), (None, 4, 4), (1, 1, 1), (4, 4, 4)]
)
def test_the_smaller_of_what_there_is_and_what_is_allowed(monkeypatch, physical, allowed, expected):
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: physical)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(allowed)), raising=False)
    assert physical_cores() == expected


def test_a_system_that_does_not_tell_what_is_allowed(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None)
    assert physical_cores() == 1


class _Machine:
    """Processor times that a test sets; the clock too."""

    def __init__(self, monkeypatch, processors: int) -> None:
        self.now_s = self.busy_s = self.own_s = 0.0
        monkeypatch.setattr(os, "cpu_count", lambda: processors)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)), raising=False)
        monkeypatch.setattr("backends.processors.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("backends.processors.time.process_time", lambda: self.own_s)
        monkeypatch.setattr(psutil, "cpu_times", lambda: SimpleNamespace(user=self.busy_s, system=0.0, idle=9.0))

    def pass_time(self, others: float, own: float, seconds: float = 0.3) -> None:
        self.now_s += seconds
        self.own_s += own * seconds
        self.busy_s += (own + others) * seconds


def test_a_thread_less_beside_a_busy_program_and_again_when_it_has_been_calm(monkeypatch):
    machine = _Machine(monkeypatch, 2)
    spare = SpareThreads(2)
    machine.pass_time(others=0.1, own=1.9)
    assert (spare.refresh(), spare.count) == (False, 2)
    machine.pass_time(others=1.0, own=1.0)
    assert (spare.refresh(), spare.count) == (True, 1)
    assert spare.others == pytest.approx(1.0)
    machine.pass_time(others=0.0, own=1.0)
    assert (spare.refresh(), spare.count) == (False, 1)
    changes = []
    for _ in range(3):
        machine.pass_time(others=0.0, own=1.0)
        changes.append(spare.refresh())
    assert (changes, spare.count) == ([False, False, True], 2)


def test_one_thread_is_left_however_busy_the_machine_is(monkeypatch):
    machine = _Machine(monkeypatch, 4)
    spare = SpareThreads(4)
    machine.pass_time(others=4.0, own=0.5)
    spare.refresh()
    assert spare.count == 1


def test_a_reading_takes_a_quarter_of_a_second(monkeypatch):
    machine = _Machine(monkeypatch, 2)
    spare = SpareThreads(2)
    machine.pass_time(others=2.0, own=0.5, seconds=0.2)
    assert (spare.refresh(), spare.count) == (False, 2)


def test_logical_processors_beside_the_physical_ones_are_room_for_others(monkeypatch):
    machine = _Machine(monkeypatch, 16)
    spare = SpareThreads(8)
    machine.pass_time(others=6.0, own=8.0)
    assert (spare.refresh(), spare.count) == (False, 8)


def test_where_only_some_processors_are_allowed_only_these_are_looked_at(monkeypatch):
    times = [SimpleNamespace(user=0.0, system=0.0) for _ in range(8)]
    now = [0.0]
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {2, 3}, raising=False)
    monkeypatch.setattr("backends.processors.time.monotonic", lambda: now[0])
    monkeypatch.setattr("backends.processors.time.process_time", lambda: 0.0)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: times)
    spare = SpareThreads(2)
    now[0] = 1.0
    times[0].user = times[5].user = 1.0
    assert not spare.refresh()
    now[0] = 2.0
    times[3].user = 1.0
    assert (spare.refresh(), spare.count) == (True, 1)


def test_the_machine_itself_can_be_read():
    spare = SpareThreads(2)
    spare.refresh()
    assert spare.others >= 0.0
