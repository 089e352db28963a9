"""The checks of trust.md S-02 on values; the same through whole files is in test_gguf_header.py."""

from __future__ import annotations

import pytest

from app.models.gguf_checks import check_metadata, check_names, check_places, check_type, shown
from app.models.gguf_facts import TensorInfo, Value
from app.models.gguf_header import HeaderError

LATER: dict[str, Value] = {"split.no": 1, "split.count": 3}


def at(offset: int, size_bytes: int, name: str = "a") -> TensorInfo:
    return TensorInfo(name, (size_bytes,), "I8", offset, size_bytes)


def test_a_later_part_needs_no_architecture_where_parts_are_wanted() -> None:
    assert check_metadata(LATER, is_part_enough=True) == 32
    with pytest.raises(HeaderError, match="later one of 3 parts"):
        check_metadata(LATER, is_part_enough=False)
    with pytest.raises(HeaderError, match="later one of 3 parts"):
        check_metadata({**LATER, "general.architecture": "llama"}, is_part_enough=False)
    for first in ({"split.no": 0, "split.count": 3}, {"split.no": 1, "split.count": 1}, {}):
        with pytest.raises(HeaderError, match="architecture"):
            check_metadata(first, is_part_enough=True)


@pytest.mark.parametrize(("key", "good"), [("split.no", 2), ("split.count", 2), ("split.tensors.count", 5)])
def test_types_that_llama_cpp_insists_on_are_wanted(key: str, good: int) -> None:
    check_type(key, good)
    for other in set(range(13)) - {good}:
        with pytest.raises(HeaderError, match="is not stored as"):
            check_type(key, other)
    check_type("llama.block_count", 10)


def test_an_alignment_of_64_bits_is_no_alignment() -> None:
    check_type("general.alignment", 4)
    with pytest.raises(HeaderError, match="no 32-bit power of two"):
        check_type("general.alignment", 10)


def test_tensors_fill_their_room_to_the_last_byte_and_not_beyond() -> None:
    tensors = [at(0, 33, "a"), at(64, 2**33, "b"), at(64 + 2**33, 7, "c")]
    end = 64 + 2**33 + 7
    check_places(tensors, 32, end)
    check_names(tensors, {})
    with pytest.raises(HeaderError, match="'c' reaches beyond the end"):
        check_places(tensors, 32, end - 1)
    with pytest.raises(HeaderError, match="'b' reaches beyond the end"):
        check_places(tensors, 32, 2**32)


def test_a_long_name_is_cut_and_harmless_in_a_sentence() -> None:
    assert shown("a\n\u202eb") == r"'a\n\u202eb'"
    assert len(shown("x" * 500)) < 100
