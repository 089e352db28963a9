"""The area that shows every block of a map as a cell, with a cursor that the mouse and the arrow keys move.

The picture is kept as pixels; a new state only rewrites the cells that changed. Knows no words and no engine.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.telemetry.block_map import BlockView
from backends.protocol import RequestId
from ui.plots.block_grid import BlockGrid, Kinds, cell_kinds, fit_grid, next_tints, owners_of
from ui.plots.block_sprites import Pictures, block_pictures, pixels_of
from ui.theme import Theme

_NOTHING: Final = range(0)
_TAB_REASONS: Final = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class BlockCanvas(QWidget):
    """The cells of a map.

    Attributes:
        view: what is shown; None for nothing.
        grid: where its cells lie; None for nothing.
        cells_drawn: how many cells were written into the picture so far.
        _cursor: the first block of the cell under the cursor; -1 for none.
        _tints: the lightness of each request's blocks.

    Signals:
        cursor_moved(): the cursor is on another cell, or gone.
        words_wanted(): a person rests on a cell or went there by key: what lies there may be told.
    """

    cursor_moved = Signal()
    words_wanted = Signal()

    def __init__(self, map_px: int, *, grows: bool, padding_px: int = 0, parent: QWidget | None = None) -> None:
        """Take at least so many pixels of height, more where there are more; or else never more than the cells need."""
        super().__init__(parent)
        self.view: BlockView | None = None
        self.grid: BlockGrid | None = None
        self.cells_drawn = 0
        self._map_px = map_px
        self._grows = grows
        self._padding_px = padding_px
        self._theme: Theme | None = None
        self._scale = 0.0
        self._pictures: Pictures | None = None
        self._pictures_of: tuple[str, int, float] = ("", 0, 0.0)
        self._image = QImage()
        self._kinds: Kinds | None = None
        self._cursor = -1
        self._tints: dict[RequestId, int] = {}
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        policy = QSizePolicy.Policy.MinimumExpanding if grows else QSizePolicy.Policy.Fixed
        self.setSizePolicy(QSizePolicy.Policy.Ignored, policy)

    # ------------------------------------------------------------------------------------- public

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self._draw_all()

    def set_view(self, view: BlockView | None) -> None:
        """Show this state of the blocks; the cells that changed are painted again."""
        is_same_size = view is not None and self.view is not None and view.num_blocks == self.view.num_blocks
        self.view = view
        self._tints = next_tints(self._tints, view) if view is not None else {}
        if is_same_size and self._kinds is not None:
            self._draw_changes()
        else:
            self._draw_all()
        if self._cursor >= (view.num_blocks if view is not None else 0):
            self.set_cursor(-1)

    @property
    def cursor_blocks(self) -> range:
        """The blocks of the cell under the cursor; empty for none."""
        if self._cursor < 0 or self.grid is None:
            return _NOTHING
        return self.grid.blocks_of(self._cursor // self.grid.per_cell)

    def set_cursor(self, block: int) -> None:
        """Move the cursor to the cell of a block; -1 takes it away."""
        if self.grid is not None and block >= 0:
            block -= block % self.grid.per_cell
        if block == self._cursor:
            return
        self._update_cursor()
        self._cursor = block
        self._update_cursor()
        self._draw_changes()
        self.cursor_moved.emit()

    def area_of(self, block: int) -> QRectF:
        """Return where a block's cell is drawn, in the pixels of this widget; empty for none."""
        if self.grid is None or not 0 <= block < self.grid.num_blocks:
            return QRectF()
        x_px, y_px = self.grid.place_of(block // self.grid.per_cell)
        step = self.grid.step_px / self._scale
        padding = self._padding_px
        return QRectF(padding + x_px / self._scale, padding + y_px / self._scale, step, step)

    def sizeHint(self) -> QSize:
        """Return the height that was asked for, or what the cells need; any width will do."""
        if self._grows or self.grid is None:
            return QSize(0, self._map_px)
        return QSize(0, math.ceil(self.grid.rows * self.grid.step_px / self._scale) + 2 * self._padding_px)

    def minimumSizeHint(self) -> QSize:
        """Return the same."""
        return self.sizeHint()

    # ------------------------------------------------------------------------------------- events

    def event(self, event: QEvent) -> bool:
        """Have the words for what the mouse rests on told."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            if self.cursor_blocks:
                self.words_wanted.emit()
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the cursor to the cell under the mouse."""
        self.set_cursor(self._block_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        """Take the cursor away."""
        super().leaveEvent(event)
        self.set_cursor(-1)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show where the keyboard is."""
        super().focusInEvent(event)
        if event.reason() in _TAB_REASONS and self._cursor < 0 and self.grid is not None:
            self.set_cursor(0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Take the cursor away."""
        super().focusOutEvent(event)
        self.set_cursor(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the cursor with the arrow keys, Home and End; take it away with Escape."""
        key, grid = event.key(), self.grid
        if grid is None or (key == Qt.Key.Key_Escape and self._cursor < 0):
            super().keyPressEvent(event)
            return
        last = grid.num_cells - 1
        cell = self._cursor // grid.per_cell if self._cursor >= 0 else 0
        steps = {
            Qt.Key.Key_Left: cell - 1,
            Qt.Key.Key_Right: cell + 1,
            Qt.Key.Key_Up: cell - grid.columns if cell >= grid.columns else cell,
            Qt.Key.Key_Down: cell + grid.columns if cell + grid.columns <= last else cell,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        if key == Qt.Key.Key_Escape:
            self.set_cursor(-1)
        elif key in steps:
            wanted = steps[Qt.Key(key)] if self._cursor >= 0 else 0
            self.set_cursor(min(max(wanted, 0), last) * grid.per_cell)
            self.words_wanted.emit()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the cells out for the new size."""
        super().resizeEvent(event)
        self._draw_all()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the picture and the cursor."""
        if self._theme is None:
            return
        if self._scale != self.devicePixelRatioF():  # the window went to another screen
            self._draw_all()
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._theme.color("surface"))
        if self.grid is None:
            return
        # In the screen's own pixels: Qt would scale the picture by one otherwise, which takes several times as long.
        painter.save()
        painter.scale(1 / self._scale, 1 / self._scale)
        painter.drawImage(QPointF(self._padding_px * self._scale, self._padding_px * self._scale), self._image)
        painter.restore()
        if self.cursor_blocks:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self._theme.color("accent" if self.hasFocus() else "text"), 2))
            painter.drawRoundedRect(self._cursor_area(), 3, 3)

    # ------------------------------------------------------------------------------------- helpers

    def _block_at(self, place: QPointF) -> int:
        if self.grid is None:
            return -1
        padding = self._padding_px
        cell = self.grid.cell_at((place.x() - padding) * self._scale, (place.y() - padding) * self._scale)
        return cell * self.grid.per_cell if cell >= 0 else -1

    def _cursor_area(self) -> QRectF:
        """Return the outline of the cell under the cursor: around the block, without its gap."""
        area = self.area_of(self._cursor)
        gap = 2 if area.width() >= 9 else 1
        return area.adjusted(-1, -1, 1 - gap, 1 - gap)

    def _update_cursor(self) -> None:
        if self._cursor >= 0:
            self.update(self.area_of(self._cursor).adjusted(-4, -4, 4, 4).toAlignedRect())

    def _draw_all(self) -> None:
        """Lay the cells out and draw each of them."""
        self._kinds = None
        self.grid = None
        self.update()
        self._scale = self.devicePixelRatioF()
        view = self.view
        height = self.height() if self._grows else self._map_px
        room_px = [int((length - 2 * self._padding_px) * self._scale) for length in (self.width(), height)]
        if view is None or self._theme is None or not view.num_blocks or min(room_px) <= 0:
            return
        self.grid = grid = fit_grid(view.num_blocks, room_px[0], room_px[1], self._scale)
        wanted = (self._theme.name, grid.step_px, self._scale)
        if wanted != self._pictures_of or self._pictures is None:
            self._pictures, self._pictures_of = block_pictures(self._theme, grid.step_px, self._scale), wanted
        size = QSize(grid.columns * grid.step_px, grid.rows * grid.step_px)
        if self._image.size() != size:
            self._image = QImage(size, QImage.Format.Format_RGB32)
        self._image.fill(self._theme.color("surface"))
        self._kinds = cell_kinds(view, grid, self._tints, self._marked())
        self._write(np.arange(grid.num_cells))
        if not self._grows:
            self.updateGeometry()

    def _draw_changes(self) -> None:
        """Draw the cells that are of another kind than they were."""
        if self.view is None or self.grid is None or self._kinds is None:
            return
        kinds = cell_kinds(self.view, self.grid, self._tints, self._marked())
        changed = np.flatnonzero(kinds != self._kinds)
        self._kinds = kinds
        if len(changed):
            self._write(changed)
            first, last = (self.area_of(int(cell) * self.grid.per_cell) for cell in (changed[0], changed[-1]))
            top = int(first.top())
            self.update(QRect(0, top, self.width(), int(last.bottom()) + 1 - top))

    def _write(self, cells: np.ndarray[tuple[int], np.dtype[np.intp]]) -> None:
        """Put the pictures of these cells into the image."""
        assert self.grid is not None
        assert self._kinds is not None
        assert self._pictures is not None
        rows, columns, step_px = self.grid.rows, self.grid.columns, self.grid.step_px
        pixels = pixels_of(self._image).reshape(rows, step_px, columns, step_px).transpose(0, 2, 1, 3)
        pixels[cells // columns, cells % columns] = self._pictures[self._kinds[cells]]
        self.cells_drawn += len(cells)

    def _marked(self) -> frozenset[int]:
        """Return the sequences that the cursor is on, where there are others to tell them from."""
        if self.view is None or len(self.view.owners) < 2 or self._cursor < 0:
            return frozenset()
        return frozenset().union(*(owners_of(self.view, block) for block in self.cursor_blocks))
