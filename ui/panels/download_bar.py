"""A thin bar that shows how much is here. It is only a picture: a screen reader is told in words, and not so often."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import Theme

BAR_PX: Final = 4


def paint_bar(painter: QPainter, rect: QRectF, part: float, theme: Theme, is_quiet: bool = False) -> None:
    """Draw a bar that is filled to a part of one.

    Args:
        painter: draws.
        rect: the whole bar.
        part: 0 to 1.
        theme: gives the colours.
        is_quiet: whether nothing moves: paused, stopped or waiting.
    """
    radius = rect.height() / 2
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("border"))
    painter.drawRoundedRect(rect, radius, radius)
    if part > 0:
        filled = QRectF(rect)
        filled.setWidth(max(rect.height(), rect.width() * min(1.0, part)))
        painter.setBrush(theme.color("rest" if is_quiet else "accent"))
        painter.drawRoundedRect(filled, radius, radius)
    painter.restore()


class DownloadBar(QWidget):
    """The bar as a widget."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._part = 0.0
        self._is_quiet = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_part(self, part: float, is_quiet: bool = False) -> None:
        """Show a part of one; nothing is drawn again where that changes no pixel."""
        before = (round(self._part * self.width() * 2), self._is_quiet)
        self._part, self._is_quiet = part, is_quiet
        if before != (round(part * self.width() * 2), is_quiet):
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of the bar; any width will do."""
        return QSize(80, BAR_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw it."""
        painter = QPainter(self)
        paint_bar(painter, QRectF(self.rect()), self._part, self._theme, self._is_quiet)
        painter.end()
