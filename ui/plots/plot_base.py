"""What every plot over time shares: axes, time window, linked cursor, caption, legend, and when it redraws.

A plot is one file beside this one: it says its title and entries and fills `_redraw` and `_values_at`.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from typing import Any, Final

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import _
from app.telemetry.export import Table
from app.telemetry.series import CONDENSED_S
from app.telemetry.store import TelemetryStore
from ui.plots.grid import GridItem
from ui.plots.legend import Caption, Entry, Legend
from ui.plots.redraw import RedrawTimer
from ui.plots.thinning import time_ticks, value_ticks
from ui.theme import Theme, ui_font

# A minute, ten minutes, everything that is kept.
WINDOWS_S: Final = (60.0, 600.0, math.inf)
_SHORTEST_WINDOW_S: Final = 60.0

# A plot is drawn again once its axis has moved on by this much: half the cost for a small one, and nobody sees it.
_VISIBLE_PX: Final = 2.0
# However slowly the axis moves, what is drawn is never older than this.
_LONGEST_WAIT_S: Final = 2.0
_LEFT_AXIS_PX: Final = 40
_BOTTOM_AXIS_PX: Final = 20
_TICK_FONT_PX: Final = 11
_RIGHT_EDGE_PX: Final = 12
_PX_PER_TIME_TICK: Final = 56
_PX_PER_VALUE_TICK: Final = 30
# One key press moves the cursor by this part of the window.
_KEY_STEP: Final = 1 / 60
# The longest history on screen that is labelled in seconds.
_SECONDS_LABELS_S: Final = 120.0


class SharedTime(QObject):
    """The time axis that plots share: how long it is, and where the cursor stands.

    Attributes:
        window_s: seconds that are shown; infinite for all.
        cursor_s: the time under the cursor, None when it is off.

    Signals:
        window_changed(): another length is shown.
        cursor_moved(): the cursor moved, appeared or went.
    """

    window_changed = Signal()
    cursor_moved = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.window_s = WINDOWS_S[0]
        self.cursor_s: float | None = None

    def set_window(self, seconds: float) -> None:
        """Show this many seconds."""
        if seconds != self.window_s:
            self.window_s = seconds
            self.window_changed.emit()

    def set_cursor(self, time_s: float | None) -> None:
        """Move the cursor to a time, or take it away."""
        if time_s != self.cursor_s:
            self.cursor_s = time_s
            self.cursor_moved.emit()

    def span(self, now_s: float) -> tuple[float, float]:
        """Return where the axis begins and ends when the newest reading is of now_s."""
        if math.isinf(self.window_s):
            return 0.0, max(now_s, _SHORTEST_WINDOW_S)
        begin_s = max(0.0, now_s - self.window_s)
        return begin_s, begin_s + self.window_s


class TimePlot(QWidget):
    """A plot over time; subclasses draw.

    Attributes:
        caption: the line above.
        legend: the words below.
        _store: where the readings are.
        _time: the axis shared with the other plots.
        _seen_version: version of the data that is on screen; -1 when something else than the data changed.
        _drawn_s: when it was drawn, by the monotonic clock.
    """

    def __init__(
        self, store: TelemetryStore, axis: SharedTime, timer: RedrawTimer, plot_px: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._time = axis
        self._timer = timer
        self._theme: Theme | None = None
        self._seen_version = -1
        self._drawn_s = 0.0
        self._unit = ""
        self.caption = Caption(self._title(), self)
        self.legend = Legend(self._entries(), self)
        self._plot: Any = pg.PlotWidget(self)
        self._restart_lines: list[Any] = []
        self._build(plot_px)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self._spoken_name())
        axis.window_changed.connect(self._on_window_changed)
        axis.cursor_moved.connect(self._on_cursor_moved)
        timer.add(self)

    # ------------------------------------------------------------------------------------- what a plot says

    @abstractmethod
    def _title(self) -> str:
        """Return the caption, in capitals."""

    @abstractmethod
    def _spoken_name(self) -> str:
        """Return the name for a screen reader."""

    @abstractmethod
    def _entries(self) -> tuple[Entry, ...]:
        """Return the quantities drawn."""

    @abstractmethod
    def _version(self) -> int:
        """Return a number that grows whenever the data drawn here moved."""

    @abstractmethod
    def _redraw(self) -> None:
        """Draw the newest data; the only place that hands data to pyqtgraph."""

    @abstractmethod
    def _values_at(self, time_s: float) -> dict[str, str]:
        """Return the legend's values at a time, by key; empty before the first reading."""

    @abstractmethod
    def _hint(self) -> str:
        """Return what else the caption says."""

    @abstractmethod
    def table(self) -> Table:
        """Return the numbers that are drawn, for the table twin."""

    # ------------------------------------------------------------------------------------- for the redraw timer

    def has_moved(self) -> bool:
        """Say whether there is something new to draw."""
        return self._theme is not None and self._version() != self._seen_version

    def is_due(self) -> bool:
        """Say whether the time axis has moved on by pixels that a person would see; a change of the view is at once."""
        if self._seen_version == -1:
            return True
        begin_s, end_s = self._time.span(self._store.now_s)
        visible_s: float = _VISIBLE_PX * (end_s - begin_s) / max(1, self._plot.width())
        return time.monotonic() - self._drawn_s >= min(visible_s, _LONGEST_WAIT_S)

    def is_shown(self) -> bool:
        """Say whether a person can see the plot."""
        return self.isVisible() and not self.window().isMinimized() and not self.visibleRegion().isEmpty()

    def redraw(self) -> None:
        """Draw the newest data, and the values at the cursor."""
        self._seen_version = self._version()
        self._drawn_s = time.monotonic()
        self._redraw()
        self._draw_restarts()
        self._show_values()

    # ------------------------------------------------------------------------------------- public

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self._plot.setBackground(theme.color("surface"))
        for name in ("left", "bottom"):
            axis = self._plot.getPlotItem().getAxis(name)
            axis.setPen(pg.mkPen(theme.color("border")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        self._grid.set_color(theme.color("grid"))
        self._cursor_line.setPen(pg.mkPen(theme.color("muted"), width=1))
        self.caption.set_theme(theme)
        self.legend.set_theme(theme)
        self._redraw_soon()

    def plot_area(self) -> QRectF:
        """Return where values are drawn, in the pixels of this widget."""
        box = self._plot.getPlotItem().getViewBox()
        area = self._plot.mapFromScene(box.sceneBoundingRect()).boundingRect()
        return QRectF(area.translated(self._plot.pos()))

    def pixel_of(self, time_s: float, value: float) -> QPointF:
        """Return where a time and a value are drawn, in the pixels of this widget; value in the unit of the axis."""
        scene = self._plot.getPlotItem().getViewBox().mapViewToScene(QPointF(time_s, value))
        return QPointF(self._plot.mapFromScene(scene) + self._plot.pos())

    # ------------------------------------------------------------------------------------- events

    def showEvent(self, event: QShowEvent) -> None:
        """Draw what moved while nobody looked."""
        super().showEvent(event)
        self._timer.wake()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what moved while this part was scrolled away."""
        super().paintEvent(event)
        if self.has_moved():
            self._timer.wake()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Draw for the new number of pixels."""
        super().resizeEvent(event)
        self._redraw_soon()

    def leaveEvent(self, event: QEvent) -> None:
        """Take the cursor away."""
        super().leaveEvent(event)
        self._time.set_cursor(None)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the cursor away."""
        super().focusOutEvent(event)
        self._time.set_cursor(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the cursor with the arrow keys, take it away with Escape."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        now_s = self._store.now_s
        begin_s, end_s = self._time.span(now_s)
        if event.key() in steps:
            at_s = now_s if self._time.cursor_s is None else self._time.cursor_s
            at_s += steps[Qt.Key(event.key())] * (end_s - begin_s) * _KEY_STEP
            self._time.set_cursor(min(max(at_s, begin_s), now_s))
        elif event.key() == Qt.Key.Key_Escape and self._time.cursor_s is not None:
            self._time.set_cursor(None)
        else:
            super().keyPressEvent(event)

    # ------------------------------------------------------------------------------------- slots

    def _on_window_changed(self) -> None:
        self._redraw_soon()

    def _on_cursor_moved(self) -> None:
        time_s = self._time.cursor_s
        self._cursor_line.setVisible(time_s is not None)
        if time_s is not None:
            self._cursor_line.setValue(time_s)
        if self._theme is not None:
            self._show_values()

    def _on_mouse_moved(self, scene_point: QPointF) -> None:
        box = self._plot.getPlotItem().getViewBox()
        is_inside = box.sceneBoundingRect().contains(scene_point)
        self._time.set_cursor(float(box.mapSceneToView(scene_point).x()) if is_inside else None)

    # ------------------------------------------------------------------------------------- for subclasses

    def _since_s(self) -> float:
        """Return from when on readings are needed: a little before the left edge, so that lines reach it."""
        begin_s, end_s = self._time.span(self._store.now_s)
        return begin_s - (CONDENSED_S if end_s - begin_s > WINDOWS_S[1] else 2.0)

    def _width_px(self) -> int:
        return max(16, int(self._plot.getPlotItem().getViewBox().width()))

    def _line_pen(self, role: str, width_px: float) -> QPen:
        """Return a pen for pyqtgraph's curves, which count a pen's width in the screen's own pixels."""
        assert self._theme is not None
        pen: QPen = pg.mkPen(self._theme.color(role), width=width_px * self.devicePixelRatioF())
        return pen

    def _height_px(self) -> int:
        return max(16, int(self._plot.getPlotItem().getViewBox().height()))

    def _set_range(self, top: float) -> QRectF:
        """Show the shared time span and values from 0 to top; return that part of the plot."""
        begin_s, end_s = self._time.span(self._store.now_s)
        item = self._plot.getPlotItem()
        item.getViewBox().setRange(xRange=(begin_s, end_s), yRange=(0.0, top), padding=0)
        # pyqtgraph would move its items only while painting, and so paint everything twice.
        item.getViewBox().prepareForPaint()
        most = max(2, self._height_px() // _PX_PER_VALUE_TICK)
        values = value_ticks(top, most)
        item.getAxis("left").setTicks([[(value, f"{value:,.10g}") for value in values]])
        area = QRectF(begin_s, 0.0, end_s - begin_s, top)
        self._grid.set_values(values, area)
        most = max(2, self._width_px() // _PX_PER_TIME_TICK)
        in_seconds = end_s <= _SECONDS_LABELS_S or area.width() <= _SHORTEST_WINDOW_S
        # A label in the last pixels would be cut off at the edge.
        last_s = end_s - area.width() * _RIGHT_EDGE_PX / self._width_px()
        times = [time_s for time_s in time_ticks(begin_s, end_s, most) if time_s <= last_s]
        item.getAxis("bottom").setTicks([[(time_s, time_label(time_s, in_seconds)) for time_s in times]])
        return area

    # ------------------------------------------------------------------------------------- helpers

    def _build(self, plot_px: int) -> None:
        self._plot.setMinimumHeight(plot_px)
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setFrameShape(pg.PlotWidget.Shape.NoFrame)
        self._plot.scene().sigMouseMoved.connect(self._on_mouse_moved)
        item = self._plot.getPlotItem()
        item.hideButtons()
        item.setMenuEnabled(False)
        # pyqtgraph makes a menu even then, and would never delete it; as a window it stays unseen.
        item.ctrlMenu.setParent(self, item.ctrlMenu.windowFlags())
        item.setContentsMargins(0, 4, 4, 0)
        box = item.getViewBox()
        box.setMouseEnabled(False, False)
        box.disableAutoRange()
        for name in ("left", "bottom"):
            axis = item.getAxis(name)
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickFont=ui_font(_TICK_FONT_PX), tickLength=0, tickTextOffset=4, hideOverlappingLabels=False)
        item.getAxis("left").setWidth(_LEFT_AXIS_PX)
        item.getAxis("bottom").setHeight(_BOTTOM_AXIS_PX)
        self._grid = GridItem()
        item.addItem(self._grid, ignoreBounds=True)
        self._cursor_line: Any = pg.InfiniteLine(angle=90, movable=False)
        self._cursor_line.setVisible(False)
        self._cursor_line.setZValue(50)
        item.addItem(self._cursor_line, ignoreBounds=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.caption)
        column.addWidget(self._plot, 1)
        column.addWidget(self.legend)

    def _redraw_soon(self) -> None:
        self._seen_version = -1
        self._timer.wake()

    def _show_values(self) -> None:
        cursor_s = self._time.cursor_s
        self.legend.set_values(self._values_at(self._store.now_s if cursor_s is None else cursor_s))
        hint = self._hint() if cursor_s is None else _("at {time} s").format(time=f"{cursor_s:,.1f}")
        self.caption.set_words(self._unit, hint)

    def _draw_restarts(self) -> None:
        assert self._theme is not None
        begin_s, end_s = self._time.span(self._store.now_s)
        restarts = [time_s for time_s in self._store.restarts() if begin_s <= time_s <= end_s]
        item = self._plot.getPlotItem()
        while len(self._restart_lines) > len(restarts):
            item.removeItem(self._restart_lines.pop())
        while len(self._restart_lines) < len(restarts):
            line = pg.InfiniteLine(angle=90, movable=False)
            line.setZValue(40)
            item.addItem(line, ignoreBounds=True)
            self._restart_lines.append(line)
        pen = QPen(self._theme.color("limit"), 0)
        pen.setStyle(Qt.PenStyle.DotLine)
        for line, time_s in zip(self._restart_lines, restarts, strict=True):
            line.setPen(pen)
            line.setValue(time_s)


def time_label(time_s: float, in_seconds: bool) -> str:
    """Return the label of a time: "40" in seconds, else "2:30" in minutes or "1:05:00" in hours."""
    if in_seconds:
        return f"{time_s:,.0f}"
    minutes, seconds = divmod(round(time_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
