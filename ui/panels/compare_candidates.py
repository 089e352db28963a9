"""The table in which quantizations are ticked for a comparison: a box in each row, a button for a second KV cache.

Knows no library. Space ticks, Enter presses the button, a click on the box ticks.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from app.i18n import _
from ui.models.compare_candidates_model import QUANTIZATION, TICK_ROLE, CandidatesModel, KvAction
from ui.models.grouped_table_model import GroupedTableModel
from ui.panels.compare_table import indent_header
from ui.panels.grouped_table import GroupedTable
from ui.panels.grouped_table_delegate import BUTTON_PAD_PX, PAD_PX, GroupedTableDelegate
from ui.theme import MUTED_PX, Theme, ui_font
from ui.widgets.icons import paint_icon

Index = QModelIndex | QPersistentModelIndex

_BOX_PX: Final = 16
_BOX_LEFT_PX: Final = 12
# How far the words of the first column are moved to make room for the box.
_SHIFT_PX: Final = 16
_RADIUS_PX: Final = 4
_SELECTED: Final = QStyle.StateFlag.State_Selected


class CandidatesTable(GroupedTable):
    """The view of a CandidatesModel.

    Attributes:
        candidates: its model.
        _pressed_box: the row whose box the mouse was pressed on; -1 for none.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        candidates = CandidatesModel(theme)
        super().__init__(candidates, CandidatesDelegate(theme), parent)
        self.candidates = candidates
        self._pressed_box = -1
        self.setAccessibleName(_("Quantizations to compare"))
        self.action_requested.connect(candidates.toggle_kv)
        indent_header(self, _BOX_LEFT_PX + _BOX_PX + 8)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Tick the chosen row with Space."""
        is_plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier
        if is_plain and event.key() == Qt.Key.Key_Space and self.chosen_key:
            self.candidates.toggle(self.chosen_key)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember which box the mouse was pressed on."""
        super().mousePressEvent(event)
        is_left = event.button() == Qt.MouseButton.LeftButton
        self._pressed_box = self._box_at(event.position().toPoint()) if is_left else -1

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Tick where the mouse leaves the box that it pressed."""
        super().mouseReleaseEvent(event)
        pressed, self._pressed_box = self._pressed_box, -1
        if pressed >= 0 and self._box_at(event.position().toPoint()) == pressed:
            self.candidates.toggle(self.candidates.key_at(pressed))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Take a second click for a click: a double click does nothing of its own here."""
        self.mousePressEvent(event)

    def box_rect(self, index: QModelIndex) -> QRect:
        """Return where the box of a row is."""
        return box_rect(self.visualRect(index.siblingAtColumn(QUANTIZATION)))

    def _box_at(self, place: QPoint) -> int:
        """Return the row whose box, or the words beside it, are at a place; -1 for none."""
        index = self.indexAt(place)
        is_box = index.isValid() and index.column() == QUANTIZATION and index.data(TICK_ROLE) is not None
        return index.row() if is_box else -1


class CandidatesDelegate(GroupedTableDelegate):
    """Paints every cell, and the boxes."""

    def column_width(self, model: GroupedTableModel, column: int) -> int:
        """Return what a column needs; the first one has a box."""
        return super().column_width(model, column) + (_SHIFT_PX if column == QUANTIZATION else 0)

    def action_width(self, model: GroupedTableModel) -> int:
        """Return the width of the longest button, so that the column never moves."""
        metrics = QFontMetrics(ui_font(MUTED_PX))
        return metrics.horizontalAdvance(KvAction(True, True).words()) + 2 * (BUTTON_PAD_PX + PAD_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw a cell; the words of the first column stand behind its box."""
        if index.column() != QUANTIZATION:
            super().paint(painter, option, index)
            return
        cell = QRect(option.rect)
        beside = QStyleOptionViewItem(option)
        beside.rect = cell.adjusted(_SHIFT_PX, 0, 0, 0)
        self._paint_left(painter, option, index, QRect(cell.left(), cell.top(), _SHIFT_PX, cell.height()))
        super().paint(painter, beside, index)
        is_ticked = index.data(TICK_ROLE)
        if is_ticked is not None:
            self._paint_box(painter, box_rect(cell), bool(is_ticked))

    def _paint_left(self, painter: QPainter, option: QStyleOptionViewItem, index: Index, left: QRect) -> None:
        """Draw what lies under the box: the chosen row's colour and the line between rows."""
        painter.save()
        if option.state & _SELECTED:
            self._paint_selected(painter, left, index)
        self._paint_line(painter, left, index)
        painter.restore()

    def _paint_box(self, painter: QPainter, place: QRect, is_ticked: bool) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.theme.color("muted"), 1))
        painter.setBrush(self.theme.color("text" if is_ticked else "raised"))
        box = QRectF(place)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS_PX, _RADIUS_PX)
        if is_ticked:
            paint_icon(painter, box.adjusted(1, 1, -1, -1), "check-bold", self.theme.color("surface"))
        painter.restore()


def box_rect(cell: QRect) -> QRect:
    """Return where the box lies in a cell of the first column."""
    return QRect(cell.left() + _BOX_LEFT_PX, cell.top() + (cell.height() - 1 - _BOX_PX) // 2, _BOX_PX, _BOX_PX)
