"""Draws one message of the transcript in the theme's colours.

Knows where the parts lie from `message_layout`, and nothing about scrolling or the mouse.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter

from ui.theme import MUTED_PX, Theme, ui_font
from ui.widgets.icons import paint_icon
from ui.widgets.message_layout import ASSISTANT, BUBBLE_RADIUS_PX, NOTE, USER, MessageLayout

# Space at the right end of the figures' line that belongs to the buttons.
ACTIONS_PX: Final = 72

_STATE_ICON_PX: Final = 16
_CURSOR_WIDTH_PX: Final = 8
_NOTE_BAR_PX: Final = 2


class MessagePainter:
    """Draws messages.

    Attributes:
        theme: the colours.
    """

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self._font: QFont = ui_font(MUTED_PX)
        self._metrics = QFontMetrics(self._font)

    def paint(
        self, painter: QPainter, layout: MessageLayout, corner: QPointF, clip: QRectF, selected: tuple[int, int]
    ) -> None:
        """Draw a message.

        Args:
            painter: draws.
            layout: the message; what lies in the clip is laid out.
            corner: top left corner of the message in the painter's coordinates.
            clip: what must be drawn.
            selected: start and end of its marked characters.
        """
        role = layout.item.role
        if role == USER:
            # The hairline sets the bubble off where its colour is close to the window's (light theme).
            painter.setPen(self.theme.color("grid"))
            painter.setBrush(self.theme.color("bubble"))
            bubble = layout.bubble.translated(corner).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(bubble, BUBBLE_RADIUS_PX, BUBBLE_RADIUS_PX)
        self._paint_text(painter, layout, corner, clip, selected)
        if role == NOTE and layout.pieces:
            bar = QRectF(0, 2, _NOTE_BAR_PX, max(0, layout.state_rect.top() - 4)).translated(corner)
            painter.fillRect(bar, self.theme.color("border"))
        if layout.item.state_text:
            self._paint_state(painter, layout, corner)
        if role == ASSISTANT and layout.item.figures:
            rect = QRectF(layout.figures_rect.adjusted(0, 0, -ACTIONS_PX, 0)).translated(corner)
            self._paint_line(painter, rect, layout.item.figures)

    def is_shortened(self, layout: MessageLayout) -> bool:
        """Return whether the figures of an answer do not fit on their line."""
        room = layout.figures_rect.width() - ACTIONS_PX
        return self._metrics.horizontalAdvance(layout.item.figures) > room

    def _paint_text(
        self, painter: QPainter, layout: MessageLayout, corner: QPointF, clip: QRectF, selected: tuple[int, int]
    ) -> None:
        if not layout.pieces or not (layout.item.text or layout.item.is_streaming):
            return
        marked = self.theme.selection("bubble" if layout.item.role == USER else "window")
        painter.setPen(self.theme.color("muted" if layout.item.role == NOTE and selected[0] == selected[1] else "text"))
        x = corner.x() + layout.text_origin.x()
        first = layout.piece_at(clip.top() - corner.y())
        for index in range(first, len(layout.pieces)):
            piece = layout.pieces[index]
            origin = QPointF(x, corner.y() + layout.piece_top(index))
            if origin.y() > clip.bottom():
                return
            start = layout.piece_start(index)
            piece.draw(painter, origin, clip, (selected[0] - start, selected[1] - start), marked)
        if layout.item.is_streaming:
            point, height = layout.pieces[-1].end_point()
            corner_of_last = QPointF(x, corner.y() + layout.piece_top(len(layout.pieces) - 1))
            self._paint_cursor(painter, corner_of_last + point, height)

    def _paint_cursor(self, painter: QPainter, point: QPointF, line_px: float) -> None:
        # A still block: it says "more is coming" without asking for attention or for a paint.
        height = round(line_px * 0.8)
        rect = QRectF(round(point.x()) + 2, round(point.y() + (line_px - height) / 2), _CURSOR_WIDTH_PX, height)
        painter.fillRect(rect, self.theme.color("muted"))

    def _paint_state(self, painter: QPainter, layout: MessageLayout, corner: QPointF) -> None:
        rect = QRectF(layout.state_rect).translated(corner)
        mark = QRectF(rect.left(), rect.center().y() - _STATE_ICON_PX / 2, _STATE_ICON_PX, _STATE_ICON_PX)
        paint_icon(painter, mark, "alert-circle-outline", self.theme.color("limit"))
        self._paint_line(painter, rect.adjusted(_STATE_ICON_PX + 8, 0, -ACTIONS_PX, 0), layout.item.state_text)

    def _paint_line(self, painter: QPainter, rect: QRectF, text: str) -> None:
        color: QColor = self.theme.color("muted")
        painter.setPen(color)
        painter.setFont(self._font)
        shown = self._metrics.elidedText(" ".join(text.split()), Qt.TextElideMode.ElideRight, int(rect.width()))
        painter.drawText(rect, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)
