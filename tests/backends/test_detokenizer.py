"""Whole characters only, and never the beginning of a stop string."""

from __future__ import annotations

import itertools
import random

import pytest

from backends.detokenizer import Detokenizer

TEXT = "plain, żółć, 模型, 😀👩‍👩‍👧‍👦 e\u0301, \u200f עברית \n\t end"


def cut(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(points), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def stream(pieces: list[bytes], stop: tuple[str, ...] = ()) -> tuple[list[str], list[int], Detokenizer]:
    detokenizer = Detokenizer(stop)
    texts, ids = [], []
    for token, piece in enumerate(pieces):
        text, released = detokenizer.add(token, piece)
        texts.append(text)
        ids += released
    text, released = detokenizer.finish()
    return [*texts, text], ids + list(released), detokenizer


def test_text_cut_at_every_byte_streams_to_the_same_text() -> None:
    data = TEXT.encode()
    for position in range(len(data) + 1):
        texts, ids, _ = stream(cut(data, [position]))
        assert "".join(texts) == TEXT
        assert ids == [0, 1]
        assert not any("\ufffd" in text for text in texts)


def test_text_cut_at_random_bytes_streams_to_the_same_text() -> None:
    data, draw = TEXT.encode(), random.Random(1)
    for _ in range(500):
        pieces = cut(data, [draw.randrange(len(data)) for _ in range(draw.randint(1, len(data)))])
        texts, ids, _ = stream(pieces)
        assert "".join(texts) == TEXT
        assert ids == list(range(len(pieces)))


def test_an_id_is_released_with_the_text_that_completes_it() -> None:
    detokenizer = Detokenizer()
    emoji = "😀".encode()
    assert detokenizer.add(10, b"a") == ("a", (10,))
    assert detokenizer.add(11, emoji[:2]) == ("", ())
    assert detokenizer.add(12, emoji[2:]) == ("😀", (11, 12))


def test_a_character_whose_end_never_came_is_dropped_with_its_ids() -> None:
    emoji = "😀".encode()
    texts, ids, _ = stream([b"a", emoji[:2], emoji[2:3]])
    assert "".join(texts) == "a"
    assert ids == [0]


def test_a_dropped_character_takes_no_whole_one_along() -> None:
    emoji = "😀".encode()
    texts, ids, _ = stream([b"a", b"b" + emoji[:2]])
    assert "".join(texts) == "ab"
    assert ids == [0]  # the second token is not all said, so its id would stand for more than the text


def test_invalid_bytes_in_the_middle_do_not_hold_the_rest_back() -> None:
    texts, _ids, _ = stream([b"a", b"\xff", b"b"])
    assert "".join(texts) == "a\ufffdb"


@pytest.mark.parametrize("pieces", [["one STOP two"], list("one STOP two"), ["one ST", "OP two"], ["one S", "TO", "P"]])
def test_a_stop_string_ends_the_text_before_it_and_is_never_shown(pieces: list[str]) -> None:
    texts, _ids, detokenizer = stream([piece.encode() for piece in pieces], ("STOP",))
    assert "".join(texts) == "one "
    assert detokenizer.stopped


def test_the_beginning_of_a_stop_string_is_held_and_then_released() -> None:
    detokenizer = Detokenizer(("###",))
    assert detokenizer.add(0, b"a#") == ("a", ())
    assert detokenizer.add(1, b"#") == ("", ())
    assert detokenizer.add(2, b"b") == ("##b", (0, 1, 2))


def test_the_earliest_of_several_stop_strings_wins() -> None:
    texts, _ids, _ = stream([b"x END y STOP"], ("STOP", "END"))
    assert "".join(texts) == "x "


def test_ids_after_a_stop_string_are_not_released() -> None:
    _texts, ids, _ = stream([b"keep ", b"ST", b"OP", b" more"], ("STOP",))
    assert ids == [0]


def test_an_empty_stop_string_stops_nothing() -> None:
    texts, _ids, detokenizer = stream([b"abc"], ("",))
    assert "".join(texts) == "abc"
    assert not detokenizer.stopped
