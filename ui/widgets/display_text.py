"""Text as it is shown: made harmless, cut into pieces that are cheap to lay out, counted as Qt counts.

Knows no widget and no font. Python counts characters, Qt counts UTF-16 units; the two functions at the end translate.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from PySide6.QtGui import QTextLayout

# Laying out this many characters takes about 0.2 to 0.7 ms: far below a frame, and few enough pieces for 1 MB.
MAX_PIECE_CHARS: Final = 2000

# Every line has a fixed cost too, about 20 µs: a text of line ends only would else hold 2,000 of them in a piece.
MAX_PIECE_LINES: Final = 250

# Where no blank is near, the cut looks this far back for the border of a visible character.
_CUT_WINDOW_CHARS: Final = 64

_LINE_ENDS: Final = re.compile("\r\n?|[\u2028\u2029\u0085]")
_ODD: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+")
_PICTURES: Final = {
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), *range(0xFDD0, 0xFDF0), 0xFFFE, 0xFFFF), 0xFFFD),
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
}
_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff]"
)
_BLANKS: Final = " \t\u3000"
_WORD: Final = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]", re.UNICODE)


def display_text(raw: str) -> str:
    """Return the text as it is shown and copied.

    Line ends become line feeds, control characters their visible pictures (an escape sequence pasted into a terminal is
    then only text), and half a surrogate pair the replacement character.
    """
    if "\r" in raw or not raw.isascii():
        raw = _LINE_ENDS.sub("\n", raw)
    return _ODD.sub(lambda odd: odd.group().translate(_PICTURES), raw)


def cut(text: str) -> list[str]:
    """Split a text into pieces of at most `MAX_PIECE_CHARS`; joined they are the text again.

    A piece ends after a line end (the last one, or the one that makes `MAX_PIECE_LINES`), else after a blank, else
    between two visible characters. Where it ends depends only on the text before it: text that grows keeps its
    earlier pieces.
    """
    pieces = []
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = _cut_end(text, start)
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return pieces


class TextShape(NamedTuple):
    """What an estimate of a text's height needs; counted once, good for every width.

    Attributes:
        num_chars: its length.
        num_lines: number of its paragraphs.
        num_blank_lines: about how many of them are empty; several in a row count for half.
    """

    num_chars: int
    num_lines: int
    num_blank_lines: int

    @classmethod
    def of(cls, text: str) -> TextShape:
        """Count a text."""
        return cls(len(text), text.count("\n") + (not text.endswith("\n")), text.count("\n\n"))

    def estimated_lines(self, chars_per_line: float) -> int:
        """Return about how many lines the text takes: the last line of a paragraph is half full on average."""
        half_full = (self.num_lines - self.num_blank_lines) / 2
        return max(1, round(self.num_chars / chars_per_line + half_full + self.num_blank_lines))


def word_at(text: str, offset: int) -> tuple[int, int]:
    """Return start and end of the word, the blank or the sign at a character offset."""
    start = text.rfind("\n", 0, offset) + 1
    for match in _WORD.finditer(text, start):
        if match.end() > offset:
            return match.start(), match.end()
    return offset, offset


def paragraph_at(text: str, offset: int) -> tuple[int, int]:
    """Return start and end of the paragraph at a character offset, without its line end."""
    end = text.find("\n", offset)
    return text.rfind("\n", 0, offset) + 1, len(text) if end < 0 else end


def has_right_to_left(text: str) -> bool:
    """Return whether some of the text runs from right to left."""
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def utf16_offset(text: str, offset: int) -> int:
    """Return Qt's position of a character offset."""
    return offset if text.isascii() else len(text[:offset].encode("utf-16-le")) // 2


def char_offset(text: str, position: int) -> int:
    """Return the character offset of Qt's position."""
    return position if text.isascii() else len(text.encode("utf-16-le")[: position * 2].decode("utf-16-le", "ignore"))


def _cut_end(text: str, start: int) -> int:
    limit = start + MAX_PIECE_CHARS
    num_line_ends = text.count("\n", start, limit)
    if num_line_ends > MAX_PIECE_LINES:
        return limit - len(text[start:limit].split("\n", MAX_PIECE_LINES)[-1])
    if num_line_ends:
        return text.rfind("\n", start, limit) + 1
    blank = max(text.rfind(sign, start, limit) for sign in _BLANKS) + 1
    if blank > start:
        return blank
    # Qt knows where one visible character ends: accents, joined emoji and flags are several code points.
    window = text[limit - _CUT_WINDOW_CHARS : limit + 1]
    layout = QTextLayout(window)
    before = utf16_offset(window, _CUT_WINDOW_CHARS)
    if not layout.isValidCursorPosition(before):
        before = layout.previousCursorPosition(before)
    back = char_offset(window, before)
    return limit - _CUT_WINDOW_CHARS + back if back > 0 else limit
