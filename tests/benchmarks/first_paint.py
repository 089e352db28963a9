"""How long a person waits for the window: from the start of the process to the end of its first paint.

`python -m app` is started as a person starts it, with CUTAWAY_TIMING=1, by which it tells the time itself. One start
with a probe says whether that time is honest: the window was exposed by then and each of its parts had painted.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.measure import ROOT, Bench, Figures, percentile, tell

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_WARM_STARTS, _QUICK_STARTS = 5, 2


def measure(bench: Bench) -> Figures:
    """Return the times of warm starts, of a cold one where the system lets us, and what the probe saw."""
    start_s(bench)  # makes the home, compiles, fills the page cache
    warm = [start_s(bench) for _ in range(bench.pick(_WARM_STARTS, _QUICK_STARTS))]
    found = {
        "first_paint.warm_s": percentile([own for own, _outside in warm], 50),
        "first_paint.warm_worst_s": max(own for own, _outside in warm),
        "first_paint.outside_s": percentile([outside for _own, outside in warm], 50),
    }
    if drop_caches():
        found["first_paint.cold_s"] = start_s(bench)[0]
    return found | bench.child("first_paint", home="first_paint")


def start_s(bench: Bench) -> tuple[float, float]:
    """Start the program and end it after its first paint; returns its own time and the time seen from outside."""
    began_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "app"],
        cwd=ROOT,
        env=bench.environment("first_paint") | {"CUTAWAY_TIMING": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("first_paint_s="):
                return float(line.partition("=")[2]), time.monotonic() - began_s
        raise RuntimeError("the window ended before its first paint")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def drop_caches() -> bool:
    """Have the system forget the files it has in memory; returns False where it does not let us."""
    try:
        subprocess.run(["sync"], check=True)
        _DROP_CACHES.write_text("3", encoding="ascii")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _probe() -> Figures:
    """Start the window here and return what had happened when the program said "painted"."""
    from PySide6.QtCore import QEvent, QObject

    from tests.benchmarks import window

    painted: dict[int, str] = {}
    found: Figures = {}

    class PaintWatch(QObject):
        """Notes which widgets were asked to paint."""

        def eventFilter(self, watched: Any, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint:
                painted[id(watched)] = type(watched).__name__
            return False

    def scenario(stage: window.Stage) -> Any:
        from PySide6.QtWidgets import QApplication

        watch = PaintWatch(stage.program)
        QApplication.instance().installEventFilter(watch)
        program_start = stage.window.start

        def on_painted() -> None:
            """Stand where the program goes on after its first paint."""
            chat = stage.window.chats
            parts = (stage.window._rail, chat.list, chat.chat.composer, chat.chat.card, chat.chat.chip)
            found["first_paint.probe_exposed"] = float(stage.window.windowHandle().isExposed())
            found["first_paint.probe_parts_painted"] = sum(_has_painted(part, painted) for part in parts) / len(parts)
            QApplication.instance().removeEventFilter(watch)
            program_start()

        stage.window.start = on_painted
        yield lambda: bool(found)

    window.run(scenario)
    return found


def _has_painted(part: Any, painted: dict[int, str]) -> bool:
    """Say whether a part or something in it has painted."""
    from PySide6.QtWidgets import QWidget

    return any(id(widget) in painted for widget in (part, *part.findChildren(QWidget)))


if __name__ == "__main__":
    tell(_probe())
