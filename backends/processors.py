"""How many processors an engine may use, and how many other programs leave it at the moment."""

from __future__ import annotations

import os
import time
from typing import Any

import psutil

_INTERVAL_S = 0.25
_MARGIN = 0.6  # of a processor: more than this taken by others costs a thread, less than the rest of it gives one back
_CALM_READINGS = 4  # so many readings in a row must say so before a thread comes back


def physical_cores() -> int:
    """Return how many physical cores this process may use; more threads than that slow decoding down."""
    allowed = _allowed()
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


class SpareThreads:
    """How many of an engine's threads have a processor of their own while other programs work too.

    The threads of a step wait for each other several hundred times. One that shares its processor with another program
    makes all of them wait until the system gives it a turn, milliseconds each time; without it the rest is faster.
    Programs of low priority (nice) do not count: the system lets them wait.

    Attributes:
        most: the threads when nothing else works.
        count: the threads now.
        others: processors that other programs kept busy when it was read last.
    """

    def __init__(self, most: int) -> None:
        self.most = self.count = most
        self.others = 0.0
        self._calm = 0
        self._processors = os.cpu_count() or 1
        self._allowed = _allowed_processors() if _allowed() < self._processors else ()
        self._read_s = time.monotonic()
        self._busy_s, self._own_s = self._read(), time.process_time()

    def refresh(self) -> bool:
        """Read again if it is time to; return whether the count has changed."""
        now_s = time.monotonic()
        elapsed_s = now_s - self._read_s
        if elapsed_s < _INTERVAL_S:
            return False
        busy_s, own_s = self._read(), time.process_time()
        self.others = max(0.0, (busy_s - self._busy_s) - (own_s - self._own_s)) / elapsed_s
        self._read_s, self._busy_s, self._own_s = now_s, busy_s, own_s
        return self._take((len(self._allowed) or self._processors) - self.others)

    def _read(self) -> float:
        """Return the processor seconds of everybody, on the processors that this process may use."""
        if not self._allowed:
            return _busy_s(psutil.cpu_times())
        each = psutil.cpu_times(percpu=True)
        return sum(_busy_s(each[number]) for number in self._allowed if number < len(each))

    def _take(self, spare: float) -> bool:
        before = self.count
        if spare < self.count - _MARGIN:
            self.count = max(1, min(self.most, round(spare)))
            self._calm = 0
        elif spare > self.count + _MARGIN and self.count < self.most:
            self._calm += 1
            if self._calm == _CALM_READINGS:
                self.count = min(self.most, round(spare))
                self._calm = 0
        else:
            self._calm = 0
        return self.count != before


def _allowed() -> int:
    return len(_allowed_processors()) or os.cpu_count() or 1


def _allowed_processors() -> tuple[int, ...]:
    """Return the numbers of the processors that this process may use; none where the system does not tell."""
    return tuple(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ()


def _busy_s(times: Any) -> float:
    """Return the seconds that were worked, those of low priority left out; times are psutil's, other on each system."""
    return float(sum(getattr(times, name, 0.0) for name in ("user", "system", "irq", "softirq", "steal")))
