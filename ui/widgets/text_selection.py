"""What the reader has marked: from one place in the text to another, across messages.

Knows the places only as numbers; what a word is it asks whoever holds the text.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple


class Position(NamedTuple):
    """A place between two letters; positions order as they are read.

    Attributes:
        message: index of the message.
        offset: number of its shown characters before the place.
    """

    message: int
    offset: int


class Unit(enum.Enum):
    """What one step of the mouse marks."""

    LETTER = 1  # a click
    WORD = 2  # a double click
    PARAGRAPH = 3  # a triple click


UnitAround = Callable[[Position, Unit], tuple[Position, Position]]


class TextSelection:
    """A marked stretch of text.

    Attributes:
        start: its first place.
        end: its last place; the same as `start` where nothing is marked.
    """

    def __init__(self, unit_around: UnitAround) -> None:
        self.start = self.end = Position(0, 0)
        self._unit_around = unit_around
        self._unit = Unit.LETTER
        self._first = (self.start, self.end)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is marked."""
        return self.start == self.end

    def clear(self) -> None:
        """Mark nothing."""
        self.set(Position(0, 0), Position(0, 0))

    def set(self, start: Position, end: Position) -> None:
        """Mark from one place to another."""
        self.start, self.end = start, end
        self._unit, self._first = Unit.LETTER, (start, start)

    def begin(self, position: Position, unit: Unit) -> None:
        """Mark the unit at a place; `extend` goes on from it."""
        self._unit = unit
        self._first = self._unit_around(position, unit)
        self.start, self.end = self._first

    def extend(self, position: Position) -> None:
        """Mark from where it began to the unit at a place."""
        start, end = self._unit_around(position, self._unit)
        self.start, self.end = min(self._first[0], start), max(self._first[1], end)

    def within(self, message: int, num_chars: int) -> tuple[int, int]:
        """Return start and end of what is marked in one message; equal where nothing is."""
        if self.is_empty or not self.start.message <= message <= self.end.message:
            return 0, 0
        start = self.start.offset if message == self.start.message else 0
        end = self.end.offset if message == self.end.message else num_chars
        return start, end
