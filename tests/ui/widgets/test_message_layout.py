"""One message: bubble, figures and state line lie where they belong, and growing equals being made at once."""

from __future__ import annotations

import random

import pytest

from ui.widgets.message_layout import MessageItem, MessageLayout, TranscriptStyle

COLUMN_PX = 700
ALL = (0, 1_000_000)


@pytest.fixture
def style(qapp):
    return TranscriptStyle.of_system()


def layout_of(style, text, role="assistant", **fields):
    layout = MessageLayout(MessageItem(1, role, text, **fields), style, COLUMN_PX)
    layout.lay_out(*ALL)
    return layout


def test_a_short_bubble_fits_its_text_and_ends_at_the_right_edge(style):
    bubble = layout_of(style, "Hi", "user").bubble
    assert bubble.right() == COLUMN_PX
    assert 32 < bubble.width() < 100


def test_a_long_bubble_takes_at_most_four_fifths_of_the_column(style):
    for text in ("word " * 200, "word " * 2000, "x" * 5000):
        layout = layout_of(style, text, "user")
        assert 0.7 * COLUMN_PX < layout.bubble.width() <= 0.8 * COLUMN_PX
        assert layout.bubble.right() == COLUMN_PX


def test_a_bubble_of_text_from_right_to_left_holds_its_lines(style):
    layout = layout_of(style, "مرحبا", "user")
    end, _height = layout.pieces[0].end_point()
    assert layout.bubble.width() < 150
    assert 0 <= end.x() <= layout.bubble.width()


def test_an_answer_has_a_line_for_figures_once_it_ended(style):
    layout = layout_of(style, "text", is_streaming=True)
    assert layout.figures_rect.height() == 0
    streaming_px = layout.height_px
    layout.update(MessageItem(1, "assistant", "text", figures="151 tokens/s"))
    assert layout.figures_rect.height() == 36
    assert layout.height_px == streaming_px + 36


def test_a_state_line_lies_between_text_and_figures(style):
    layout = layout_of(style, "text", state_text="stopped", figures="151 tokens/s")
    assert layout.state_rect.top() == 22
    assert layout.figures_rect.top() == layout.state_rect.top() + layout.state_rect.height()


def test_a_state_line_without_figures_is_the_copy_buttons_line_too(style):
    layout = layout_of(style, "text", state_text="stopped")
    assert layout.figures_rect == layout.state_rect
    assert layout.height_px == layout_of(style, "text", figures="151 tokens/s").height_px


def test_an_answer_that_ended_before_its_first_word_takes_no_text_line(style):
    assert layout_of(style, "", state_text="interrupted: the engine ended here").state_rect.top() == 0
    assert layout_of(style, "", is_streaming=True).state_rect.top() == 22


def test_text_that_grew_is_laid_out_as_text_made_at_once(style):
    # The twin: any way of cutting the stream gives the pieces, the heights and the places of the whole text.
    draw = random.Random(11)
    for role in ("assistant", "user"):
        whole = "".join(draw.choice(["word ", "longer ", "\n", "\n\n", "中文", "😀", "\r\n"]) for _ in range(3000))
        grown = MessageLayout(MessageItem(1, role, "", is_streaming=True), style, COLUMN_PX)
        grown.lay_out(*ALL)
        start = 0
        while start < len(whole):
            size = draw.randint(1, 60)
            grown.append(whole[start : start + size])
            start += size
        grown.lay_out(*ALL)
        twin = layout_of(style, whole, role, is_streaming=True)
        assert grown.item == twin.item
        assert grown.text == twin.text
        assert [piece.text for piece in grown.pieces] == [piece.text for piece in twin.pieces]
        assert [piece.height_px for piece in grown.pieces] == [piece.height_px for piece in twin.pieces]
        assert grown.height_px == twin.height_px
        assert grown.num_chars == len(grown.text)


def test_a_line_end_that_comes_in_two_parts_is_one(style):
    layout = layout_of(style, "a\r", is_streaming=True)
    layout.append("\nb")
    assert layout.text == "a\nb"


def test_only_pieces_in_view_are_laid_out(style):
    layout = MessageLayout(MessageItem(1, "assistant", "word " * 20_000), style, COLUMN_PX)
    assert layout.pieces == []
    seen = layout.lay_out(10_000, 10_500)
    assert 1 <= len(seen) <= 3
    assert sum(piece.is_laid_out for piece in layout.pieces) == len(seen)


def test_text_that_grows_lays_out_its_last_paragraph_only(style):
    layout = layout_of(style, "first paragraph\n\nsecond", is_streaming=True)
    first = layout.pieces[0]._paragraphs[0].layout
    assert layout.append(" grows") == 44
    assert layout.pieces[0]._paragraphs[0].layout is first


def test_a_place_finds_its_letter_above_in_and_below_the_text(style):
    layout = layout_of(style, "first\nsecond", figures="151 tokens/s")
    assert layout.offset_at(0, -5) == 0
    assert layout.offset_at(0, 30) == 6
    assert layout.offset_at(0, 50) == 12


def test_other_text_replaces_the_pieces(style):
    layout = layout_of(style, "word " * 1000)
    layout.update(MessageItem(1, "assistant", "short"))
    assert layout.text == "short"
    assert layout.num_chars == 5


def test_a_width_of_nothing_does_no_harm(style):
    for role in ("user", "assistant", "note"):
        layout = MessageLayout(MessageItem(1, role, "some words"), style, 1)
        layout.lay_out(*ALL)
        assert layout.height_px > 22
