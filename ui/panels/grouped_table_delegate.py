"""Paints a table of quantizations: headings, figures, marks and the button of each row.

Knows the model's roles and nothing else; a subclass says how wide the last column is and what is painted in it.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from ui.models.grouped_table_model import (
    ACTION_ROLE,
    IS_RECOMMENDED_ROLE,
    MARK_ROLE,
    NOTE_ROLE,
    QUANTIZATION,
    GroupedTableModel,
)
from ui.theme import BASE_PX, MUTED_PX, Theme, ui_font

Index = QModelIndex | QPersistentModelIndex

PAD_PX: Final = 8
_INDENT_PX: Final = 20
_NOTE_PX: Final = 6  # room for the sign beside a number, so that the figures stay in line
_MARK_GAP_PX: Final = 10
BUTTON_PAD_PX: Final = 8
_BUTTON_MARGIN_PX: Final = 4
_RADIUS_PX: Final = 8
_FRAME_RADIUS_PX: Final = 9
# Wide tables are measured by their first rows; the widths of later ones hardly differ.
_MEASURED_ROWS: Final = 60


class GroupedTableDelegate(QStyledItemDelegate):
    """Paints every cell.

    Attributes:
        theme: the colours.
        hovered_row: whose button is under the mouse; -1 for none.
        pressed_row: whose button is pressed; -1 for none.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.hovered_row = -1
        self.pressed_row = -1

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return the height of a row; widths are the view's own matter."""
        return QSize(0, option.fontMetrics.height() + 12)

    def column_width(self, model: GroupedTableModel, column: int) -> int:
        """Return what a column needs for its heading and its cells."""
        if column == model.action_column:
            return self.action_width(model)
        metrics = QFontMetrics(ui_font(BASE_PX))
        header = QFontMetrics(ui_font(MUTED_PX, QFont.Weight.DemiBold))
        widest = header.horizontalAdvance(model.columns[column].title())
        for row in range(min(model.rowCount(), _MEASURED_ROWS)):
            index = model.index(row, column)
            if model.key_at(row):
                widest = max(widest, metrics.horizontalAdvance(str(index.data())) + _mark_width(index))
        extra = _INDENT_PX - PAD_PX if column == QUANTIZATION else _NOTE_PX if model.columns[column].has_notes else 0
        return widest + 2 * PAD_PX + extra + 1

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a heading or a cell."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_heading = not index.flags() & Qt.ItemFlag.ItemIsEnabled
        if is_heading:
            self._paint_heading(painter, option, index)
        else:
            self._paint_cell(painter, option, index)
        painter.restore()

    # ------------------------------------------------------------------------------ for the subclass

    def button_rect(self, cell: QRect, index: Index) -> QRect:
        """Return where the button of a row lies in its cell; the whole cell where nothing else is in it."""
        return cell.adjusted(PAD_PX, _BUTTON_MARGIN_PX, -PAD_PX, -_BUTTON_MARGIN_PX - 1)

    def action_width(self, model: GroupedTableModel) -> int:
        """Return what the column of the buttons needs."""
        raise NotImplementedError

    def shown_text(self, index: Index, metrics: QFontMetrics, width: int) -> str:
        """Return a cell's words as they fit."""
        return metrics.elidedText(str(index.data() or ""), Qt.TextElideMode.ElideRight, width)

    def most_action_width(self, model: GroupedTableModel) -> int:
        """Return what that column takes where there is room."""
        return self.action_width(model)

    def paint_action(self, painter: QPainter, cell: QRect, index: Index) -> None:
        """Draw the button of a row, or the words in its place."""
        action = index.data(ACTION_ROLE)
        if action is None or not action.words():
            return
        place = self.button_rect(cell, index)
        if action.can_press:
            self.paint_button(painter, place, action.words(), index)
            return
        painter.setFont(ui_font(MUTED_PX))
        painter.setPen(self.theme.color("muted"))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, action.words())

    def paint_button(self, painter: QPainter, place: QRect, words: str, index: Index) -> None:
        """Draw a button as it is: at rest, under the mouse or pressed."""
        is_pressed = self.pressed_row == index.row()
        is_hovered = self.hovered_row == index.row()
        fill = self.theme.color("border" if is_pressed else "raised")
        if is_hovered and not is_pressed:
            fill = self.theme.mix("muted", "raised", 0.14)
        painter.setFont(ui_font(MUTED_PX))
        painter.setBrush(fill)
        painter.setPen(QPen(self.theme.color("border"), 1))
        painter.drawRoundedRect(QRectF(place).adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS_PX, _RADIUS_PX)
        painter.setPen(self.theme.color("text"))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, words)

    # ------------------------------------------------------------------------------------- helpers

    def _paint_heading(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        painter.setFont(ui_font(MUTED_PX, QFont.Weight.DemiBold))
        painter.setPen(self.theme.color("muted"))
        words = str(index.data() or "")
        painter.drawText(rect.adjusted(PAD_PX, 0, -PAD_PX, 0), Qt.AlignmentFlag.AlignVCenter, words)
        self._paint_line(painter, rect, index)

    def _paint_cell(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            self._paint_selected(painter, rect, index)
        self._paint_line(painter, rect, index)
        model = _model(index)
        if index.column() == model.action_column:
            self.paint_action(painter, rect, index)
            return
        font = ui_font(BASE_PX)
        told = index.data(Qt.ItemDataRole.FontRole)
        font.setItalic(isinstance(told, QFont) and told.italic())
        painter.setFont(font)
        painter.setPen(index.data(Qt.ItemDataRole.ForegroundRole))
        left = _INDENT_PX if index.column() == QUANTIZATION else PAD_PX
        right = PAD_PX + (_NOTE_PX if model.columns[index.column()].has_notes else 0)
        room = rect.adjusted(left, 0, -right, -1)
        words = self.shown_text(index, painter.fontMetrics(), room.width() - _mark_width(index))
        painter.drawText(room, int(index.data(Qt.ItemDataRole.TextAlignmentRole)), words)
        self._paint_mark(painter, room, words, index)
        if note := index.data(NOTE_ROLE):
            painter.setPen(self.theme.color("muted"))
            beside = QRect(room.right() + 2, room.top(), _NOTE_PX, room.height())
            painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter, str(note))

    def _paint_mark(self, painter: QPainter, room: QRect, words: str, index: Index) -> None:
        mark = index.data(MARK_ROLE)
        if not mark:
            return
        left = room.left() + painter.fontMetrics().horizontalAdvance(words) + _MARK_GAP_PX
        painter.setFont(ui_font(MUTED_PX))
        painter.setPen(self.theme.color("accent" if index.data(IS_RECOMMENDED_ROLE) else "muted"))
        painter.drawText(QRect(left, room.top(), room.right() - left + 1, room.height()), _MIDDLE, str(mark))

    def _paint_selected(self, painter: QPainter, rect: QRect, index: Index) -> None:
        """Fill a cell of the chosen row; the last row keeps the rounded corners of the table's frame."""
        color = self.theme.color("raised")
        model = _model(index)
        if index.row() < model.rowCount() - 1:
            painter.fillRect(rect.adjusted(0, 0, 0, -1), color)
            return
        left = 0 if index.column() == QUANTIZATION else _FRAME_RADIUS_PX
        right = 0 if index.column() == model.action_column else _FRAME_RADIUS_PX
        painter.save()
        painter.setClipRect(rect)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        rounded = QRectF(rect).adjusted(-left, -_FRAME_RADIUS_PX, right, 0)
        painter.drawRoundedRect(rounded, _FRAME_RADIUS_PX, _FRAME_RADIUS_PX)
        painter.restore()

    def _paint_line(self, painter: QPainter, rect: QRect, index: Index) -> None:
        if index.row() == index.model().rowCount() - 1:
            return
        painter.fillRect(QRect(rect.left(), rect.bottom(), rect.width(), 1), self.theme.color("grid"))


_MIDDLE: Final = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def _mark_width(index: Index) -> int:
    mark = index.data(MARK_ROLE) if index.column() == QUANTIZATION else ""
    return QFontMetrics(ui_font(MUTED_PX)).horizontalAdvance(mark) + _MARK_GAP_PX if mark else 0


def _model(index: Index) -> GroupedTableModel:
    model = index.model()
    assert isinstance(model, GroupedTableModel)
    return model
