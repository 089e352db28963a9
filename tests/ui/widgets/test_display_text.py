"""Hostile text becomes harmless, and cuts never change what is said."""

from __future__ import annotations

import random

import pytest

from ui.widgets.display_text import (
    MAX_PIECE_CHARS,
    MAX_PIECE_LINES,
    TextShape,
    char_offset,
    cut,
    display_text,
    has_right_to_left,
    paragraph_at,
    utf16_offset,
    word_at,
)

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("a\u2028b\u2029c\u0085d", "a\nb\nc\nd"),
        ("tab\tstays", "tab\tstays"),
        ("\x00\x1b[31m\x7f", "\u2400\u241b[31m\u2421"),
        ("\x9b\ufffe", "\ufffd\ufffd"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        ("中文 😀 مرحبا", "中文 😀 مرحبا"),
    ],
)
def test_text_is_shown_as_it_is_but_harmless(raw, shown):
    assert display_text(raw) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "word " * 5000,
        "x" * 100_000,
        "\n" * 100_000,
        "a\n" * 20_000,
        "中文字符" * 5000,
        FAMILY * 3000,
        "e" + "\u0301" * 30_000,
        ("word " * 390 + "\n") * 20,
    ],
)
def test_pieces_are_small_and_joined_they_are_the_text(text):
    pieces = cut(text)
    assert "".join(pieces) == text
    assert all(len(piece) <= MAX_PIECE_CHARS for piece in pieces)
    assert all(piece for piece in pieces[:-1])
    assert all(piece.count("\n") <= MAX_PIECE_LINES for piece in pieces[:-1])


def test_a_long_line_is_cut_after_a_blank():
    assert all(piece.endswith(" ") for piece in cut("word " * 2000)[:-1])


def test_a_cut_never_parts_a_visible_character(qapp):
    pieces = cut("x" + FAMILY * 1000)
    assert len(pieces) > 1
    assert all(piece.removeprefix("x") == FAMILY * (len(piece) // len(FAMILY)) for piece in pieces)


def test_text_that_grows_keeps_its_earlier_pieces():
    # The twin: cutting the last piece and what is new gives the same pieces as cutting the whole text.
    draw = random.Random(7)
    whole = "".join(draw.choice(["word ", "\n", "中文", "longer-word", FAMILY, "\n\n"]) for _ in range(6000))
    pieces = [""]
    start = 0
    while start < len(whole):
        size = draw.randint(1, 900)
        pieces[-1:] = cut(pieces[-1] + whole[start : start + size])
        start += size
    assert pieces == cut(whole)


def test_an_estimate_counts_full_and_blank_lines():
    assert TextShape.of("") == TextShape(0, 1, 0)
    assert TextShape.of("a\n\nb\n") == TextShape(5, 3, 1)
    assert TextShape.of("one line").estimated_lines(80) == 1
    assert TextShape.of("one\n\ntwo").estimated_lines(80) == 2
    assert TextShape.of("x" * 8000).estimated_lines(80) == 100


def test_a_word_a_blank_and_a_sign_are_units():
    text = "first\nit's  中文, done"
    units = ["first", "\n", "it", "'", "s", "  ", "中文", ",", " ", "done"]
    found, at = [], 0
    while at < len(text):
        start, end = word_at(text, at)
        assert (start, end) == word_at(text, end - 1)
        found.append(text[start:end])
        at = end
    assert found == units
    assert word_at(text, len(text)) == (len(text), len(text))


def test_a_paragraph_ends_before_its_line_end():
    assert paragraph_at("one\ntwo\nthree", 5) == (4, 7)
    assert paragraph_at("one\ntwo\nthree", 3) == (0, 3)
    assert paragraph_at("one", 3) == (0, 3)


def test_positions_count_as_qt_counts():
    text = "a😀b"
    assert [utf16_offset(text, offset) for offset in range(4)] == [0, 1, 3, 4]
    assert [char_offset(text, position) for position in (0, 1, 3, 4)] == [0, 1, 2, 3]


def test_direction_is_seen():
    assert has_right_to_left("to مرحبا")
    assert has_right_to_left("שלום")
    assert not has_right_to_left("中文 é 😀")
