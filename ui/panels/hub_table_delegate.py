"""Paints a repo's table; its last column holds words, a thin bar and a button: "64 % · 48 MB/s · 40 s" and Pause.

Knows the model's roles and nothing else.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter

from app.i18n import _
from app.units import NBSP
from ui.models.download_words import Button
from ui.models.grouped_table_model import ACTION_ROLE, GroupedTableModel
from ui.models.hub_columns import COLUMNS, HERE
from ui.models.hub_table_model import HubAction
from ui.panels.download_bar import paint_bar
from ui.panels.grouped_table_delegate import BUTTON_PAD_PX, PAD_PX, GroupedTableDelegate, Index
from ui.theme import BASE_PX, MUTED_PX, Theme, ui_font

_GAP_PX: Final = 8
_BAR_PX: Final = 3
_SEPARATOR: Final = " · "
# The words that the column must have room for, and those it should have.
_LESS: Final = f"100{NBSP}% · 48{NBSP}MB/s"
_ALL: Final = f"100{NBSP}% · 48{NBSP}MB/s · 40{NBSP}s"
_MIDDLE: Final = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class HubTableDelegate(GroupedTableDelegate):
    """Paints every cell.

    Attributes:
        is_compact: whether there is room for the percentage only.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(theme, parent)
        self.is_compact = False

    def column_width(self, model: GroupedTableModel, column: int) -> int:
        """Return what a column needs; where there is little room, of the fit only its beginning."""
        needed = super().column_width(model, column)
        if column != HERE or not self.is_compact:
            return needed
        short = QFontMetrics(ui_font(BASE_PX)).horizontalAdvance(_("room for {tokens}").format(tokens="999k"))
        title = QFontMetrics(ui_font(MUTED_PX, QFont.Weight.DemiBold)).horizontalAdvance(COLUMNS[HERE].title())
        return min(needed, max(short, title) + 2 * PAD_PX + 1)

    def shown_text(self, index: Index, metrics: QFontMetrics, width: int) -> str:
        """Return a cell's words as they fit; of the fit rather the whole beginning than a part of the end."""
        words = str(index.data() or "")
        if index.column() == HERE and metrics.horizontalAdvance(words) > width:
            beginning = words.partition(_SEPARATOR)[0]
            return metrics.elidedText(beginning, Qt.TextElideMode.ElideRight, width)
        return super().shown_text(index, metrics, width)

    def action_width(self, model: GroupedTableModel) -> int:
        """Return what the least words and their button need, so that the column never moves."""
        least = _width(f"100{NBSP}%" if self.is_compact else _LESS)
        return least + _GAP_PX + _least_button() + 2 * PAD_PX

    def most_action_width(self, model: GroupedTableModel) -> int:
        """Return the room for everything: "64 % · 48 MB/s · 40 s" and a button."""
        if self.is_compact:
            return self.action_width(model)
        return _width(_ALL) + _GAP_PX + _least_button() + 2 * PAD_PX

    def button_rect(self, cell: QRect, index: Index) -> QRect:
        """Return the button at the right end of the cell."""
        whole = super().button_rect(cell, index)
        action = index.data(ACTION_ROLE)
        words = action.words() if isinstance(action, HubAction) else ""
        width = min(whole.width(), max(_least_button(), _width(words) + 2 * BUTTON_PAD_PX))
        return whole.adjusted(whole.width() - width, 0, 0, 0)

    def paint_action(self, painter: QPainter, cell: QRect, index: Index) -> None:
        """Draw words, bar and button of a row."""
        action = index.data(ACTION_ROLE)
        if not isinstance(action, HubAction):
            return
        button = self.button_rect(cell, index)
        right = button.left() - _GAP_PX if action.can_press else button.right()
        if action.can_press:
            self.paint_button(painter, button, action.words(), index)
        room = QRect(cell.left() + PAD_PX, cell.top(), max(0, right - cell.left() - PAD_PX), cell.height() - 1)
        self._paint_texts(painter, room, action)

    def _paint_texts(self, painter: QPainter, room: QRect, action: HubAction) -> None:
        if not action.texts:
            return
        words = next((text for text in action.texts if _width(text) <= room.width()), "")
        painter.setFont(ui_font(MUTED_PX))
        is_stopped = action.kind in (Button.RETRY.value, Button.TOKEN.value, Button.CHOOSE.value)
        painter.setPen(self.theme.color("text" if action.part is not None and not is_stopped else "muted"))
        if action.part is None:
            painter.drawText(room, _MIDDLE, words)
            return
        painter.drawText(room.adjusted(0, 0, 0, -_BAR_PX - 3), _MIDDLE, words)
        bar = QRectF(room.left(), room.bottom() - _BAR_PX - 4, room.width(), _BAR_PX)
        paint_bar(painter, bar, action.part, self.theme, action.is_quiet)


def _width(words: str) -> int:
    return QFontMetrics(ui_font(MUTED_PX)).horizontalAdvance(words)


def _least_button() -> int:
    """Return the width that all usual buttons share, so that they stand in a column."""
    buttons = (Button.PAUSE, Button.RESUME, Button.RETRY, Button.NOW, Button.USE)
    usual = (_("Download"), *(button.words() for button in buttons))
    return max(map(_width, usual)) + 2 * BUTTON_PAD_PX
