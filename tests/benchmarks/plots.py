"""What the cutaway panel costs: one redraw of its three plots with a minute of readings, and a flood of readings.

A redraw is drawing the newest data and painting it, synchronously; at 5 or 10 redraws a second its cost is the share of
a core that the plots take. The flood comes from another thread, as readings do, while the redraw timer runs.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from app.telemetry.store import TelemetryStore
from backends.protocol import LifeCycle, MemoryRead, MemorySplit, ModelLoaded, StepDone, StepStats
from tests.benchmarks.measure import Bench, Figures, percentile, spread, tell

_REDRAWS, _QUICK_REDRAWS = 60, 5
_FLOOD, _QUICK_FLOOD = 20_000, 2_000
_HISTORY_S = 60
_STEPS_PER_S, _READINGS_PER_S = 150, 10
_MIB = 2**20
_KV_BYTES_PER_TOKEN = 23_040


def measure(bench: Bench) -> Figures:
    """Return milliseconds for each redraw of all three plots, and gaps and costs of a flood."""
    found = bench.child("plots", "redraw", bench.pick(_REDRAWS, _QUICK_REDRAWS))
    return found | bench.child("plots", "flood", bench.pick(_FLOOD, _QUICK_FLOOD))


class Feed:
    """Fills a telemetry store as an engine would: 150 steps and 10 readings a second.

    Attributes:
        store: what is filled.
    """

    def __init__(self) -> None:
        self.store = TelemetryStore()
        self._time_s = 1000.0
        self._steps = 0
        self._read(LifeCycle.LOADING)
        split = MemorySplit(weights_bytes=95 * _MIB, kv_reserved_bytes=180 * _MIB, compute_bytes=97 * _MIB)
        loaded = ModelLoaded(
            backend="echo", model_path="m", context_tokens=8192, kv_bytes_per_token=_KV_BYTES_PER_TOKEN, memory=split
        )
        self.store.model_loaded(loaded)

    def step(self) -> None:
        """Record the next step, and a reading with every fifteenth."""
        self._steps += 1
        self._time_s += 1 / _STEPS_PER_S
        tokens = self._steps % 8000
        stats = StepStats(
            step=self._steps,
            ended_s=self._time_s,
            duration_s=1 / _STEPS_PER_S,
            decode_tokens=1,
            running=1,
            kv_used_tokens=tokens,
            kv_used_bytes=tokens * _KV_BYTES_PER_TOKEN,
        )
        self.store.record_step(StepDone(stats))
        if self._steps % (_STEPS_PER_S // _READINGS_PER_S) == 0:
            self._read(LifeCycle.BUSY)

    def _read(self, state: LifeCycle) -> None:
        held = 412 * _MIB + self._steps % 97 * 4096
        self.store.record_memory(MemoryRead(read_s=self._time_s, anonymous_bytes=held, state=state))


def _panel(store: TelemetryStore) -> tuple[Any, Any, Any]:
    """Return the application, the panel on screen at its usual size, and its redraw timer."""
    from PySide6.QtWidgets import QApplication

    from ui.panels.cutaway_panel import CutawayPanel
    from ui.plots.redraw import RedrawTimer
    from ui.theme import ThemeSwitch

    app = QApplication(["cutaway"])
    timer = RedrawTimer()
    panel = CutawayPanel(store, timer)
    panel.set_theme(ThemeSwitch(app, "dark").theme)
    panel.resize(panel.width(), 880)
    panel.set_folded(False)
    panel.show()
    deadline_s = time.monotonic() + 10
    while not panel.windowHandle().isExposed() and time.monotonic() < deadline_s:
        app.processEvents()
    app.processEvents()
    return app, panel, timer


def _redraw(redraws: int) -> None:
    feed = Feed()
    for _number in range(_HISTORY_S * _STEPS_PER_S):
        feed.step()
    app, panel, timer = _panel(feed.store)
    timer.stop()
    drawn_ms, painted_ms = [], []
    for _number in range(redraws):
        for _step in range(_STEPS_PER_S // 5):
            feed.step()
        began_s = time.perf_counter()
        for plot in panel.plots:
            assert plot.is_shown()
            assert plot.has_moved()
            plot.redraw()
        drawn_s = time.perf_counter()
        for plot in panel.plots:
            plot.repaint()
            plot._plot.viewport().repaint()
        ended_s = time.perf_counter()
        drawn_ms.append((drawn_s - began_s) * 1000)
        painted_ms.append((ended_s - began_s) * 1000)
        app.processEvents()
        timer.stop()
    tell(
        {
            "plots.redraw_median_ms": statistics.median(painted_ms),
            "plots.redraw_p99_ms": percentile(painted_ms, 99),
            "plots.redraw_unpainted_median_ms": statistics.median(drawn_ms),
        }
    )


def _flood(count: int) -> None:
    from PySide6.QtCore import QTimer

    from tests.benchmarks.window import GapTimer

    feed = Feed()
    for _number in range(_HISTORY_S * _STEPS_PER_S):
        feed.step()
    app, _panel_shown, timer = _panel(feed.store)
    gaps = GapTimer(app)
    took_s: list[float] = []

    def flood() -> None:
        began_s = time.perf_counter()
        for _number in range(count):
            feed.step()
        took_s.append(time.perf_counter() - began_s)

    writer = threading.Thread(target=flood)
    wake = QTimer(app)
    wake.setInterval(100)  # ten readings a second wake the redraw, however many steps there are
    wake.timeout.connect(timer.wake)
    wake.timeout.connect(lambda: None if writer.is_alive() else app.quit())
    drawn = timer.redraws
    gaps.start()
    wake.start()
    QTimer.singleShot(0, writer.start)
    app.exec()
    gaps_ms = gaps.take()
    writer.join()
    found = {f"plots.flood_gap_{name}_ms": value for name, value in spread(gaps_ms).items()}
    found["plots.flood_redraws"] = float(timer.redraws - drawn)
    timer.stop()
    tell(found | {"plots.flood_us_a_step": took_s[0] / count * 1e6, "plots.flood_steps": float(count)})


if __name__ == "__main__":
    import sys

    {"redraw": _redraw, "flood": _flood}[sys.argv[1]](int(sys.argv[2]))
