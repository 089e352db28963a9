"""What honest GGUF files of all kinds hold: both versions, every type, 64-bit sizes, arrays by layer, parts."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from app.models import gguf_header
from app.models.ggml_types import GGML_TYPES
from app.models.gguf_header import ArrayNote, GgufHeader, HeaderError, read_header, read_header_from, read_part
from tests.helpers import gguf_files
from tests.helpers.byte_sources import FakeSource
from tests.helpers.gguf_files import (
    BOOL,
    F32,
    I32,
    STRING,
    U8,
    U32,
    U64,
    TinyGguf,
    array_entry,
    entry,
    split_model,
    string_entry,
    tensor,
    text,
    u32,
    u64,
)


def read(model: TinyGguf, piece_bytes: int | None = None) -> GgufHeader:
    return read_header_from(FakeSource(model.to_bytes(), piece_bytes=piece_bytes))


@pytest.mark.parametrize("number", sorted(GGML_TYPES))
def test_every_type_of_tensor_is_read_with_its_size(number: int) -> None:
    ggml_type = GGML_TYPES[number]
    dims = [2 * ggml_type.block_elements, 3]
    size_bytes = 6 * ggml_type.block_bytes
    model = TinyGguf(tensors=(tensor("a", dims, number),), data_bytes=size_bytes)
    (found,) = read(model).tensors
    assert (found.type_name, found.dims, found.size_bytes) == (ggml_type.name, tuple(dims), size_bytes)
    with pytest.raises(HeaderError, match="beyond the end"):
        read(TinyGguf(tensors=(tensor("a", dims, number),), data_bytes=size_bytes - 1))
    if ggml_type.block_elements > 1:
        with pytest.raises(HeaderError, match="no whole blocks"):
            read(TinyGguf(tensors=(tensor("a", [dims[0] + 1], number),), data_bytes=10 * size_bytes))


@pytest.mark.parametrize("version", [2, 3])
def test_both_versions_count_in_64_bits(version: int) -> None:
    values = (string_entry("general.name", "x"), array_entry("a", U32, 2, u32(1) + u32(2)))
    header = read(TinyGguf(version=version, metadata=values))
    assert (header.version, header.name, header.metadata["a"]) == (version, "x", (1, 2))


def test_sizes_beyond_4_and_8_gib_are_read(tmp_path: Path) -> None:
    shapes = [(2**16, 2**16), (2**17, 2**16), (8, 1)]  # F16: 8 GiB, 16 GiB, 16 bytes
    places = [0, 2**33, 2**33 + 2**34]
    infos = [
        tensor(f"t{number}", dims, 1, place) for number, (dims, place) in enumerate(zip(shapes, places, strict=True))
    ]
    model = TinyGguf(tensors=infos, data_bytes=0)
    end = places[2] + 16
    path = gguf_files.write_header_only(model.to_bytes(), len(model.to_bytes()) + end, tmp_path / "large.gguf")
    header = read_header(path)
    assert [one.offset for one in header.tensors] == places
    assert header.tensor_bytes == end
    assert header.file_bytes == header.data_offset + end
    gguf_files.write_header_only(model.to_bytes(), len(model.to_bytes()) + end - 1, path)
    with pytest.raises(HeaderError, match="'t2' reaches beyond"):
        read_header(path)


def test_arrays_by_layer_are_kept_whatever_their_type() -> None:
    layers = 126
    values = (
        array_entry("llama.attention.head_count_kv", I32, layers, struct.pack(f"<{layers}i", *range(layers))),
        array_entry("llama.feed_forward_length", U32, layers, struct.pack(f"<{layers}I", *[53_248] * layers)),
        array_entry("llama.attention.sliding_window_pattern", BOOL, layers, b"\1\0" * (layers // 2)),
        array_entry("llama.rope.freqs", F32, 2, struct.pack("<2f", 0.5, 2.0)),
    )
    metadata = read(TinyGguf(metadata=values)).metadata
    assert metadata["llama.attention.head_count_kv"] == tuple(range(layers))
    assert metadata["llama.feed_forward_length"] == (53_248,) * layers
    assert metadata["llama.attention.sliding_window_pattern"] == (True, False) * (layers // 2)
    assert metadata["llama.rope.freqs"] == (0.5, 2.0)


def test_several_chat_templates_are_read_by_their_names() -> None:
    values = (
        array_entry("tokenizer.chat_templates", STRING, 2, text("default") + text("tool_use")),
        string_entry("tokenizer.chat_template", "{{ messages }}"),
        string_entry("tokenizer.chat_template.tool_use", "{{ tools }}"),
    )
    header = read(TinyGguf(metadata=values))
    assert header.chat_template == "{{ messages }}"
    assert header.text("tokenizer.chat_template.tool_use") == "{{ tools }}"
    assert header.metadata["tokenizer.chat_templates"] == ArrayNote("string", 2)


def test_numbers_of_64_bits_are_numbers() -> None:
    values = (entry("llama.context_length", U64, u64(2**40)), entry("llama.block_count", U64, u64(32)))
    header = read(TinyGguf(metadata=values))
    assert (header.context_length, header.block_count) == (2**40, 32)


def test_how_many_elements_are_kept_in_all_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_header, "KEPT_TOTAL_ELEMENTS", 5)
    values = tuple(array_entry(key, U8, 3, b"\1\2\3") for key in "ab")
    metadata = read(TinyGguf(metadata=values)).metadata
    assert (metadata["a"], metadata["b"]) == ((1, 2, 3), ArrayNote("uint8", 3))


@pytest.mark.parametrize("piece_bytes", [None, 1, 7, 1_000])
def test_a_header_comes_in_pieces_of_any_size(piece_bytes: int | None) -> None:
    words = b"".join(text("x" * (number % 9)) for number in range(300))
    model = TinyGguf(metadata=(array_entry("tokenizer.ggml.tokens", STRING, 300, words), string_entry("b", "end")))
    header = read(model, piece_bytes)
    assert header == read(model)
    assert header.text("b") == "end"


def test_a_later_part_is_read_as_a_part_and_not_as_a_model(tmp_path: Path) -> None:
    second = split_model(2)[1].write(tmp_path / "a.gguf")
    assert read_part(second).architecture == ""
    assert read_header_from(FakeSource(second.read_bytes()), is_part_enough=True) == read_part(second)
    with pytest.raises(HeaderError, match="later one of 2 parts"):
        read_header(second)


def test_whoever_opened_a_source_closes_it() -> None:
    source = FakeSource(TinyGguf().to_bytes())
    read_header_from(source)
    assert not source.is_closed
