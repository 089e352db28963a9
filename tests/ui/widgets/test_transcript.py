"""Messages on each other: places, anchors, and copied text."""

from __future__ import annotations

import pytest

from ui.widgets.message_layout import MessageItem, TranscriptStyle
from ui.widgets.text_selection import Position, Unit
from ui.widgets.transcript import TOP_PX, Anchor, Transcript

TEXT = "Some words of an answer that go on for a while. " * 6


@pytest.fixture
def transcript(qapp):
    return Transcript(TranscriptStyle.of_system(), 700)


def many(count):
    return [MessageItem(key, "user" if key % 2 else "assistant", f"{key} {TEXT}") for key in range(count)]


def laid_out(transcript):
    return [index for index, layout in enumerate(transcript.layouts) if layout.pieces]


def test_only_messages_near_the_eye_are_laid_out(transcript):
    transcript.set_items(many(10_000))
    transcript.lay_out(transcript.total_px - 800, transcript.total_px)
    assert 1 <= len(laid_out(transcript)) <= 12
    assert laid_out(transcript)[-1] == 9999


def test_an_anchored_place_stays_while_heights_above_become_exact(transcript):
    transcript.set_items(many(200))
    transcript.lay_out(20_000, 21_000)
    anchor = transcript.anchor_at(20_300)
    letter = transcript.position_at(100, transcript.anchor_top(anchor))
    while transcript.lay_out(0, transcript.total_px):
        pass
    assert transcript.position_at(100, transcript.anchor_top(anchor)) == letter


def test_lines_far_from_the_eye_are_dropped_and_heights_stay(transcript):
    transcript.set_items(many(1000))
    transcript.lay_out(0, 30_000)
    total = transcript.total_px
    transcript.lay_out(10_000, 10_500)
    with_lines = [piece for layout in transcript.layouts for piece in layout.pieces if piece.is_laid_out]
    assert len(with_lines) < 10
    assert transcript.total_px == total


def test_a_shared_key_is_refused(transcript):
    with pytest.raises(ValueError, match="share a key"):
        transcript.set_items([MessageItem(1, "user", "a"), MessageItem(1, "user", "b")])
    transcript.set_items([MessageItem(1, "user", "a")])
    with pytest.raises(ValueError, match="already shown"):
        transcript.append_item(MessageItem(1, "user", "b"))


def test_an_unknown_key_is_an_error(transcript):
    for act in (transcript.remove_item, transcript.update_item, lambda key: transcript.append_text(key, "x")):
        with pytest.raises(KeyError):
            act(5)


def test_messages_after_a_removed_one_are_still_found(transcript):
    transcript.set_items(many(5))
    transcript.remove_item(1)
    transcript.append_text(4, " more")
    transcript.update_item(2, figures="151 tokens/s")
    assert [layout.item.key for layout in transcript.layouts] == [0, 2, 3, 4]
    assert transcript.layouts[3].item.text.endswith(" more")
    assert transcript.layouts[1].item.figures == "151 tokens/s"
    assert transcript.total_px == TOP_PX + sum(layout.height_px for layout in transcript.layouts)


def test_places_and_messages_agree(transcript):
    transcript.set_items(many(20))
    transcript.lay_out(0, transcript.total_px)
    for index in range(20):
        top = transcript.message_top(index)
        assert transcript.index_at(top) == index
        assert transcript.index_at(top + transcript.layouts[index].height_px - 1) == index
        assert list(transcript.between(top, top + 1)) == [index]
    assert list(transcript.between(-100, 0)) == []


def test_copied_text_is_the_shown_text_with_a_blank_line_between_messages(transcript):
    transcript.set_items([MessageItem(1, "user", "a\x1b\r\nb"), MessageItem(2, "assistant", "<b>c</b>")])
    assert transcript.text_between(*transcript.whole()) == "a\u241b\nb\n\n<b>c</b>"
    assert transcript.text_between(Position(0, 3), Position(1, 3)) == "b\n\n<b>"


def test_words_and_paragraphs_are_found_in_a_message(transcript):
    transcript.set_items([MessageItem(1, "user", "one two\nthree")])
    assert transcript.unit_around(Position(0, 5), Unit.LETTER) == (Position(0, 5), Position(0, 5))
    assert transcript.unit_around(Position(0, 5), Unit.WORD) == (Position(0, 4), Position(0, 7))
    assert transcript.unit_around(Position(0, 5), Unit.PARAGRAPH) == (Position(0, 0), Position(0, 7))


def test_a_transcript_of_nothing_answers_every_question(transcript):
    assert transcript.whole() == (Position(0, 0), Position(0, 0))
    assert transcript.text_between(*transcript.whole()) == ""
    assert transcript.position_at(5, 5) == Position(0, 0)
    assert transcript.anchor_top(transcript.anchor_at(0)) == 0
    assert transcript.anchor_top(Anchor(3, 2, 7)) == 7
    assert not transcript.lay_out(0, 500)
    transcript.set_width(300)
    assert transcript.total_px == TOP_PX
