"""The cutaway: live figures, the map of the KV blocks and three plots beside a chat, folded away until wanted.

Draws from the telemetry store and knows no engine. Folded, it still tells one live line to whoever shows it.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QToolButton, QVBoxLayout, QWidget

from app import units
from app.i18n import _, ngettext
from app.telemetry.store import LiveFigures, TelemetryStore
from ui.plots.block_canvas import BlockCanvas
from ui.plots.block_map import BlockMap
from ui.plots.kv_plot import KvPlot
from ui.plots.memory_plot import MemoryPlot
from ui.plots.plot_base import SharedTime, TimePlot
from ui.plots.redraw import RedrawTimer
from ui.plots.speed_plot import SpeedPlot
from ui.plots.tools_row import ToolsRow
from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.labels import ElidedLabel, MutedLabel, PlainLabel, TitleLabel, plain_tooltip
from ui.widgets.scroll_area import scrolling

WIDTH_PX: Final = 372
_MEMORY_PLOT_PX: Final = 132
_SMALL_PLOT_PX: Final = 96
_MAP_PX: Final = 126  # 14 rows of 37 blocks: a context of 8,192 tokens
_NOTHING_YET: Final = "–"


class CutawayPanel(QWidget):
    """The panel at the right of a chat.

    Attributes:
        blocks: the map of the KV blocks.
        plots: memory, KV cache and speed, from top to bottom.
        tools: window choice, tables and CSV.

    Signals:
        live_text_changed(str): the one-line summary, for the composer; "" when no engine runs.
        folded_changed(bool): the panel was folded away or shown.
        told(str): a sentence about an export.
    """

    live_text_changed = Signal(str)
    folded_changed = Signal(bool)
    told = Signal(str)

    def __init__(self, store: TelemetryStore, timer: RedrawTimer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._timer = timer
        self._seen_version = -1
        self._live_text = ""
        self._is_folded = True
        self.setObjectName("cutaway")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH_PX)
        self.setAccessibleName(_("Cutaway"))
        time = SharedTime(self)
        self.plots: tuple[TimePlot, ...] = (
            MemoryPlot(store, time, timer, _MEMORY_PLOT_PX),
            KvPlot(store, time, timer, _SMALL_PLOT_PX),
            SpeedPlot(store, time, timer, _SMALL_PLOT_PX),
        )
        self.blocks = BlockMap(store, timer, BlockCanvas(_MAP_PX, grows=False))
        self.tools = ToolsRow(time, (self.blocks, *self.plots))
        self.tools.setContentsMargins(0, 0, 12, 0)
        self.tools.told.connect(self.told)
        self._build()
        self.hide()
        timer.add(self)
        self.redraw()

    # ------------------------------------------------------------------------------------- public

    @property
    def is_folded(self) -> bool:
        """Whether the panel is folded away."""
        return self._is_folded

    @property
    def live_text(self) -> str:
        """The one-line summary; "" when no engine runs."""
        return self._live_text

    def set_folded(self, folded: bool) -> None:
        """Fold the panel away, or show it; it begins folded."""
        if folded != self._is_folded:
            self._is_folded = folded
            self.setVisible(not folded)
            self.folded_changed.emit(folded)

    def set_connections(self, count: int) -> None:
        """Say how many network connections the program has made since it started."""
        words = ngettext("{count} network connection since start", "{count} network connections since start", count)
        self._connections.setText(words.format(count=units.count_text(count)))
        self._connections.setToolTip(
            _("Counted in this program as connections are opened. The engine has no network code.")
        )

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._fold.setIcon(icon("chevron-right", theme))
        self.blocks.set_theme(theme)
        for plot in self.plots:
            plot.set_theme(theme)
        self.tools.set_theme(theme)

    # ------------------------------------------------------------------------------------- for the redraw timer

    def has_moved(self) -> bool:
        """Say whether the figures moved."""
        return self._store.version != self._seen_version

    def is_due(self) -> bool:
        """Say that whatever is new is worth showing."""
        return True

    def is_shown(self) -> bool:
        """Say whether a person can see the figures: folded, the live line stands by the composer."""
        return self.window().isVisible() and not self.window().isMinimized()

    def redraw(self) -> None:
        """Show the newest figures."""
        self._seen_version = self._store.version
        live = self._store.live()
        self._speed.show_figure(*speed_figure(live))
        self._kv.show_figure(*kv_figure(live))
        self._memory.show_figure(*memory_figure(live))
        self._show_state(live)
        text = live_text(live)
        if text != self._live_text:
            self._live_text = text
            self.live_text_changed.emit(text)

    # ------------------------------------------------------------------------------------- slots and helpers

    def _on_fold_clicked(self) -> None:
        self.set_folded(True)

    def _show_state(self, live: LiveFigures) -> None:
        is_empty = self._store.is_empty()
        self._content.setVisible(not is_empty)
        self.tools.setVisible(not is_empty)
        self._state.setVisible(not live.has_engine)
        self._state.setText(
            _("No engine runs. Load a model: its memory, KV cache and speed are drawn here as it works.")
            if is_empty
            else _("The engine is gone. These are its last readings; they continue when it is started again.")
        )

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 0, 12)
        column.setSpacing(8)
        column.addLayout(self._build_header())
        self._state = MutedLabel()
        self._state.setWordWrap(True)
        self._state.setContentsMargins(0, 0, 16, 0)
        column.addWidget(self._state)
        self._content = self._build_content()
        column.addWidget(self._content, 1)
        column.addWidget(self.tools)
        column.addStretch(0)

    def _build_header(self) -> QHBoxLayout:
        header = QHBoxLayout()
        header.setContentsMargins(0, 0, 12, 0)
        header.addWidget(TitleLabel(_("Cutaway")))
        self._connections = ElidedLabel()
        self._connections.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.set_connections(0)
        header.addWidget(self._connections, 1)
        self._fold = QToolButton(self)
        self._fold.setAccessibleName(_("Fold the cutaway"))
        self._fold.setToolTip(_("Fold the cutaway; one live line stays by the message box"))
        self._fold.clicked.connect(self._on_fold_clicked)
        header.addWidget(self._fold)
        return header

    def _build_content(self) -> QScrollArea:
        inside = QWidget()
        inside.setObjectName("cutaway_content")
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 16, 0)
        column.setSpacing(12)
        figures = QHBoxLayout()
        figures.setSpacing(4)
        self._speed, self._kv, self._memory = LiveFigure(), LiveFigure(), LiveFigure()
        for figure, share in ((self._speed, 10), (self._kv, 9), (self._memory, 9)):  # "tokens/s" is the longest unit
            figures.addWidget(figure, share)
        column.addLayout(figures)
        column.addWidget(self.blocks)
        column.addWidget(self.plots[0], 3)
        column.addWidget(self.plots[1], 2)
        column.addWidget(self.plots[2], 2)
        axis = MutedLabel(_("seconds since load"))
        axis.setAlignment(Qt.AlignmentFlag.AlignRight)
        column.addWidget(axis)
        return scrolling(inside)


class LiveFigure(QWidget):
    """One live figure: the number at 22 px with its unit, and under it what it is; the tooltip says how it was got."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._number = PlainLabel(_NOTHING_YET, "figure")
        self._unit = ElidedLabel()
        self._what = ElidedLabel()
        top = QHBoxLayout()
        top.setSpacing(4)
        top.addWidget(self._number, 0, Qt.AlignmentFlag.AlignBaseline)
        top.addWidget(self._unit, 1, Qt.AlignmentFlag.AlignBaseline)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self._what)

    def show_figure(self, value: str, what: str, origin: str) -> None:
        """Show a value with its unit ("9.20 MiB", "" for none yet), what it is, and how it was got."""
        number, _space, unit = value.partition(units.NBSP)
        self._number.setText(number or _NOTHING_YET)
        self._unit.setText(unit)
        self._what.setText(what)
        self.setToolTip(plain_tooltip(f"{what}. {origin}"))
        self.setAccessibleName(what)
        self.setAccessibleDescription(value or _("unknown"))

    def text(self) -> str:
        """Return the figure as it is read."""
        return f"{self._number.text()} {self._unit.text()} {self._what.text()}"


