"""The KV cache over time: tokens held, in bytes, against what was predicted for them and what was reserved.

The prediction is tokens times the bytes per token that the engine named at load; where both lines lie on each other,
the prediction was right.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtWidgets import QWidget

from app import units
from app.i18n import _
from app.telemetry.export import Table, kv_table
from app.telemetry.series import TIME, FloatArray
from app.telemetry.store import TelemetryStore
from ui.plots.bands import Band, BandsItem
from ui.plots.legend import Entry, Mark
from ui.plots.plot_base import SharedTime, TimePlot
from ui.plots.redraw import RedrawTimer
from ui.plots.thinning import ceiling, highest_each, index_at, pixel_starts, segments, simplified, stepped

# The reservation is drawn while it is at most so many times what is used: beyond, what is used would be a flat line.
_RESERVED_IN_SIGHT: Final = 4.0


class KvPlot(TimePlot):
    """KV used, predicted and reserved."""

    def __init__(
        self, store: TelemetryStore, time: SharedTime, timer: RedrawTimer, plot_px: int, parent: QWidget | None = None
    ) -> None:
        self._view: dict[str, FloatArray] = {}
        self._unit_bytes = 1.0
        self._is_reserved_in_sight = False
        super().__init__(store, time, timer, plot_px, parent)
        self._bands = BandsItem()
        self._predicted: Any = pg.PlotCurveItem(antialias=True, connect="finite")
        for item in (self._bands, self._predicted):
            self._plot.getPlotItem().addItem(item, ignoreBounds=True)

    def table(self) -> Table:
        """Return the steps in the window."""
        return kv_table(self._store, self._time.span(self._store.now_s)[0])

    def _title(self) -> str:
        return _("KV CACHE")

    def _spoken_name(self) -> str:
        return _("KV cache over time: used, predicted and reserved")

    def _entries(self) -> tuple[Entry, ...]:
        return (
            Entry("used", _("used"), "kv", Mark.SOLID),
            Entry("predicted", _("predicted"), "text", Mark.DASHED),
            Entry("reserved", _("reserved"), "kv", Mark.HATCHED),
        )

    def _version(self) -> int:
        return self._store.kv_version

    def _hint(self) -> str:
        if self._view and len(self._view[TIME]) and not self._is_reserved_in_sight:
            return _("reserved lies above")
        return ""

    def _redraw(self) -> None:
        view = self._view = self._held(self._store.kv())
        begin_s, end_s = self._time.span(self._store.now_s)
        in_sight = (view[TIME] >= begin_s) & (view[TIME] <= end_s)
        used = float(np.max(view["used"][in_sight], initial=0.0))
        most = max(used, float(np.nanmax(view["predicted"][in_sight], initial=0.0)))
        reserved = float(np.nanmax(view["reserved"][in_sight], initial=0.0))
        self._is_reserved_in_sight = 0 < reserved <= _RESERVED_IN_SIGHT * most
        top = max(most, reserved) if self._is_reserved_in_sight else most
        self._unit, self._unit_bytes = units.byte_unit(top or 2.0**20)
        area = self._set_range(ceiling(top / self._unit_bytes))
        starts = pixel_starts(view[TIME], area.left(), area.right(), self._width_px())
        times = view[TIME][starts]
        columns = {name: highest_each(view[name], starts) / self._unit_bytes for name in view if name != TIME}
        self._draw(times, columns, area)

    def _draw(self, times: FloatArray, columns: dict[str, FloatArray], area: QRectF) -> None:
        assert self._theme is not None
        color = self._theme.color("kv")
        bands = []
        dashed = [(np.empty(0), np.empty(0))]
        for part in segments(times, self._store.restarts()):
            held, used = stepped(times[part], columns["used"][part])
            reserved = stepped(times[part], columns["reserved"][part])[1]
            bands.append(Band(held, np.zeros(len(held)), used, color))
            if self._is_reserved_in_sight and np.isfinite(reserved).all():
                bands.append(Band(held, used, np.maximum(used, reserved), color, is_hatched=True))
            predicted = stepped(times[part], columns["predicted"][part])[1]
            predicted_times, predicted = simplified(held, predicted, area.height() / (2 * self._height_px()))
            # The number that is none keeps one engine's line apart from the next one's.
            dashed.append((np.append(predicted_times, held[-1]), np.append(predicted, np.nan)))
        self._bands.set_bands(bands, area, self._height_px())
        self._redraw_predicted(*(np.concatenate(column) for column in zip(*dashed, strict=True)))

    def _redraw_predicted(self, times: FloatArray, predicted: FloatArray) -> None:
        pen = self._line_pen("text", 1.5)
        pen.setDashPattern([4, 3])
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        self._predicted.setData(times, predicted, pen=pen)

    def _held(self, view: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """Return the readings from the one in force at the left edge, the newest held until now."""
        times, since_s = view[TIME], self._since_s()
        restarts = self._store.restarts()
        first = index_at(times, since_s) or 0
        last = len(times) - 1
        is_of_this_engine = last >= 0 and (not restarts or times[last] >= restarts[-1])
        rows = [*range(first, last + 1), *([last] if is_of_this_engine else [])]
        view = {name: column[rows] for name, column in view.items()}
        if is_of_this_engine:
            view[TIME][-1] = self._store.now_s
        view[TIME] = np.maximum(view[TIME], since_s)
        return view

    def _values_at(self, time_s: float) -> dict[str, str]:
        index = index_at(self._view[TIME], time_s) if self._view else None
        if index is None:
            return {}
        names = [entry.key for entry in self.legend.entries]
        values = {name: self._view[name][index] / self._unit_bytes for name in names}
        return {name: units.number_text(value) if np.isfinite(value) else "–" for name, value in values.items()}
