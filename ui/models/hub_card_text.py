"""A model card cut into pieces that are shown as plain text: headings, prose, code and tables.

The card is safe already (app/hub/card.py); what is left of its marks is taken out here, piece by piece, and nothing in
it is ever read as markup. Knows no widget.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from app.hub.card import plain_card
from ui.widgets.display_text import cut, display_text

Kind = Literal["heading", "text", "code"]

_FENCE: Final = re.compile(r"^[ \t]{0,12}(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"^ {0,3}(#{1,6})[ \t]+")
_TABLE_ROW: Final = re.compile(r"^[ \t]{0,3}\|")
_TABLE_RULE: Final = re.compile(r"^[ \t]{0,3}\|?(?:[ \t]*:?-{2,}:?[ \t]*\|?)+[ \t]*$")
_INLINE_CODE: Final = re.compile(r"(`{1,3})([^`\n]+)\1")
_MAX_LINES: Final = 6_000


@dataclass(frozen=True, slots=True)
class CardPiece:
    """One paragraph of a card.

    Attributes:
        kind: how it is shown.
        text: plain, one line.
        level: of a heading, 1 to 6; 0 for anything else.
    """

    kind: Kind
    text: str
    level: int = 0


def card_pieces(markdown: str) -> Iterator[CardPiece]:
    """Yield the pieces from top to bottom, bounded in number and in length.

    One empty line stays between paragraphs at most, and none at the ends. Each piece is worked out when it is asked
    for: whoever shows a long card takes some at a time.
    """
    is_gap = False
    has_some = False
    for piece in _all_pieces(markdown):
        if not piece.text.strip():
            is_gap = has_some
            continue
        if is_gap:
            yield CardPiece("text", "")
        is_gap, has_some = False, True
        yield piece


def _all_pieces(markdown: str) -> Iterator[CardPiece]:
    fence = ""
    for line in display_text(markdown).split("\n")[:_MAX_LINES]:
        found = _FENCE.match(line)
        if fence:
            if found is not None and found[1].startswith(fence):
                fence = ""
            else:
                yield from _cut("code", line)
        elif found is not None:
            fence = found[1]
        else:
            yield from _line_pieces(line)


def _line_pieces(line: str) -> list[CardPiece]:
    heading = _HEADING.match(line)
    if heading is not None:
        return [CardPiece("heading", piece.text, len(heading[1])) for piece in _cut("heading", _plain(line))]
    if _TABLE_RULE.match(line) and "|" in line:
        return []
    return _cut("code" if _TABLE_ROW.match(line) else "text", _plain(line))


def _plain(line: str) -> str:
    return plain_card(_INLINE_CODE.sub(r"\2", line)) if line.strip() else ""


def _cut(kind: Kind, line: str) -> list[CardPiece]:
    return [CardPiece(kind, piece) for piece in cut(line)]