def speed_figure(live: LiveFigures) -> tuple[str, str, str]:
    """Return value, name and origin of the speed of writing."""
    what = _("writing now") if live.is_writing else _("last writing")
    origin = _("Measured: tokens of the last 0.5 s of steps, by the engine's clock.")
    return ("" if live.tokens_per_s is None else units.rate_text(live.tokens_per_s)), what, origin


def kv_figure(live: LiveFigures) -> tuple[str, str, str]:
    """Return value, name and origin of the KV cache in use."""
    origin = _("Counted: tokens held in the KV cache, in bytes, as the engine reports them; reserved when it loaded.")
    if live.kv_used_bytes is None:
        return "", _("KV used"), origin
    what = _("KV of {total}").format(total=units.bytes_text(live.kv_reserved_bytes))
    return units.bytes_text(live.kv_used_bytes), what, origin


def memory_figure(live: LiveFigures) -> tuple[str, str, str]:
    """Return value, name and origin of the measured memory."""
    if live.device_name:
        what = _("device memory of {device}").format(device=live.device_name)
        origin = _("Measured by the card's driver: used by all programs, of {total}.").format(
            total=units.bytes_text(live.device_total_bytes)
        )
    else:
        what = _("system memory")
        origin = _("Measured by the system: memory of the engine's process, mapped files and swap included.")
    if live.highest_memory_bytes is not None:
        origin += " " + _("Highest so far: {highest}.").format(highest=units.bytes_text(live.highest_memory_bytes))
    return ("" if live.memory_bytes is None else units.bytes_text(live.memory_bytes)), what, origin


def live_text(live: LiveFigures) -> str:
    """Return the one-line summary: "151 tokens/s · KV 9.20 of 180 MiB · memory 262 MiB"; "" without an engine."""
    if not live.has_engine:
        return ""
    parts = []
    if live.tokens_per_s is not None:
        parts.append(units.rate_text(live.tokens_per_s))
    if live.kv_used_bytes is not None:
        parts.append(_("KV {amount}").format(amount=units.bytes_of_text(live.kv_used_bytes, live.kv_reserved_bytes)))
    if live.memory_bytes is not None:
        parts.append(_("memory {amount}").format(amount=units.bytes_text(live.memory_bytes)))
    return " · ".join(parts)
