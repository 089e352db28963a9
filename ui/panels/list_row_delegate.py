"""Paints a row of a list of models: a name, a mark beside it, and the line under it.

Knows the roles of the lists' models and nothing else.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE
from ui.theme import BASE_PX, MUTED_PX, Theme, ui_font

Index = QModelIndex | QPersistentModelIndex

_ROW_PX: Final = 48
_PAD_PX: Final = 12
_RADIUS_PX: Final = 8


class ListRowDelegate(QStyledItemDelegate):
    """Paints a name and the line under it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the height of two lines; no name makes the list wider."""
        return QSize(0, max(_ROW_PX, 2 * option.fontMetrics.height() + 14))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a row."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect: QRect = option.rect.adjusted(0, 1, 0, -1)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        if is_selected or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self.theme.color("raised") if is_selected else self.theme.mix("raised", "surface", 0.5))
            painter.drawRoundedRect(QRectF(rect), _RADIUS_PX, _RADIUS_PX)
        inside = rect.adjusted(_PAD_PX, 5, -_PAD_PX, -5)
        half = inside.height() // 2
        is_faulty = bool(index.data(FAULTY_ROLE))
        weight = QFont.Weight.DemiBold if is_selected else QFont.Weight.Normal
        mark = str(index.data(NAME_MARK_ROLE) or "")
        mark_width = QFontMetrics(ui_font(MUTED_PX)).horizontalAdvance(mark) + 2
        top = inside.adjusted(0, 0, 0, -half if index.data(SECOND_ROLE) else 0)
        self._paint_line(painter, top.adjusted(top.width() - mark_width, 0, 0, 0), mark, "muted", ui_font(MUTED_PX))
        top.setRight(top.right() - (mark_width + _PAD_PX if mark else 0))
        self._paint_line(painter, top, str(index.data()), "text", ui_font(BASE_PX, weight))
        second = str(index.data(SECOND_ROLE) or "")
        role = "limit" if is_faulty else "muted"
        self._paint_line(painter, inside.adjusted(0, half, 0, 0), second, role, ui_font(MUTED_PX))
        painter.restore()

    def _paint_line(self, painter: QPainter, rect: QRect, words: str, role: str, font: QFont) -> None:
        painter.setFont(font)
        painter.setPen(self.theme.color(role))
        shown = painter.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
