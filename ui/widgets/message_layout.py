"""One message of the transcript: what it says and where its parts lie.

Places are in pixels from the message's top and from the left edge of the reading column. Knows no widget and no
colour; `message_painter` draws what is laid out here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from PySide6.QtCore import QPointF, QRect, QRectF

from ui.theme import BASE_PX, READING_PX, ui_font
from ui.widgets.display_text import TextShape, cut, display_text, has_right_to_left
from ui.widgets.height_index import HeightIndex
from ui.widgets.text_piece import TextPiece, TextStyle

USER: Final = "user"
ASSISTANT: Final = "assistant"
NOTE: Final = "note"

BUBBLE_RADIUS_PX: Final = 12
BUBBLE_PAD_X_PX: Final = 16
BUBBLE_PAD_Y_PX: Final = 12
NOTE_INDENT_PX: Final = 14

# A bubble takes at most this share of the reading column.
_BUBBLE_SHARE: Final = 0.8

_READING_LINE_PX: Final = 22
_NOTE_LINE_PX: Final = 20
_STATE_PX: Final = 24
_FIGURES_PX: Final = 36
_GAP_PX: Final = 20


@dataclass(frozen=True, slots=True)
class MessageItem:
    """What the view is told about one message.

    Attributes:
        key: the caller's number for it, unique in the view.
        role: "user", "assistant" or "note" (the program's own words between the messages).
        text: plain text as it came.
        figures: one line under an answer, such as "151 tokens/s · first token 0.09 s"; "" for none.
        state_text: what went otherwise than planned, such as "stopped"; "" for nothing.
        is_streaming: whether more text is to come.
        can_xray: whether its exact tokens are known, so that another model can read them.
    """

    key: int
    role: str
    text: str
    figures: str = ""
    state_text: str = ""
    is_streaming: bool = False
    can_xray: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptStyle:
    """How messages are set: the styles of what is read and of notes."""

    reading: TextStyle
    note: TextStyle

    @classmethod
    def of_system(cls) -> TranscriptStyle:
        """Return the styles in the system's font."""
        return cls(TextStyle.of(ui_font(READING_PX), _READING_LINE_PX), TextStyle.of(ui_font(BASE_PX), _NOTE_LINE_PX))


class MessageLayout:
    """A message laid out in a column; far from the eye only its height is estimated.

    Attributes:
        item: what it says.
        pieces: its text in pieces; empty until the message comes near the eye.
        height_px: its height with the gap under it.
    """

    __slots__ = ("_column_px", "_heights", "_shape", "_starts", "_style", "_text_px", "height_px", "item", "pieces")

    def __init__(self, item: MessageItem, style: TranscriptStyle, column_px: int) -> None:
        self.item = item
        self.pieces: list[TextPiece] = []
        self._style = style.note if item.role == NOTE else style.reading
        self._heights = HeightIndex()
        self._starts: list[int] = []
        self._shape = TextShape.of(item.text)
        self.set_width(column_px)

    @property
    def text(self) -> str:
        """The whole text as it is shown."""
        return "".join(piece.text for piece in self.pieces) if self.pieces else display_text(self.item.text)

    @property
    def num_chars(self) -> int:
        """Length of the shown text in characters."""
        return self._starts[-1] + len(self.pieces[-1].text) if self.pieces else len(display_text(self.item.text))

    @property
    def bubble(self) -> QRectF:
        """The bubble of a person's message."""
        natural = self.pieces[0].natural_px if len(self.pieces) == 1 else self._text_px
        width = min(self._text_px, math.ceil(natural)) + 2 * BUBBLE_PAD_X_PX
        return QRectF(self._column_px - width, 0, width, self._text_height() + 2 * BUBBLE_PAD_Y_PX)

    @property
    def text_origin(self) -> QPointF:
        """The text's top left corner."""
        if self.item.role == USER:
            return self.bubble.topLeft() + QPointF(BUBBLE_PAD_X_PX, BUBBLE_PAD_Y_PX)
        return QPointF(NOTE_INDENT_PX if self.item.role == NOTE else 0, 0)

    @property
    def state_rect(self) -> QRect:
        """The line that says what went otherwise than planned; empty where nothing did."""
        height = self._state_px()
        return QRect(0, self._below_text(), self._column_px if height else 0, height)

    @property
    def figures_rect(self) -> QRect:
        """The line under a finished answer: figures and the copy button; empty under anything else.

        Without figures it is the line that says what went wrong: the button needs no line of its own.
        """
        height = self._figures_px()
        top = self._below_text() + (0 if self._is_one_line() else self._state_px())
        return QRect(0, top, self._column_px if height else 0, height)

    def set_width(self, column_px: int) -> None:
        """Take a new column width; heights are estimates again."""
        self._column_px = column_px
        self._text_px = column_px
        if self.item.role == USER:
            self._text_px = max(1, int(column_px * _BUBBLE_SHARE) - 2 * BUBBLE_PAD_X_PX)
        elif self.item.role == NOTE:
            self._text_px = max(1, column_px - NOTE_INDENT_PX)
        for index, piece in enumerate(self.pieces):
            piece.set_width(self._text_px)
            self._heights.set(index, piece.height_px)
        self._measure()

    def lay_out(self, top_px: int, bottom_px: int) -> list[TextPiece]:
        """Make the lines between two places and return the pieces they lie in."""
        if not self.pieces:
            self._set_text(self.item.text)
        offset = round(self.text_origin.y())
        index = self._heights.find(top_px - offset)
        seen = []
        while index < len(self.pieces) and self._heights.top(index) + offset < bottom_px:
            piece = self.pieces[index]
            piece.lay_out()
            if len(self.pieces) == 1 and self.item.role == USER and has_right_to_left(piece.text):
                # Lines from right to left start at the right edge: the edge of the bubble, not of the widest bubble.
                piece.set_width(min(self._text_px, math.ceil(piece.natural_px) + 1))
                piece.lay_out()
            self._heights.set(index, piece.height_px)
            seen.append(piece)
            index += 1
        self._measure()
        return seen

    def append(self, text: str) -> int:
        """Add text at the end; return the top of what changed."""
        whole, self.item = self.item.text, replace(self.item, text=self.item.text + text)
        if not self.pieces:
            self._shape = TextShape.of(self.item.text)
            self._measure()
            return 0
        if whole.endswith("\r"):
            text = text.removeprefix("\n")  # one line end that came in two parts
        index = len(self.pieces) - 1
        last = self.pieces[index]
        changed = self._heights.top(index) + last.last_line_top_px
        first, *others = cut(last.text + display_text(text))
        if first.startswith(last.text):
            last.extend(first[len(last.text) :])
        else:
            last = self.pieces[index] = TextPiece(first, self._style, self._text_px)
            last.lay_out()
        self._heights.set(index, last.height_px)
        for other in others:
            self._add_piece(other)
            self.pieces[-1].lay_out()
            self._heights.set(len(self.pieces) - 1, self.pieces[-1].height_px)
        self._measure()
        return changed + round(self.text_origin.y())

    def update(self, item: MessageItem) -> None:
        """Say something else; text that stayed keeps its lines."""
        text_changed = item.text != self.item.text
        self.item = item
        if text_changed:
            self._shape = TextShape.of(item.text)
            if self.pieces:
                self._set_text(item.text)
        self._measure()

    def piece_top(self, index: int) -> int:
        """Return the top of a piece in the message."""
        return self._heights.top(index) + round(self.text_origin.y())

    def piece_start(self, index: int) -> int:
        """Return the offset of a piece's first character."""
        return self._starts[index]

    def piece_at(self, y: float) -> int:
        """Return the index of the piece at a place, the nearest one outside the text."""
        return self._heights.find(math.floor(y - self.text_origin.y()))

    def offset_at(self, x: float, y: float) -> int:
        """Return the character offset nearest to a place."""
        if not self.pieces or y < self.text_origin.y():
            return 0
        if y >= self._below_text():
            return self.num_chars
        index = self.piece_at(y)
        return self._starts[index] + self.pieces[index].offset_at(x - self.text_origin.x(), y - self.piece_top(index))

    def _set_text(self, raw: str) -> None:
        self.pieces.clear()
        self._starts.clear()
        self._heights = HeightIndex()
        for piece in cut(display_text(raw)):
            self._add_piece(piece)

    def _add_piece(self, text: str) -> None:
        self._starts.append(self.num_chars if self.pieces else 0)
        self.pieces.append(TextPiece(text, self._style, self._text_px))
        self._heights.append(self.pieces[-1].height_px)

    def _measure(self) -> None:
        lines_px = self._figures_px() + (0 if self._is_one_line() else self._state_px())
        self.height_px = self._below_text() + lines_px + _GAP_PX

    def _below_text(self) -> int:
        pad = 2 * BUBBLE_PAD_Y_PX if self.item.role == USER else 0
        return self._text_height() + pad

    def _text_height(self) -> int:
        if not self.item.text and not self.item.is_streaming:
            return 0
        if self.pieces:
            return self._heights.total
        return self._style.estimated_height(self._shape, self._text_px)

    def _state_px(self) -> int:
        if self._is_one_line():
            return _FIGURES_PX
        return _STATE_PX if self.item.state_text else 0

    def _is_one_line(self) -> bool:
        return bool(self.item.state_text) and not self.item.figures and self._figures_px() > 0

    def _figures_px(self) -> int:
        return _FIGURES_PX if self.item.role == ASSISTANT and not self.item.is_streaming else 0
