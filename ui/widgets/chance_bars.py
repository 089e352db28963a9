"""A model's likeliest tokens at one place as small bars with their probabilities.

Knows no model: it is given words and probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.units import percent_text
from ui.theme import BASE_PX, Theme, mono_font, ui_font

ROWS: Final = 6  # the five likeliest, and the token that stands in the text where it is not among them
_ROW_PX: Final = 24
_BAR_PX: Final = 8
_GAP_PX: Final = 10
_WORD_SHARE: Final = 0.4
_FIGURE_PX: Final = 62


@dataclass(frozen=True, slots=True)
class Bar:
    """One token.

    Attributes:
        text: what it adds, made visible.
        probability: from 0 to 1.
        is_written: whether it is the one that stands in the text.
    """

    text: str
    probability: float
    is_written: bool = False


class ChanceBars(QWidget):
    """The bars; the token that stands in the text is bold, and its bar is in the accent's colour."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.bars: tuple[Bar, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_bars(self, bars: Sequence[Bar]) -> None:
        """Show these, in this order."""
        self.bars = tuple(bars[:ROWS])
        self.setAccessibleDescription(", ".join(f"{bar.text} {percent_text(bar.probability)}" for bar in self.bars))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Return the room for all rows, so that nothing moves with the number of bars."""
        return QSize(260, ROWS * _ROW_PX)

    def minimumSizeHint(self) -> QSize:
        """Return a width that still shows some of each part."""
        return QSize(180, ROWS * _ROW_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the rows."""
        theme = self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        word_px = round(self.width() * _WORD_SHARE)
        track_px = self.width() - word_px - _FIGURE_PX - 2 * _GAP_PX
        for number, bar in enumerate(self.bars):
            top = number * _ROW_PX
            weight = QFont.Weight.DemiBold if bar.is_written else QFont.Weight.Normal
            word, figure = mono_font(BASE_PX), ui_font(BASE_PX, weight)
            word.setWeight(weight)
            painter.setPen(theme.color("text" if bar.is_written else "muted"))
            painter.setFont(word)
            shown = QFontMetrics(word).elidedText(bar.text, Qt.TextElideMode.ElideRight, word_px)
            middle = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
            painter.drawText(QRectF(0, top, word_px, _ROW_PX), middle, shown)
            painter.setFont(figure)
            right = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
            painter.drawText(
                QRectF(self.width() - _FIGURE_PX, top, _FIGURE_PX, _ROW_PX), right, percent_text(bar.probability)
            )
            track = QRectF(word_px + _GAP_PX, top + (_ROW_PX - _BAR_PX) / 2, track_px, _BAR_PX)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("grid"))
            painter.drawRoundedRect(track, 2, 2)
            painter.setBrush(theme.color("accent" if bar.is_written else "muted"))
            track.setWidth(max(1.0, track_px * max(0.0, min(1.0, bar.probability))))
            painter.drawRoundedRect(track, 2, 2)
        painter.end()
