"""What looking for 10,000 models costs: the first scan, one that knows them all, the memory, the program's calm.

The files are small, with a header as long as a real one's but for the vocabulary, and lie in the page cache. Calm is
the worst gap of a thread in the scanning process that wants to run every millisecond: a stand-in for a window's frames.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from app.models.scanner import ScanBatch, ScanSummary, scan
from app.models.sources import added_source
from tests.benchmarks.measure import Bench, Figures, percentile, tell
from tests.helpers.model_folders import many_models

_MODELS, _QUICK_MODELS = 10_000, 500
_TICK_S = 0.001
_MEMORY_EVERY_S = 0.02
_MB = 1e6


def measure(bench: Bench) -> Figures:
    """Return seconds of both scans, the child's peak RSS in MB and the gaps of the ticking thread in milliseconds."""
    return bench.child("library_scan", bench.pick(_MODELS, _QUICK_MODELS))


class _Watch:
    """Two threads beside a scan: one ticks and notes how late it is, one looks at the child's memory.

    Attributes:
        gaps_ms: from tick to tick.
        peak_mb: the most that the children of this process took.
    """

    def __init__(self) -> None:
        self.gaps_ms: list[float] = []
        self.peak_mb = 0.0
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._tick), threading.Thread(target=self._look)]

    def __enter__(self) -> _Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _tick(self) -> None:
        before_s = time.perf_counter()
        while not self._ended.is_set():
            time.sleep(_TICK_S)
            now_s = time.perf_counter()
            self.gaps_ms.append((now_s - before_s) * 1000)
            before_s = now_s

    def _look(self) -> None:
        own = psutil.Process()
        while not self._ended.wait(_MEMORY_EVERY_S):
            for child in own.children():
                try:
                    self.peak_mb = max(self.peak_mb, child.memory_info().rss / _MB)
                except psutil.Error:
                    continue


def _scan(folder: Path, known: Mapping[str, str]) -> tuple[ScanSummary, dict[str, str]]:
    """Scan a folder; returns how it went and the stamps of what was found."""
    stamps: dict[str, str] = {}

    def keep(batch: ScanBatch) -> None:
        stamps.update((model.path, model.stamp) for model in batch.models)

    return scan([added_source(folder)], known, keep), stamps


def _child(count: int) -> None:
    folder = many_models(Path(os.environ["CUTAWAY_HOME"]) / "many", count)
    with _Watch() as calm:  # what the machine does to the ticks without a scan
        time.sleep(2.0)
    with _Watch() as first_watch:
        first, stamps = _scan(folder, {})
    with _Watch() as second_watch:
        second, _stamps = _scan(folder, stamps)
    if (first.found_count, second.unchanged_count) != (count, count):
        raise RuntimeError(f"{first} {second}")
    tell(
        {
            "library_scan.models": float(count),
            "library_scan.first_s": first.seconds,
            "library_scan.again_s": second.seconds,
            "library_scan.child_peak_mb": max(first_watch.peak_mb, second_watch.peak_mb),
            "library_scan.gap_worst_ms": max(first_watch.gaps_ms + second_watch.gaps_ms),
            "library_scan.gap_p99_ms": percentile(first_watch.gaps_ms + second_watch.gaps_ms, 99),
            "library_scan.calm_gap_worst_ms": max(calm.gaps_ms),
            "library_scan.calm_gap_p99_ms": percentile(calm.gaps_ms, 99),
        }
    )


if __name__ == "__main__":
    import sys

    _child(int(sys.argv[1]))
