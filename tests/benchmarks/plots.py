"""What the cutaway panel costs: one redraw of its plots and of its map of 5,000 KV blocks, and a flood of readings.

A redraw is drawing the newest data and painting it, synchronously; at 5 or 10 redraws a second its cost is the share of
a core that the plots take. The map is the one of Inspect, where each block has a cell of its own. The flood comes from
another thread, as readings do, while the redraw timer runs. Once more they come at an engine's pace, with five maps a
second.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from app.telemetry.store import TelemetryStore
from backends.protocol import (
    BlockMap,
    BlockOwner,
    LifeCycle,
    MemoryRead,
    MemorySplit,
    ModelLoaded,
    RequestId,
    StepDone,
    StepStats,
)
from tests.benchmarks.measure import Bench, Figures, percentile, spread, tell

_REDRAWS, _QUICK_REDRAWS = 60, 5
_FLOOD, _QUICK_FLOOD = 20_000, 2_000
_PACED, _QUICK_PACED = 3_000, 150
_MAPS, _QUICK_MAPS = 200, 10
_BLOCKS = 5000
_MAP_SIZE_PX = (1250, 330)  # a cell of its own for each of 5,000 blocks
_HISTORY_S = 60
_STEPS_PER_S, _READINGS_PER_S, _MAPS_PER_S = 150, 10, 5
_MIB = 2**20
_KV_BYTES_PER_TOKEN = 23_040


def measure(bench: Bench) -> Figures:
    """Return milliseconds for each redraw of all three plots and of the map, and gaps and costs of floods."""
    found = bench.child("plots", "redraw", bench.pick(_REDRAWS, _QUICK_REDRAWS))
    found |= bench.child("plots", "map", bench.pick(_MAPS, _QUICK_MAPS))
    found |= bench.child("plots", "map_pace", bench.pick(_PACED, _QUICK_PACED))
    return found | bench.child("plots", "flood", bench.pick(_FLOOD, _QUICK_FLOOD))


class Feed:
    """Fills a telemetry store as an engine would: 150 steps and 10 readings a second.

    Attributes:
        store: what is filled.
    """

    def __init__(self, blocks: int = 0) -> None:
        """Begin a load; an engine with blocks sends a map of them five times a second."""
        self.store = TelemetryStore()
        self._blocks = blocks
        self._time_s = 1000.0
        self._steps = 0
        self._read(LifeCycle.LOADING)
        split = MemorySplit(weights_bytes=95 * _MIB, kv_reserved_bytes=180 * _MIB, compute_bytes=97 * _MIB)
        loaded = ModelLoaded(
            backend="echo",
            model_path="m",
            context_tokens=8192,
            kv_bytes_per_token=_KV_BYTES_PER_TOKEN,
            memory=split,
            blocks=blocks,
            block_tokens=16 if blocks else 0,
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
        is_map_due = self._blocks and self._steps % (_STEPS_PER_S // _MAPS_PER_S) == 0
        block_map = self.block_map(self._steps // (_STEPS_PER_S // _MAPS_PER_S)) if is_map_due else None
        self.store.record_step(StepDone(stats, (), block_map))
        if self._steps % (_STEPS_PER_S // _READINGS_PER_S) == 0:
            self._read(LifeCycle.BUSY)

    def block_map(self, number: int) -> BlockMap:
        """Return one of a row of maps: eight sequences share 64 blocks, and each grows by a block from map to map."""
        quarter = self._blocks // 16
        states, owners = bytearray(self._blocks), []
        states[:64] = bytes([3]) * 64
        for row in range(8):
            first = 64 + row * quarter
            own = range(first, first + quarter // 2 + number % (quarter // 2))
            states[own.start : own.stop] = bytes([2]) * len(own)
            table = (*range(64), *own)
            owners.append(BlockOwner(RequestId(row + 1), table, len(table) * 16 - number % 16))
        states[-quarter:] = bytes([1]) * quarter
        return BlockMap(16, bytes(states), tuple(owners))

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


def _map(count: int) -> None:
    """Draw a row of maps at full size: of each the change only, then every cell as after a new size."""
    from PySide6.QtWidgets import QApplication

    from ui.plots.block_canvas import BlockCanvas
    from ui.plots.block_map import BlockMap as MapWidget
    from ui.plots.redraw import RedrawTimer
    from ui.theme import ThemeSwitch

    feed = Feed(_BLOCKS)
    app = QApplication(["cutaway"])
    timer = RedrawTimer()
    shown = MapWidget(feed.store, timer, BlockCanvas(_MAP_SIZE_PX[1], grows=True))
    theme = ThemeSwitch(app, "dark").theme
    shown.set_theme(theme)
    shown.resize(_MAP_SIZE_PX[0], _MAP_SIZE_PX[1] + 70)
    shown.show()
    app.processEvents()
    timer.stop()
    shown.redraw()
    assert shown.canvas.grid is not None
    assert shown.canvas.grid.per_cell == 1
    changed_ms, whole_ms, cells = [], [], []
    for number in range(count):
        stats = StepStats(step=number, ended_s=2000.0 + number, duration_s=0.01)
        feed.store.record_step(StepDone(stats, (), feed.block_map(number)))
        drawn, began_s = shown.canvas.cells_drawn, time.perf_counter()
        shown.redraw()
        app.processEvents()  # paints what changed
        changed_ms.append((time.perf_counter() - began_s) * 1000)
        cells.append(shown.canvas.cells_drawn - drawn)
    for _number in range(count):
        began_s = time.perf_counter()
        shown.canvas.set_theme(theme)
        shown.canvas.repaint()
        whole_ms.append((time.perf_counter() - began_s) * 1000)
    tell(
        {
            "plots.map_median_ms": statistics.median(changed_ms),
            "plots.map_p99_ms": percentile(changed_ms, 99),
            "plots.map_whole_median_ms": statistics.median(whole_ms),
            "plots.map_cells_changed": statistics.median(cells),
        }
    )


def _flood(count: int) -> None:
    _run_flood(count, Feed(), "plots.flood", 0.0)


def _map_pace(count: int) -> None:
    _run_flood(count, Feed(_BLOCKS), "plots.map_pace", 1 / _STEPS_PER_S)


def _run_flood(count: int, feed: Feed, key: str, pause_s: float) -> None:
    from PySide6.QtCore import QTimer

    from tests.benchmarks.window import GapTimer

    for _number in range(_HISTORY_S * _STEPS_PER_S):
        feed.step()
    app, _panel_shown, timer = _panel(feed.store)
    gaps = GapTimer(app)
    took_s: list[float] = []

    def flood() -> None:
        began_s = time.perf_counter()
        for _number in range(count):
            feed.step()
            if pause_s:
                time.sleep(pause_s)
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
    found = {f"{key}_gap_{name}_ms": value for name, value in spread(gaps_ms).items()}
    found[f"{key}_redraws"] = float(timer.redraws - drawn)
    timer.stop()
    tell(found | {f"{key}_us_a_step": took_s[0] / count * 1e6, f"{key}_steps": float(count)})


if __name__ == "__main__":
    import sys

    {"redraw": _redraw, "map": _map, "flood": _flood, "map_pace": _map_pace}[sys.argv[1]](int(sys.argv[2]))
