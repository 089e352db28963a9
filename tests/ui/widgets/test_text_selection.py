"""What the mouse marks, by letters, words and paragraphs, forwards and backwards."""

from __future__ import annotations

from ui.widgets.text_selection import Position, TextSelection, Unit


def tens(position, unit):
    """A text whose words are ten letters long."""
    if unit is Unit.LETTER:
        return position, position
    start = position.offset // 10 * 10
    return Position(position.message, start), Position(position.message, start + 10)


def test_dragging_marks_from_where_it_began_in_both_directions():
    selection = TextSelection(tens)
    selection.begin(Position(1, 25), Unit.LETTER)
    assert selection.is_empty
    selection.extend(Position(2, 3))
    assert (selection.start, selection.end) == (Position(1, 25), Position(2, 3))
    selection.extend(Position(0, 7))
    assert (selection.start, selection.end) == (Position(0, 7), Position(1, 25))


def test_dragging_after_a_double_click_marks_whole_words():
    selection = TextSelection(tens)
    selection.begin(Position(0, 25), Unit.WORD)
    assert (selection.start, selection.end) == (Position(0, 20), Position(0, 30))
    selection.extend(Position(0, 42))
    assert (selection.start, selection.end) == (Position(0, 20), Position(0, 50))
    selection.extend(Position(0, 3))
    assert (selection.start, selection.end) == (Position(0, 0), Position(0, 30))


def test_each_message_knows_its_marked_part():
    selection = TextSelection(tens)
    selection.set(Position(1, 4), Position(3, 2))
    assert [selection.within(message, 9) for message in range(5)] == [(0, 0), (4, 9), (0, 9), (0, 2), (0, 0)]


def test_nothing_is_marked_after_clear():
    selection = TextSelection(tens)
    selection.set(Position(0, 1), Position(0, 5))
    selection.clear()
    assert selection.is_empty
    assert selection.within(0, 9) == (0, 0)
