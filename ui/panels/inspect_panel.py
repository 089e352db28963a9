"""Inspect: plots and KV blocks at full size, the estimate beside the measurement, and the end of the engine's log.

The same plots as the cutaway's, drawn from the same store. Knows no engine; others hand it rows and lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QPlainTextEdit,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _
from app.telemetry.store import TelemetryStore
from ui.plots.block_canvas import BlockCanvas
from ui.plots.block_map import BlockMap
from ui.plots.estimate_table import EstimateRow, EstimateTable
from ui.plots.kv_plot import KvPlot
from ui.plots.memory_plot import MemoryPlot
from ui.plots.plot_base import SharedTime, TimePlot
from ui.plots.redraw import RedrawTimer
from ui.plots.speed_plot import SpeedPlot
from ui.plots.tools_row import ToolsRow
from ui.theme import Theme, mono_font
from ui.widgets.display_text import display_text
from ui.widgets.empty_state import EmptyState
from ui.widgets.labels import CaptionLabel, ElidedLabel, MutedLabel, TitleLabel
from ui.widgets.scroll_area import scrolling

LOG_LINES: Final = 500
_PLOT_PX: Final = 150
_MAP_PADDING_PX: Final = 8
_WORDS_PX: Final = 130  # the log shows a few lines however low the window is


class InspectPanel(QWidget):
    """The place that shows everything at once.

    Attributes:
        plots: memory, speed and KV cache.
        blocks: the map of the KV blocks.
        tools: window choice, tables and CSV.
        estimate: the table of estimates.

    Signals:
        told(str): a sentence about an export.
    """

    told = Signal(str)

    def __init__(self, store: TelemetryStore, timer: RedrawTimer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self.setObjectName("inspect")
        time = SharedTime(self)
        self.plots: tuple[TimePlot, ...] = (
            MemoryPlot(store, time, timer, _PLOT_PX),
            SpeedPlot(store, time, timer, _PLOT_PX),
            KvPlot(store, time, timer, _PLOT_PX),
        )
        self.blocks = BlockMap(store, timer, BlockCanvas(_PLOT_PX, grows=True, padding_px=_MAP_PADDING_PX))
        self.tools = ToolsRow(time, (*self.plots, self.blocks))
        self.tools.told.connect(self.told)
        self.estimate = EstimateTable()
        self.estimate.setProperty("kind", "framed")
        self._log = EngineLog(timer)
        self._build()
        timer.add(self)
        self.redraw()

    # ------------------------------------------------------------------------------------- public

    def set_facts(self, text: str) -> None:
        """Say which model runs and how: "SmolLM2-135M · Q4_1 · llama.cpp · CPU"."""
        self._facts.setText(text)

    def set_estimate(self, rows: Sequence[EstimateRow]) -> None:
        """Show what was predicted for each owner beside what was measured."""
        self.estimate.estimates.set_rows(rows)
        self._estimate_section.setVisible(bool(rows))

    def append_log(self, text: str) -> None:
        """Add lines of the engine's log; they are shown with the next redraw."""
        self._log.append_log(text)

    def log_text(self) -> str:
        """Return the log as it is shown."""
        return self._log.toPlainText()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for plot in self.plots:
            plot.set_theme(theme)
        self.blocks.set_theme(theme)
        self.tools.set_theme(theme)
        self.estimate.set_theme(theme)

    # ------------------------------------------------------------------------------------- for the redraw timer

    def has_moved(self) -> bool:
        """Say whether the first reading has come while the empty state is shown."""
        return self._stack.currentIndex() == 0 and not self._store.is_empty()

    def is_due(self) -> bool:
        """Say that whatever is new is worth showing."""
        return True

    def is_shown(self) -> bool:
        """Say whether a person can see the panel."""
        return self.isVisible()

    def redraw(self) -> None:
        """Show the plots once there is something to plot."""
        self._stack.setCurrentIndex(0 if self._store.is_empty() else 1)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 16, 28, 16)
        column.setSpacing(12)
        header = QHBoxLayout()
        header.setSpacing(12)
        header.addWidget(TitleLabel(_("Inspect")))
        self._facts = ElidedLabel()
        header.addWidget(self._facts, 1)
        header.addWidget(self.tools)
        column.addLayout(header)
        self._stack = QStackedWidget()
        self._stack.addWidget(
            EmptyState(_("No engine has run yet. Load a model in Chat, and what it does is drawn here."))
        )
        self._stack.addWidget(scrolling(self._build_grid()))
        column.addWidget(self._stack, 1)

    def _build_grid(self) -> QWidget:
        inside = QWidget()
        grid = QGridLayout(inside)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(16)
        memory, speed, kv = self.plots
        grid.addWidget(memory, 0, 0)
        grid.addWidget(speed, 0, 1)
        grid.addWidget(self.blocks, 1, 0)
        grid.addWidget(kv, 1, 1)
        grid.addWidget(MutedLabel(_("time axes: seconds since load")), 2, 0, 1, 2)
        grid.addLayout(self._build_words(), 3, 0, 1, 2)
        for row in (0, 1, 3):
            grid.setRowStretch(row, 1)
        for column in (0, 1):
            grid.setColumnStretch(column, 1)
        return inside

    def _build_words(self) -> QHBoxLayout:
        """Return what is read below the plots: the estimate where there is one, and the log."""
        self._estimate_section = QWidget()
        estimate = QVBoxLayout(self._estimate_section)
        estimate.setContentsMargins(0, 0, 0, 0)
        estimate.setSpacing(4)
        estimate.addWidget(CaptionLabel(_("ESTIMATE BESIDE MEASUREMENT")))
        estimate.addWidget(self.estimate)
        self._estimate_section.hide()
        log = QVBoxLayout()
        log.setSpacing(4)
        log.addWidget(CaptionLabel(_("ENGINE LOG")))
        log.addWidget(self._log, 1)
        self._log.setMinimumHeight(_WORDS_PX)
        row = QHBoxLayout()
        row.setSpacing(24)
        row.addWidget(self._estimate_section, 1)
        row.addLayout(log, 1)
        return row


class EngineLog(QPlainTextEdit):
    """The last lines of the engine's log; lines gather between redraws, so a flood costs one insertion.

    Attributes:
        _waiting: lines that are not shown yet.
    """

    def __init__(self, timer: RedrawTimer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._timer = timer
        self._waiting: deque[str] = deque(maxlen=LOG_LINES)
        self.setProperty("kind", "log")
        self.setReadOnly(True)
        self.setMaximumBlockCount(LOG_LINES)
        self.setFont(mono_font())
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTabChangesFocus(True)
        self.setAccessibleName(_("Engine log"))
        self.setPlaceholderText(_("The engine has logged nothing."))
        timer.add(self)

    def append_log(self, text: str) -> None:
        """Add lines; control characters in them are shown, not obeyed."""
        self._waiting.extend(display_text(text).rstrip("\n").split("\n"))
        self._timer.wake()

    def has_moved(self) -> bool:
        """Say whether lines wait to be shown."""
        return bool(self._waiting)

    def is_due(self) -> bool:
        """Say that whatever is new is worth showing."""
        return True

    def is_shown(self) -> bool:
        """Say whether a person can see the log."""
        return self.isVisible()

    def redraw(self) -> None:
        """Show the waiting lines; stay at the end only if the end was in sight."""
        bar = self.verticalScrollBar()
        was_at_end = bar.value() == bar.maximum()
        self.appendPlainText("\n".join(self._waiting))
        self._waiting.clear()
        if was_at_end:
            bar.setValue(bar.maximum())
