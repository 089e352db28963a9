"""A text shown token by token: each can be pointed at, by mouse or by key, and some are marked.

Marks are told by their lines, not by colour alone: a solid one with a tint, or a dotted one. Knows not what they mean.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextLine,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from ui.theme import READING_PX, Theme, ui_font
from ui.widgets.display_text import display_text, utf16_offset

_PAD_PX: Final = 16
_LINE_PERCENT: Final = 150.0  # room for the lines under the tokens
_SCROLL_STEP_PX: Final = 40
_MARK_PX: Final = 2
_TINT: Final = 0.2
_LINE_END: Final = "↵"


class Mark(enum.Enum):
    """How a token stands out."""

    NONE = "none"
    STRONG = "strong"  # a solid line and a tint
    WEAK = "weak"  # a dotted line


@dataclass(frozen=True, slots=True)
class ShownToken:
    """A token.

    Attributes:
        text: what the text shows for it; "" for a part of a character.
        mark: how it stands out.
        spoken: what a screen reader says of it.
    """

    text: str
    mark: Mark = Mark.NONE
    spoken: str = ""


class TokenText(QAbstractScrollArea):
    """The text.

    Attributes:
        _starts: where each token begins in the document, in Qt's positions, and the end of the last one.
        _places: where each token lies, in pixels of the whole text; a token may lie on several lines.
        _marked: the same without the blanks around it, for marked tokens only.
        _current: the token with the key focus; -1 for none.
        _hovered: the token under the mouse; -1 for none.

    Signals:
        pointed(number): the token that is shown more of has changed: that under the mouse, else that of the keys.
    """

    pointed = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._tokens: tuple[ShownToken, ...] = ()
        self._starts: list[int] = [0]
        self._places: list[list[QRectF]] = []
        self._marked: dict[int, list[QRectF]] = {}
        self._current = -1
        self._hovered = -1
        self._document = QTextDocument(self)
        self._document.setUndoRedoEnabled(False)
        self._document.setDocumentMargin(0)
        self._document.setDefaultFont(ui_font(READING_PX))
        self.setObjectName("token_text")
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.verticalScrollBar().setSingleStep(_SCROLL_STEP_PX)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)  # the card around it has round corners

    # ----------------------------------------------------------------------------------------- public

    @property
    def pointed_at(self) -> int:
        """The number of the token under the mouse, else of the one with the key focus; -1 for none."""
        return self._hovered if self._hovered >= 0 else self._current

    def set_tokens(self, tokens: Sequence[ShownToken]) -> None:
        """Show these tokens; the first marked one is pointed at, else the first."""
        self._tokens = tuple(tokens)
        texts = [display_text(token.text).replace("\n", f"{_LINE_END}\n") for token in tokens]
        self._starts = [0]
        for text in texts:
            self._starts.append(self._starts[-1] + utf16_offset(text, len(text)))
        self._document.setPlainText("".join(texts))
        spaced = QTextBlockFormat()
        spaced.setLineHeight(_LINE_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor = QTextCursor(self._document)
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(spaced)
        self._hovered = -1
        self._current = -1
        self._mute_line_ends()
        self._lay_out()
        marked = (number for number, token in enumerate(tokens) if token.mark is Mark.STRONG)
        self.point_at(next(marked, 0 if tokens else -1))
        self.verticalScrollBar().setValue(0)

    def point_at(self, number: int) -> None:
        """Give a token the key focus and scroll to it; nothing happens for one that is not there."""
        if not 0 <= number < len(self._tokens):
            return
        self._current = number
        self.setAccessibleDescription(self._tokens[number].spoken)
        self._show(number)
        self._tell()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self._mute_line_ends()
        self.viewport().update()

    def place_of(self, number: int) -> QRectF:
        """Return where a token's first line lies in the viewport."""
        return self._places[number][0].translated(self._shift())

    # ------------------------------------------------------------------------------------ Qt's events

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the text into the new width."""
        super().resizeEvent(event)
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw tints, text, lines and the frame of the token that is pointed at."""
        theme, shift = self._theme, self._shift()
        seen = QRectF(event.rect()).translated(-shift)
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(shift)
        marked = [
            (self._tokens[number].mark, rect)
            for number, rects in self._marked.items()
            for rect in rects
            if rect.intersects(seen)
        ]
        for mark, rect in marked:
            if mark is Mark.STRONG:
                painter.fillRect(rect, theme.mix("limit", "surface", _TINT))
        context = QAbstractTextDocumentLayout.PaintContext()
        context.clip = seen
        context.palette.setColor(QPalette.ColorRole.Text, theme.color("text"))
        self._document.documentLayout().draw(painter, context)
        for mark, rect in marked:
            is_strong = mark is Mark.STRONG
            style = Qt.PenStyle.SolidLine if is_strong else Qt.PenStyle.DotLine
            painter.setPen(
                QPen(theme.color("limit" if is_strong else "muted"), _MARK_PX, style, Qt.PenCapStyle.FlatCap)
            )
            painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        self._paint_frames(painter)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point at the token under the mouse."""
        self._hover(self._token_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Give a token the key focus."""
        self.point_at(self._token_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End a click here: nothing behind the text wants it."""
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        """Point at the key focus's token again when the mouse leaves."""
        if event.type() is QEvent.Type.Leave:
            self._hover(-1)
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows go from token to token, with Ctrl to the next marked one; up and down from line to line."""
        key, last = event.key(), len(self._tokens) - 1
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}.get(Qt.Key(key))
        if step is not None:
            to_marked = event.modifiers() & Qt.KeyboardModifier.ControlModifier
            self.point_at(self._next_marked(step) if to_marked else max(0, min(last, self._current + step)))
        elif key == Qt.Key.Key_Home:
            self.point_at(0)
        elif key == Qt.Key.Key_End:
            self.point_at(last)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self._current >= 0:
            self.point_at(self._on_next_line(down=key == Qt.Key.Key_Down))
        else:
            super().keyPressEvent(event)
            return
        self._hover(-1)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the frame of the focus."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show a quieter frame."""
        super().focusOutEvent(event)
        self.viewport().update()

    # ---------------------------------------------------------------------------------------- helpers

    def _mute_line_ends(self) -> None:
        """Draw the signs for line ends, which are not in the text, in a quieter colour."""
        muted = QTextCharFormat()
        muted.setForeground(self._theme.color("muted"))
        cursor = QTextCursor(self._document)
        for token, end in zip(self._tokens, self._starts[1:], strict=True):
            for back in range(token.text.count("\n")):
                cursor.setPosition(end - 2 * back - 2)
                cursor.movePosition(QTextCursor.MoveOperation.NextCharacter, QTextCursor.MoveMode.KeepAnchor)
                if cursor.selectedText() == _LINE_END:
                    cursor.mergeCharFormat(muted)

    def _shift(self) -> QPointF:
        return QPointF(_PAD_PX, _PAD_PX - self.verticalScrollBar().value())

    def _lay_out(self) -> None:
        """Break the text into lines and note where each token lies."""
        self._document.setTextWidth(max(1, self.viewport().width() - 2 * _PAD_PX))
        height = round(self._document.size().height()) + 2 * _PAD_PX
        bar = self.verticalScrollBar()
        bar.setPageStep(max(1, self.viewport().height()))
        bar.setRange(0, max(0, height - self.viewport().height()))
        self._places = [self._rects(begin, end) for begin, end in zip(self._starts[:-1], self._starts[1:], strict=True)]
        text = self._document.toPlainText()
        self._marked = {}
        for number, token in enumerate(self._tokens):
            if token.mark is not Mark.NONE:
                self._marked[number] = self._rects(*self._trimmed(number, text))
        self.viewport().update()

    def _trimmed(self, number: int, text: str) -> tuple[int, int]:
        """Return begin and end of a token without the blanks around it; of one that is only blanks, all of it."""
        begin, end = self._starts[number], self._starts[number + 1]
        shown = self._tokens[number].text
        if not shown.strip():
            return begin, end
        lead = len(shown) - len(shown.lstrip(" "))
        tail = len(shown) - len(shown.rstrip(" "))
        return begin + lead, end - tail

    def _rects(self, begin: int, end: int) -> list[QRectF]:
        """Return where a part of the document lies: a rectangle a line; a thin one for a part without width."""
        rects: list[QRectF] = []
        block = self._document.findBlock(begin)
        while block.isValid() and (block.position() < end or not rects):
            layout, corner = block.layout(), self._document.documentLayout().blockBoundingRect(block).topLeft()
            for number in range(layout.lineCount()):
                line = layout.lineAt(number)
                first = max(begin - block.position(), line.textStart())
                last = min(end - block.position(), line.textStart() + line.textLength())
                if first > last or (first == last and (rects or end > begin)):
                    continue
                left, right = _x(line, first), _x(line, last)
                left, right = min(left, right), max(left, right)
                glyphs = line.ascent() + line.descent()
                rects.append(QRectF(corner.x() + left, corner.y() + line.y(), max(2.0, right - left), glyphs))
            block = block.next()
        return rects or [QRectF(0, 0, 2, 2)]

    def _paint_frames(self, painter: QPainter) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for number, width in ((self._current, 2 if self.hasFocus() else 1), (self._hovered, 1)):
            if number < 0 or (number == self._hovered == self._current and width == 1):
                continue
            role = "accent" if number == self._current and self.hasFocus() else "muted"
            painter.setPen(QPen(self._theme.color(role), width))
            for rect in self._places[number]:
                painter.drawRoundedRect(rect.adjusted(-1, -2, 1, 3), 4, 4)

    def _token_at(self, point: QPointF) -> int:
        """Return the token at a place in the viewport; -1 where there is none."""
        inside = point - self._shift()
        near = self._document.documentLayout().hitTest(inside, Qt.HitTestAccuracy.FuzzyHit)
        if near < 0:
            return -1
        first = bisect.bisect_right(self._starts, near) - 1
        for number in (first, first - 1, first + 1):  # a place between two letters belongs to either
            if 0 <= number < len(self._tokens) and any(_holds(rect, inside) for rect in self._places[number]):
                return number
        return -1

    def _hover(self, number: int) -> None:
        if number != self._hovered:
            self._hovered = number
            self._tell()

    def _tell(self) -> None:
        self.viewport().update()
        self.pointed.emit(self.pointed_at)

    def _show(self, number: int) -> None:
        """Scroll so far that a token is seen."""
        rect, bar = self._places[number][0], self.verticalScrollBar()
        top, bottom = round(rect.top()), round(rect.bottom()) + 2 * _PAD_PX
        if top < bar.value():
            bar.setValue(top)
        elif bottom > bar.value() + self.viewport().height():
            bar.setValue(bottom - self.viewport().height())

    def _next_marked(self, step: int) -> int:
        """Return the next token with a strong mark; the present one where there is none."""
        numbers = range(self._current + step, len(self._tokens) if step > 0 else -1, step)
        return next((number for number in numbers if self._tokens[number].mark is Mark.STRONG), self._current)

    def _on_next_line(self, *, down: bool) -> int:
        """Return the token nearest to the present one on the line below or above it."""
        here = self._places[self._current][0]
        beyond = [
            (number, rects[0])
            for number, rects in enumerate(self._places)
            if (rects[0].top() > here.bottom() if down else rects[0].bottom() < here.top())
        ]
        if not beyond:
            return self._current
        line = min(rect.top() for _n, rect in beyond) if down else max(rect.top() for _n, rect in beyond)
        on_line = [(number, rect) for number, rect in beyond if abs(rect.top() - line) < here.height() / 2]
        return min(on_line, key=lambda one: abs(one[1].center().x() - here.center().x()))[0]


def _holds(rect: QRectF, point: QPointF) -> bool:
    return rect.adjusted(0, -3, 0, 4).contains(point)


def _x(line: QTextLine, position: int) -> float:
    return cast("tuple[float, int]", line.cursorToX(position))[0]
