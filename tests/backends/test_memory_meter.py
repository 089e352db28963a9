"""The worker's heartbeat reads the system's own counts."""

from __future__ import annotations

from pathlib import Path

from backends import memory_meter
from backends.memory_meter import MemoryMeter, StepClock, parse_status, read_process_memory
from backends.protocol import LifeCycle
from tests.helpers.engine_client import EventLog

STATUS = (
    "Name:\tpython\nVmRSS:\t  3000 kB\nRssAnon:\t  1000 kB\nRssFile:\t  1900 kB\nRssShmem:\t  100 kB\nVmSwap:\t  7 kB\n"
)


def test_the_status_file_is_split_by_what_backs_the_memory() -> None:
    memory = parse_status(STATUS)
    assert (memory.anonymous_bytes, memory.file_bytes, memory.swap_bytes) == (1000 * 1024, 2000 * 1024, 7 * 1024)


def test_a_status_file_without_a_field_counts_it_as_nothing() -> None:
    assert parse_status("Name:\tx\n").anonymous_bytes == 0


def test_memory_that_is_taken_shows_in_the_next_reading() -> None:
    before = read_process_memory().anonymous_bytes
    block = bytearray(64 * 1024 * 1024)
    block[::4096] = b"x" * len(block[::4096])
    grown = read_process_memory().anonymous_bytes - before
    assert 60 * 1024 * 1024 < grown < 90 * 1024 * 1024


def test_without_proc_the_resident_size_is_read_from_the_system(monkeypatch) -> None:
    monkeypatch.setattr(memory_meter, "_STATUS", Path("/nonexistent"))
    assert read_process_memory().anonymous_bytes > 1024 * 1024


def test_the_age_of_a_step_is_zero_when_none_is_in_progress() -> None:
    clock = StepClock()
    assert clock.age_s == 0.0
    clock.begin()
    assert clock.age_s > 0.0
    clock.end()
    assert clock.age_s == 0.0


def test_the_meter_offers_readings_until_it_is_stopped() -> None:
    log, clock = EventLog(), StepClock()
    clock.state = LifeCycle.BUSY
    meter = MemoryMeter(clock, log.add)
    meter.start()
    reading = log.wait(object, count=3)
    meter.stop()
    assert reading.state is LifeCycle.BUSY
    assert reading.anonymous_bytes > 0
    times = [event.read_s for event in log.events]
    assert times == sorted(times)
