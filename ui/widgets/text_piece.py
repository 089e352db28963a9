"""A piece of text of at most 2,000 characters: its layout, made when it is first seen and dropped when far away.

A piece holds one QTextLayout per paragraph, so that text which grows lays out its last paragraph only. Plain text:
no markup is ever read. Knows no message and no widget; places are in pixels from the piece's own corner.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, cast

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QTextLayout, QTextLine, QTextOption

from ui.widgets.display_text import TextShape, char_offset, has_right_to_left, utf16_offset

_TAB_CHARS: Final = 4


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a text is set.

    Attributes:
        font: its font.
        line_px: distance from line to line; a line with taller letters takes more.
        char_px: width of an average letter, for estimates.
        option: wrapping and tabs.
    """

    font: QFont
    line_px: int
    char_px: float
    option: QTextOption

    @classmethod
    def of(cls, font: QFont, line_px: int) -> TextStyle:
        """Return the style of a font with a distance from line to line in pixels."""
        metrics = QFontMetricsF(font)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        option.setTabStopDistance(metrics.horizontalAdvance(" ") * _TAB_CHARS)
        # An average of English prose; counting real widths would cost what the estimate is there to save.
        char_px = metrics.horizontalAdvance("the quick brown fox jumps over it") / 33
        return cls(font, line_px, char_px, option)

    def estimated_height(self, shape: TextShape, width_px: int) -> int:
        """Return about how high a text of this shape is in a width, in pixels."""
        return shape.estimated_lines(width_px / self.char_px) * self.line_px


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """One laid out paragraph: its first character's offset, its text, its top and height in the piece."""

    start: int
    text: str
    layout: QTextLayout
    top: int
    height: int


