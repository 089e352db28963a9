"""A box to tick, drawn in the theme's colours: the style's own is black on a dark window."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QWidget

from ui.theme import Theme
from ui.widgets.icons import paint_icon

_BOX_PX: Final = 16
_GAP_PX: Final = 8
_RADIUS_PX: Final = 4
_PAD_PX: Final = 3


class TickBox(QCheckBox):
    """The box and its words."""

    def __init__(self, words: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(words, parent)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Return the room for the box and its words."""
        words = self.fontMetrics().horizontalAdvance(self._words())
        return QSize(words + _BOX_PX + _GAP_PX + 2 * _PAD_PX, max(_BOX_PX, self.fontMetrics().height()) + 2 * _PAD_PX)

    def minimumSizeHint(self) -> QSize:
        """Return a width at which the words are cut."""
        return QSize(_BOX_PX + _GAP_PX + 40, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the box, the tick and the words."""
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.hasFocus():
            painter.setPen(QPen(theme.color("accent"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        box = QRectF(_PAD_PX, (self.height() - _BOX_PX) / 2, _BOX_PX, _BOX_PX)
        is_on = self.isChecked()
        painter.setPen(QPen(theme.color("muted"), 1))
        fill = theme.mix("muted", "raised", 0.14) if self.underMouse() and self.isEnabled() else theme.color("raised")
        painter.setBrush(theme.color("text" if self.isEnabled() else "muted") if is_on else fill)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS_PX, _RADIUS_PX)
        if is_on:
            paint_icon(painter, box.adjusted(1, 1, -1, -1), "check-bold", theme.color("surface"))
        painter.setPen(theme.color("text" if self.isEnabled() else "muted"))
        room = self.rect().adjusted(_PAD_PX + _BOX_PX + _GAP_PX, 0, -_PAD_PX, 0)
        shown = self.fontMetrics().elidedText(self._words(), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
        painter.end()

    def hitButton(self, place: object) -> bool:
        """Take a click anywhere in the box and its words."""
        return True

    def _words(self) -> str:
        return self.text().replace("&&", "&")
