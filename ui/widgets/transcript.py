"""The messages of a chat stacked on each other: which is where, and which have their lines made.

Ten thousand messages open at once because only those near the eye are laid out; the others' heights are estimates
that become exact when they come near. Places are in pixels from the top of the transcript and from the left edge of
the reading column. Knows no widget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from ui.widgets.display_text import paragraph_at, word_at
from ui.widgets.height_index import HeightIndex
from ui.widgets.message_layout import MessageItem, MessageLayout, TranscriptStyle
from ui.widgets.text_piece import TextPiece
from ui.widgets.text_selection import Position, Unit

TOP_PX: Final = 12

# Lines far from the eye are dropped once so many pieces hold some; a 4K screen shows about ten.
_MAX_PIECES_WITH_LINES: Final = 64


class Anchor(NamedTuple):
    """A place that must not move on the screen while heights around it change.

    Attributes:
        message: index of a message.
        piece: index of a piece in it; -1 where none exists.
        offset_px: distance from the top of that piece (or message) to the place.
    """

    message: int
    piece: int
    offset_px: int


@dataclass(slots=True)
class _Entries:
    """The messages and what finds them: one index by key and one by place."""

    layouts: list[MessageLayout]
    index_by_key: dict[int, int]
    heights: HeightIndex


class Transcript:
    """The laid out messages.

    Attributes:
        column_px: width of the reading column.
    """

    def __init__(self, style: TranscriptStyle, column_px: int) -> None:
        self.column_px = column_px
        self._style = style
        self._entries = _Entries([], {}, HeightIndex())
        self._with_lines: set[TextPiece] = set()

    def __len__(self) -> int:
        return len(self._entries.layouts)

    @property
    def layouts(self) -> Sequence[MessageLayout]:
        """The messages in order."""
        return self._entries.layouts

    @property
    def total_px(self) -> int:
        """Height of everything; an estimate as long as some heights are."""
        return TOP_PX + self._entries.heights.total

    def set_items(self, items: Iterable[MessageItem]) -> None:
        """Show these messages; ValueError where two share a key."""
        layouts = [MessageLayout(item, self._style, self.column_px) for item in items]
        index_by_key = {layout.item.key: index for index, layout in enumerate(layouts)}
        if len(index_by_key) != len(layouts):
            raise ValueError("two messages of a transcript share a key")
        self._entries = _Entries(layouts, index_by_key, HeightIndex(layout.height_px for layout in layouts))
        self._with_lines.clear()

    def append_item(self, item: MessageItem) -> None:
        """Add a message at the end; ValueError where its key is taken."""
        entries = self._entries
        if item.key in entries.index_by_key:
            raise ValueError(f"a message with key {item.key} is already shown")
        layout = MessageLayout(item, self._style, self.column_px)
        entries.index_by_key[item.key] = len(entries.layouts)
        entries.layouts.append(layout)
        entries.heights.append(layout.height_px)

    def append_text(self, key: int, text: str) -> int:
        """Add text to a message; return the top of what changed. KeyError for an unknown key."""
        index = self._entries.index_by_key[key]
        layout = self._entries.layouts[index]
        changed = self.message_top(index) + layout.append(text)
        self._with_lines.update(piece for piece in layout.pieces[-2:] if piece.is_laid_out)
        self._entries.heights.set(index, layout.height_px)
        return changed

    def update_item(self, key: int, **changes: Any) -> MessageItem:
        """Change fields of a message and return what it says now. KeyError for an unknown key."""
        index = self._entries.index_by_key[key]
        layout = self._entries.layouts[index]
        layout.update(replace(layout.item, **changes))
        self._entries.heights.set(index, layout.height_px)
        return layout.item

    def remove_item(self, key: int) -> None:
        """Take a message out. KeyError for an unknown key."""
        index = self._entries.index_by_key.pop(key)
        del self._entries.layouts[index]
        self._entries.heights.remove(index)
        for later, layout in enumerate(self._entries.layouts[index:], start=index):
            self._entries.index_by_key[layout.item.key] = later

    def set_width(self, column_px: int) -> None:
        """Take a new width of the reading column."""
        if column_px == self.column_px:
            return
        self.column_px = column_px
        self._with_lines.clear()
        for layout in self._entries.layouts:
            layout.set_width(column_px)
        self._entries.heights = HeightIndex(layout.height_px for layout in self._entries.layouts)

    def lay_out(self, top_px: int, bottom_px: int) -> bool:
        """Make the lines between two places; return whether a height changed by it."""
        changed = False
        seen: set[TextPiece] = set()
        for index in self.between(top_px, bottom_px):
            layout, top = self._entries.layouts[index], self.message_top(index)
            if top >= bottom_px:
                break
            seen.update(layout.lay_out(top_px - top, bottom_px - top))
            changed |= self._entries.heights.set(index, layout.height_px)
        self._with_lines |= seen
        if len(self._with_lines) > max(_MAX_PIECES_WITH_LINES, 2 * len(seen)):
            for piece in self._with_lines - seen:
                piece.release()
            self._with_lines = seen
        return changed

    def between(self, top_px: int, bottom_px: int) -> range:
        """Return the indices of the messages that reach into a stretch."""
        heights = self._entries.heights
        if not len(heights) or bottom_px <= TOP_PX:
            return range(0)
        return range(heights.find(top_px - TOP_PX), heights.find(bottom_px - 1 - TOP_PX) + 1)

    def message_top(self, index: int) -> int:
        """Return the top of a message."""
        return TOP_PX + self._entries.heights.top(index)

    def index_at(self, y: float) -> int:
        """Return the index of the message at a place, the nearest one outside; 0 where there is none."""
        return self._entries.heights.find(int(y) - TOP_PX)

    def anchor_at(self, top_px: int) -> Anchor:
        """Return the anchor for the place at the top of the screen."""
        if not len(self):
            return Anchor(0, -1, top_px)
        index = self.index_at(top_px)
        layout, within = self._entries.layouts[index], top_px - self.message_top(index)
        if not layout.pieces:
            return Anchor(index, -1, within)
        piece = layout.piece_at(within)
        return Anchor(index, piece, within - layout.piece_top(piece))

    def anchor_top(self, anchor: Anchor) -> int:
        """Return where an anchor's place is now."""
        if anchor.message >= len(self):
            return anchor.offset_px
        layout = self._entries.layouts[anchor.message]
        piece_top = layout.piece_top(anchor.piece) if 0 <= anchor.piece < len(layout.pieces) else 0
        return self.message_top(anchor.message) + piece_top + anchor.offset_px

    # ------------------------------------------------------------------ places in the text

    def position_at(self, x: float, y: float) -> Position:
        """Return the place in the text nearest to a place on the screen."""
        if not len(self):
            return Position(0, 0)
        index = self.index_at(y)
        return Position(index, self._entries.layouts[index].offset_at(x, y - self.message_top(index)))

    def unit_around(self, position: Position, unit: Unit) -> tuple[Position, Position]:
        """Return start and end of the letter gap, word or paragraph at a place in the text."""
        if unit is Unit.LETTER or not len(self):
            return position, position
        text = self._entries.layouts[position.message].text
        start, end = (word_at if unit is Unit.WORD else paragraph_at)(text, position.offset)
        return Position(position.message, start), Position(position.message, end)

    def whole(self) -> tuple[Position, Position]:
        """Return start and end of everything."""
        if not len(self):
            return Position(0, 0), Position(0, 0)
        return Position(0, 0), Position(len(self) - 1, self._entries.layouts[-1].num_chars)

    def text_between(self, start: Position, end: Position) -> str:
        """Return the shown text between two places, a blank line between messages."""
        parts = []
        for index in range(start.message, min(end.message, len(self) - 1) + 1):
            text = self._entries.layouts[index].text
            first = start.offset if index == start.message else 0
            last = end.offset if index == end.message else len(text)
            parts.append(text[first:last])
        return "\n\n".join(parts)
