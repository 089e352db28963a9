"""Tokens per second over time: a line for writing, a bar for each stretch of reading; the two never share a mark.

Reading is often many times as fast as writing; then its bars are divided by a round number that the caption names.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtWidgets import QWidget

from app import units
from app.i18n import _
from app.telemetry.export import Table, speed_table
from app.telemetry.series import TIME, FloatArray
from app.telemetry.speed import PAUSE_S
from app.telemetry.store import TelemetryStore
from ui.plots.legend import Entry, Mark
from ui.plots.plot_base import SharedTime, TimePlot
from ui.plots.redraw import RedrawTimer
from ui.plots.thinning import ceiling, index_at, line_points, pixel_starts

_FACTORS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# Reading up to this many times as fast as writing shares its scale.
_SAME_SCALE: Final = 2.0
_NARROWEST_BAR_PX: Final = 3.0
# A speed older than this is not the speed at the cursor.
_VALUE_HOLDS_S: Final = 1.0


def reading_factor(fastest_reading: float, fastest_writing: float) -> int:
    """Return by what the bars of reading are divided so that they end near the line of writing."""
    if not fastest_writing > 0 or fastest_reading <= _SAME_SCALE * fastest_writing:
        return 1
    wanted = fastest_reading / fastest_writing
    return next((factor for factor in _FACTORS if factor >= wanted), _FACTORS[-1])


class SpeedPlot(TimePlot):
    """Speed of writing and of reading."""

    def __init__(
        self, store: TelemetryStore, time: SharedTime, timer: RedrawTimer, plot_px: int, parent: QWidget | None = None
    ) -> None:
        self._writing: dict[str, FloatArray] = {}
        self._reading: dict[str, FloatArray] = {}
        self._factor = 1
        super().__init__(store, time, timer, plot_px, parent)
        self._bars: Any = pg.BarGraphItem(x0=[], x1=[], y0=0, height=[])
        self._line: Any = pg.PlotCurveItem(antialias=True)
        for item in (self._bars, self._line):
            self._plot.getPlotItem().addItem(item, ignoreBounds=True)

    def table(self) -> Table:
        """Return the speeds in the window."""
        return speed_table(self._store, self._time.span(self._store.now_s)[0])

    def _title(self) -> str:
        return _("TOKENS PER SECOND")

    def _spoken_name(self) -> str:
        return _("Tokens per second over time, writing and reading")

    def _entries(self) -> tuple[Entry, ...]:
        return (
            Entry("writing", _("writing"), "text", Mark.LINE),
            Entry("reading", _("reading"), "weights", Mark.BAR),
        )

    def _version(self) -> int:
        return self._store.speed_version

    def _hint(self) -> str:
        if self._factor > 1:
            return _("bars = reading (÷ {factor})").format(factor=self._factor)
        return _("bars = reading")

    def _redraw(self) -> None:
        writing = self._writing = self._store.writing(self._since_s())
        reading = self._reading = self._store.reading(self._since_s())
        fastest_writing = float(np.nanmax(writing["tokens_per_s"], initial=0.0))
        fastest_reading = float(np.max(reading["tokens_per_s"], initial=0.0))
        self._factor = reading_factor(fastest_reading, fastest_writing)
        area = self._set_range(ceiling(max(fastest_writing, fastest_reading / self._factor)))
        self._redraw_line(area.left(), area.right())
        self._redraw_bars(area.width() / self._width_px())

    def _redraw_line(self, begin_s: float, end_s: float) -> None:
        times, values = self._writing[TIME], self._writing["tokens_per_s"]
        starts = pixel_starts(times, begin_s, end_s, self._width_px())
        pauses = self._writing["began_s"][1:] - times[:-1] > PAUSE_S
        shown_times, shown_values = line_points(times, values, starts)
        # A pause parts the line where it lies, however many readings share a pixel.
        counted = np.concatenate(([0], np.cumsum(pauses)))[: len(times)]
        stretch = counted[starts] if len(shown_times) == len(starts) else np.repeat(counted[starts], 2)
        is_joined = np.append(stretch[1:] == stretch[:-1], False).astype(np.int32)
        connect = is_joined[: len(shown_times)]
        self._line.setData(shown_times, shown_values, connect=connect, pen=self._line_pen("text", 1.0))

    def _redraw_bars(self, s_per_px: float) -> None:
        assert self._theme is not None
        begins, widths = self._reading[TIME], self._reading["duration_s"]
        ends = begins + np.maximum(widths, _NARROWEST_BAR_PX * s_per_px)
        color = self._theme.color("weights")
        heights = self._reading["tokens_per_s"] / self._factor
        self._bars.setOpts(x0=begins, x1=ends, y0=0, height=heights, brush=color, pen=pg.mkPen(None))

    def _values_at(self, time_s: float) -> dict[str, str]:
        values = {}
        if self._writing:
            index = index_at(self._writing[TIME], time_s)
            if index is not None and time_s - self._writing[TIME][index] <= _VALUE_HOLDS_S:
                values["writing"] = units.number_text(self._writing["tokens_per_s"][index])
        if self._reading:
            index = index_at(self._reading[TIME], time_s)
            if index is not None:
                since_end_s = time_s - self._reading[TIME][index] - self._reading["duration_s"][index]
                if since_end_s <= _VALUE_HOLDS_S:
                    values["reading"] = units.number_text(self._reading["tokens_per_s"][index])
        return values
