"""The map of the KV blocks: one cell a block, with counts, and the text of a block for who rests on it.

Physical blocks where the engine has some, pieces of the context where it only counts tokens; the map says which. It
redraws with the plots' timer and knows no engine: it asks for a block's text by a signal.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QToolTip, QVBoxLayout, QWidget

from app import units
from app.i18n import _
from app.telemetry.block_map import BlockState, BlockView
from app.telemetry.export import Table, blocks_table
from app.telemetry.store import TelemetryStore
from backends import protocol
from ui.plots.block_canvas import BlockCanvas
from ui.plots.block_grid import FREE_KIND, KEPT_KIND, shared_kind, used_kind
from ui.plots.block_sprites import paint_block
from ui.plots.block_words import (
    block_with_text,
    cell_words,
    hint,
    short_words,
    size_words,
    state_names,
    summary,
    text_words,
)
from ui.plots.legend import Caption, Entry, Legend, Mark
from ui.plots.redraw import RedrawTimer
from ui.theme import Theme
from ui.widgets.labels import ElidedLabel, plain_tooltip

_KINDS: Final = {
    BlockState.SHARED: shared_kind(),
    BlockState.USED: used_kind(0),
    BlockState.KEPT: KEPT_KIND,
    BlockState.FREE: FREE_KIND,
}


class BlockLegend(Legend):
    """The states in words with their counts, each beside a block that looks so."""

    def paint_mark(self, painter: QPainter, area: QRectF, entry: Entry, theme: Theme) -> None:
        """Draw a block."""
        paint_block(painter, area, _KINDS[BlockState[entry.key]], theme)


class BlockMap(QWidget):
    """The map.

    Attributes:
        caption: the line above.
        canvas: the cells.
        legend: the counts below.
        told: what was last said of the block under the cursor, as a tooltip and to a screen reader; "" for nothing.

    Signals:
        asked(int): the text that lies in a block is wanted; `show_described` takes the answer.
    """

    asked = Signal(int)

    def __init__(
        self, store: TelemetryStore, timer: RedrawTimer, canvas: BlockCanvas, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.told = ""
        self._store = store
        self._timer = timer
        self._theme: Theme | None = None
        self._seen_version = -1
        self._asked = -1
        self.caption = Caption(_("KV BLOCKS"), self)
        self.canvas = canvas
        self.legend = BlockLegend(_entries(None), self)
        self._size = ElidedLabel()
        self.setAccessibleName(_("KV blocks: which are shared, used, kept and free"))
        self.canvas.setAccessibleName(self.accessibleName())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.caption)
        column.addWidget(self.canvas, 1)
        column.addSpacing(2)
        column.addWidget(self.legend)
        column.addWidget(self._size)
        self.canvas.cursor_moved.connect(self._on_cursor_moved)
        self.canvas.words_wanted.connect(self._on_words_wanted)
        timer.add(self)

    # ------------------------------------------------------------------------------------- public

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.caption.set_theme(theme)
        self.legend.set_theme(theme)
        self.canvas.set_theme(theme)
        self._seen_version = -1
        self._timer.wake()

    def table(self) -> Table:
        """Return the blocks, for the table twin."""
        return blocks_table(self._store)

    def show_described(self, described: protocol.BlockDescribed) -> None:
        """Tell the text of the block that was asked for; nothing happens when the cursor has moved on."""
        view, blocks = self.canvas.view, self.canvas.cursor_blocks
        if view is None or described.block != self._asked or described.block not in blocks:
            return
        self._asked = -1
        self._tell(text_words(view, blocks, described.text, described.users))

    def size_text(self) -> str:
        """Return the line under the legend."""
        return self._size.text()

    # ------------------------------------------------------------------------------------- for the redraw timer

    def has_moved(self) -> bool:
        """Say whether there is something new to draw."""
        return self._theme is not None and self._store.blocks_version != self._seen_version

    def is_due(self) -> bool:
        """Say that whatever is new is worth showing."""
        return True

    def is_shown(self) -> bool:
        """Say whether a person can see the map."""
        return self.isVisible() and not self.window().isMinimized() and not self.visibleRegion().isEmpty()

    def redraw(self) -> None:
        """Show the newest state of the blocks."""
        self._seen_version = self._store.blocks_version
        view = self._store.blocks()
        self.canvas.set_view(view)
        self._shape_legend(view)
        self.legend.set_values(
            {state.name: units.count_text(view.count(state)) for state in BlockState} if view is not None else {}
        )
        self._size.setText(" · ".join(size_words(view)) if view is not None else "")
        self._show_hint()

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

    # ------------------------------------------------------------------------------------- slots and helpers

    def _shape_legend(self, view: BlockView | None) -> None:
        entries, widest = _entries(view), units.count_text(view.num_blocks if view is not None else 0)
        if (entries, widest) != (self.legend.entries, self.legend.widest_value):
            self.legend.entries, self.legend.widest_value = entries, widest
            self.legend.updateGeometry()

    def _on_cursor_moved(self) -> None:
        self._asked = -1
        self.told = ""
        self._show_hint()

    def _on_words_wanted(self) -> None:
        view, blocks = self.canvas.view, self.canvas.cursor_blocks
        if view is None or not blocks:
            return
        self._tell(cell_words(view, blocks))
        block = block_with_text(view, blocks)
        if block >= 0:
            self._asked = block
            self.asked.emit(block)

    def _tell(self, words: str) -> None:
        self.told = words
        self.canvas.setAccessibleDescription(words)
        area = self.canvas.area_of(self.canvas.cursor_blocks.start).toAlignedRect()
        below = self.canvas.mapToGlobal(area.bottomLeft())
        QToolTip.showText(below, plain_tooltip(words), self.canvas, area)

    def _show_hint(self) -> None:
        view, blocks, grid = self.canvas.view, self.canvas.cursor_blocks, self.canvas.grid
        if view is None:
            self.caption.set_words("", _("the engine tells nothing of its KV cache"))
            self.canvas.setAccessibleDescription("")
            return
        words = short_words(view, blocks) if blocks else hint(view, grid.per_cell if grid is not None else 1)
        self.caption.set_words("", words)
        if not self.told:
            self.canvas.setAccessibleDescription(cell_words(view, blocks) if blocks else summary(view))


def _entries(view: BlockView | None) -> tuple[Entry, ...]:
    """Return the states as a legend's entries; the role is of no use, since each is drawn as a block."""
    return tuple(Entry(state.name, name, "kv", Mark.SOLID) for state, name in state_names(view).items())
