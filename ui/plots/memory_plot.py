"""Memory over time by owner: what is used is filled, what is only reserved is hatched.

The bands are the store's split of what was measured (app/telemetry/owners.py says how); this file only stacks them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtWidgets import QWidget

from app import units
from app.i18n import _
from app.telemetry.export import Table, memory_table
from app.telemetry.series import TIME, FloatArray
from app.telemetry.store import TelemetryStore
from ui.plots.bands import Band, BandsItem
from ui.plots.legend import Entry, Mark
from ui.plots.plot_base import SharedTime, TimePlot
from ui.plots.redraw import RedrawTimer
from ui.plots.thinning import ceiling, highest_each, index_at, pixel_starts, segments

# From the bottom of the stack to its top, with the colour of each.
_OWNERS: Final = (("rest", "rest"), ("weights", "weights"), ("compute", "compute"), ("kv_used", "kv"))
_RESERVED: Final = "kv_reserved"


class MemoryPlot(TimePlot):
    """The memory of the engine, stacked by owner."""

    def __init__(
        self, store: TelemetryStore, time: SharedTime, timer: RedrawTimer, plot_px: int, parent: QWidget | None = None
    ) -> None:
        self._view: dict[str, FloatArray] = {}
        self._unit_bytes = 1.0
        super().__init__(store, time, timer, plot_px, parent)
        self._bands = BandsItem()
        self._plot.getPlotItem().addItem(self._bands, ignoreBounds=True)

    def table(self) -> Table:
        """Return the readings in the window."""
        return memory_table(self._store, self._time.span(self._store.now_s)[0])

    def _title(self) -> str:
        return _("MEMORY OF THE ENGINE")

    def _spoken_name(self) -> str:
        return _("Memory of the engine over time, by owner")

    def _entries(self) -> tuple[Entry, ...]:
        return (
            Entry("rest", _("rest"), "rest", Mark.SOLID),
            Entry("weights", _("weights"), "weights", Mark.SOLID),
            Entry("compute", _("compute"), "compute", Mark.SOLID),
            Entry("kv_used", _("KV used"), "kv", Mark.SOLID),
            Entry(_RESERVED, _("reserved"), "kv", Mark.HATCHED),
        )

    def _version(self) -> int:
        return self._store.memory_version

    def _hint(self) -> str:
        name = self._store.live().device_name
        return _("device memory of {device}").format(device=name) if name else _("system memory")

    def _redraw(self) -> None:
        view = self._view = self._store.memory(self._since_s())
        solid = view["rest"] + view["weights"] + view["compute"]
        most = float(np.max(solid + np.maximum(view[_RESERVED], view["kv_used"]), initial=0.0))
        self._unit, self._unit_bytes = units.byte_unit(most or 2.0**20)
        area = self._set_range(ceiling(most / self._unit_bytes))
        starts = pixel_starts(view[TIME], area.left(), area.right(), self._width_px())
        columns = {name: highest_each(view[name], starts) / self._unit_bytes for name in view if name != TIME}
        times = view[TIME][starts]
        bands = [band for part in segments(times, self._store.restarts()) for band in self._stack(times, columns, part)]
        self._bands.set_bands(bands, area, self._height_px())

    def _stack(self, times: FloatArray, columns: dict[str, FloatArray], part: slice) -> list[Band]:
        assert self._theme is not None
        times = times[part]
        lower = np.zeros(len(times))
        bands = []
        for name, role in _OWNERS:
            upper = lower + columns[name][part]
            bands.append(Band(times, lower, upper, self._theme.color(role)))
            lower = upper
        # The reservation begins where the engine made it: before, there is nothing to hatch.
        top = lower - columns["kv_used"][part] + columns[_RESERVED][part]
        reserved = np.flatnonzero(top > lower)
        if len(reserved):
            since = slice(int(reserved[0]), None)
            bands.append(Band(times[since], lower[since], top[since], self._theme.color("kv"), is_hatched=True))
        return bands

    def _values_at(self, time_s: float) -> dict[str, str]:
        index = index_at(self._view[TIME], time_s) if self._view else None
        if index is None:
            return {}
        return {name: units.number_text(self._view[name][index] / self._unit_bytes) for name in self._names()}

    @staticmethod
    def _names() -> tuple[str, ...]:
        return (*(name for name, _role in _OWNERS), _RESERVED)