class TextPiece:
    """A piece of text in a given width.

    Attributes:
        text: the piece, with its line ends.
        height_px: its height; an estimate until `is_exact`.
        is_exact: whether the height was measured in the present width.
        natural_px: width of the longest line, once laid out.
    """

    __slots__ = ("_paragraphs", "_style", "_width_px", "height_px", "is_exact", "natural_px", "text")

    def __init__(self, text: str, style: TextStyle, width_px: int) -> None:
        self.text = text
        self.natural_px = 0.0
        self._style = style
        self._paragraphs: list[_Paragraph] = []
        self.set_width(width_px)

    @property
    def is_laid_out(self) -> bool:
        """Whether the lines exist."""
        return bool(self._paragraphs)

    @property
    def last_line_top_px(self) -> int:
        """Top of the paragraph that grows while text arrives."""
        return self._paragraphs[-1].top if self._paragraphs else 0

    def set_width(self, width_px: int) -> None:
        """Forget the lines and estimate the height in a new width."""
        self._width_px = max(1, width_px)
        self._paragraphs.clear()
        self.is_exact = False
        self.height_px = self._style.estimated_height(TextShape.of(self.text), self._width_px)

    def lay_out(self) -> None:
        """Make the lines, unless they exist."""
        if not self._paragraphs:
            self.natural_px = 0.0
            self._lay_out_from(0)

    def extend(self, more: str) -> None:
        """Add text at the end; only the last paragraph is laid out again."""
        start = 0
        if self._paragraphs:
            start = len(self.text) if self.text.endswith("\n") else self._paragraphs.pop().start
        self.text += more
        self._lay_out_from(start)

    def release(self) -> None:
        """Drop the lines and keep the height."""
        self._paragraphs.clear()

    def draw(self, painter: QPainter, origin: QPointF, clip: QRectF, selected: tuple[int, int], color: QColor) -> None:
        """Draw the lines inside the clip in the painter's pen.

        Args:
            painter: draws.
            origin: the piece's corner.
            clip: what must be drawn, in the painter's coordinates.
            selected: start and end of the selected characters.
            color: background of selected text.
        """
        first = self._index_at(clip.top() - origin.y())
        for paragraph in self._paragraphs[first:]:
            corner = QPointF(origin.x(), origin.y() + paragraph.top)
            if corner.y() > clip.bottom():
                break
            start = max(0, selected[0] - paragraph.start)
            end = min(len(paragraph.text), selected[1] - paragraph.start)
            if start < end:
                self._draw_selected(painter, corner, paragraph, (start, end), color)
            else:
                paragraph.layout.draw(painter, corner)

    def offset_at(self, x: float, y: float) -> int:
        """Return the character offset nearest to a place."""
        if not self._paragraphs:
            return 0
        paragraph = self._paragraphs[self._index_at(y)]
        layout = paragraph.layout
        line = layout.lineAt(0)
        for number in range(1, layout.lineCount()):
            if layout.lineAt(number).y() > y - paragraph.top:
                break
            line = layout.lineAt(number)
        return paragraph.start + char_offset(paragraph.text, line.xToCursor(x))

    def end_point(self) -> tuple[QPointF, float]:
        """Return the top left corner of the place after the last letter, and the height of its line."""
        if not self._paragraphs:
            return QPointF(0, 0), float(self._style.line_px)
        paragraph = self._paragraphs[-1]
        line = paragraph.layout.lineAt(paragraph.layout.lineCount() - 1)
        x = _x(line, utf16_offset(paragraph.text, len(paragraph.text)))
        return QPointF(x, paragraph.top + line.y()), line.height()

    def _lay_out_from(self, start: int) -> None:
        last = self._paragraphs[-1] if self._paragraphs else None
        top = last.top + last.height if last else 0
        rest = self.text[start:]
        if start == 0 or rest:
            for text in rest.removesuffix("\n").split("\n"):
                paragraph = self._paragraph(start, text, top)
                self._paragraphs.append(paragraph)
                start += len(text) + 1
                top += paragraph.height
        self.height_px = top
        self.is_exact = True

    def _paragraph(self, start: int, text: str, top: int) -> _Paragraph:
        layout = QTextLayout(text, self._style.font)
        layout.setTextOption(self._style.option)
        layout.setCacheEnabled(True)  # otherwise Qt shapes the letters again at every paint
        y = 0
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(self._width_px)
            pitch = self._pitch(line)
            line.setPosition(QPointF(0, y + (pitch - line.height()) // 2))
            self.natural_px = max(self.natural_px, line.naturalTextWidth())
            y += pitch
        layout.endLayout()
        return _Paragraph(start, text, layout, top, y)

    def _pitch(self, line: QTextLine) -> int:
        return max(self._style.line_px, math.ceil(line.height()))

    def _index_at(self, y: float) -> int:
        return max(0, bisect_right(self._paragraphs, y, key=lambda paragraph: paragraph.top) - 1)

    def _draw_selected(
        self, painter: QPainter, corner: QPointF, paragraph: _Paragraph, selected: tuple[int, int], color: QColor
    ) -> None:
        start, end = (utf16_offset(paragraph.text, offset) for offset in selected)
        if has_right_to_left(paragraph.text):
            # A stretch of text that runs both ways is several stretches on the screen: Qt knows which.
            marked = QTextLayout.FormatRange()
            marked.start, marked.length = start, end - start
            marked.format.setBackground(color)
            paragraph.layout.draw(painter, corner, [marked])
            return
        for number in range(paragraph.layout.lineCount()):
            line = paragraph.layout.lineAt(number)
            first, last = max(start, line.textStart()), min(end, line.textStart() + line.textLength())
            if first >= last:
                continue
            pitch = self._pitch(line)
            top = corner.y() + line.y() - (pitch - line.height()) // 2
            left, right = _x(line, first), _x(line, last)
            painter.fillRect(QRectF(corner.x() + left, top, right - left, pitch), color)
        paragraph.layout.draw(painter, corner)


def _x(line: QTextLine, position: int) -> float:
    # PySide returns (x, the position it moved to a valid one).
    return cast("tuple[float, int]", line.cursorToX(position))[0]
