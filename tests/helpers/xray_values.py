"""Invented X-rays for tests and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.compare.xray_types import Chance, Reading, Xray, XrayToken

NOTHING = Reading(math.nan, math.nan, ())
WORDS = (
    *(
        "A",
        " big",
        " buffer",
        " is",
        " reserved",
        " for",
        " the",
        " longest",
        " answer",
        " that",
        " might",
        " come",
        ".",
    ),
    *(" Most", " answers", " are", " short", ",", " so", " most", " of", " it", " stays", " empty", ":", " commonly"),
    *(
        " ",
        "6",
        "0",
        " to",
        " ",
        "8",
        "0",
        " %",
        ".",
        "\n\n",
        "A",
        " paged",
        " cache",
        " is",
        " cut",
        " into",
        " small",
    ),
    *(
        " blocks",
        " of",
        " ",
        "1",
        "6",
        " tokens",
        ".",
        " A",
        " chat",
        " takes",
        " a",
        " block",
        " only",
        " when",
        " the",
    ),
    *(
        " last",
        " one",
        " is",
        " full",
        ",",
        " so",
        " at",
        " most",
        " ",
        "1",
        "5",
        " slots",
        " are",
        " ever",
        " wasted",
        ".",
    ),
)
# By place: what the other quantization would have written, and what the writer itself found likelier.
OTHERS = {4: " allocated", 10: " may", 25: " about", 41: " split", 44: " pieces", 58: " previous", 66: " places"}
DRAWN = {10: " may", 53: " holds"}


def reading(best: int, probability: float = 0.5) -> Reading:
    """Return that a token is likeliest; the written one has the same probability."""
    return Reading(math.log(probability), probability, (Chance(best, chr(best), probability),))


def token(written: str, other: str, own: str = "") -> XrayToken:
    """Return a token of one letter, and the letters that were found likeliest."""
    return XrayToken(ord(written), written, reading(ord(other)), reading(ord(own)) if own else None)


def sample_xray(*, has_own: bool = True) -> Xray:
    """Return an X-ray of a whole answer."""
    tokens = []
    for place, word in enumerate(WORDS):
        other = _read(place, word, OTHERS.get(place), 0.0)
        own = _read(place, word, DRAWN.get(place), 0.08)
        tokens.append(XrayToken(_id(word), word, other, own if has_own else None))
    return Xray("Q4_0", "Q8_0" if has_own else "", tuple(tokens), prompt_tokens=41, took_s=1.84)


def _id(word: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(word)) % 10**6


def _read(place: int, word: str, likelier: str | None, more: float) -> Reading:
    """Return five chances: the word first, or behind a likelier one."""
    first = 0.52 + more + 0.03 * (place % 9)
    draws = [first, *((1 - first) * share for share in (0.6, 0.2, 0.1, 0.04))]
    words: Sequence[str] = [word, " a", " its", ",", " and"]
    if likelier is not None:
        words = [likelier, " a", " its", ",", " and"] if place % 3 == 2 else [likelier, word, " its", ",", " and"]
    chances = tuple(Chance(_id(one), one, share) for one, share in zip(words, draws, strict=True))
    found = next((one.probability for one in chances if one.text == word), 0.004)
    return Reading(math.log(found), found, chances)
