"""JSON of strangers: bounded before it is decoded, and refused in one sentence."""

from __future__ import annotations

import msgspec
import pytest

from app.models.bounded_json import check_values, decode_object, decode_typed, read_whole
from app.models.byte_source import HeaderError
from tests.helpers.byte_sources import FakeSource


def refusal(data: bytes, max_values: int = 1_000) -> str:
    with pytest.raises(HeaderError) as caught:
        decode_object(data, "config.json", max_values)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_an_object_of_anything_is_decoded() -> None:
    data = b'{"a": [1, 2.5, true, null], "b": {"c": "\xc3\xbc"}, "d": Infinity, "e": NaN}'
    assert decode_object(data, "x", 100) == {
        "a": [1, 2.5, True, None],
        "b": {"c": "ü"},
        "d": None,  # Python writes these two, JSON has neither
        "e": None,
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "config.json is no valid JSON"),
        (b"{", "config.json is no valid JSON"),
        (b"\xff\xfe{}", "config.json is no valid JSON"),
        (b"[1]", "config.json is no JSON object"),
        (b"null", "config.json is no JSON object"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "config.json is no valid JSON"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "config.json is nested more than 32 deep"),
    ],
)
def test_what_is_no_plain_object_is_refused(data: bytes, words: str) -> None:
    assert words in refusal(data)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_refused_before_it_costs_anything(opening: bytes) -> None:
    data = b'{"a":' + opening * 200_000
    assert refusal(data) == "config.json holds 200,002 values; at most 1,000 are allowed."
    assert refusal(data, 10**6) == "config.json is nested too deeply."
    with pytest.raises(HeaderError, match="nested too deeply"):
        decode_typed(data, "x", msgspec.json.Decoder())


def test_values_are_counted_with_their_brackets() -> None:
    check_values(b'{"a": [1, 2], "b": {}}', "x", 6)
    with pytest.raises(HeaderError, match="holds 6 values; at most 5"):
        check_values(b'{"a": [1, 2], "b": {}}', "x", 5)


def test_a_typed_text_of_another_form_is_refused_in_one_line() -> None:
    decoder = msgspec.json.Decoder(dict[str, int])
    assert decode_typed(b'{"a": 1}', "x", decoder) == {"a": 1}
    for data in (b'{"a": "1"}', b'{"a": 1', b"[]", b'{"a": 1e999}', b'{"a\\ud800": 1}', b"\xff"):
        with pytest.raises(HeaderError, match="x is not as the format wants it") as caught:
            decode_typed(data, "x", decoder)
        assert len(str(caught.value)) < 200


def test_a_small_file_is_read_whole_in_whatever_pieces_it_comes() -> None:
    data = bytes(range(100))
    assert read_whole(FakeSource(data, piece_bytes=7), "x", 100) == data
    with pytest.raises(HeaderError, match="x takes 100 bytes; at most 99"):
        read_whole(FakeSource(data), "x", 99)


def test_a_small_file_that_shrinks_is_refused() -> None:
    class Shrinking(FakeSource):
        def read(self, offset: int, count: int) -> bytes:
            return super().read(offset, count)[:10] if offset == 0 else b""

    with pytest.raises(HeaderError, match="became shorter"):
        read_whole(Shrinking(bytes(100)), "x", 100)
