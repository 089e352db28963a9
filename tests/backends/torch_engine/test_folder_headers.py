"""Headers of safetensors: what an honest file says, and every lie refused before a weight is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_headers import header_bytes, read_header
from tests.helpers.safetensors_files import SHAPES, entries, file_bytes, json_file, mutated_file, raw_file

MODEL = Path("/models/one")
FILE = MODEL / "model.safetensors"


def read(data: bytes):
    return read_header(FILE, len(data), data, MODEL)


def test_an_honest_file_says_where_each_tensor_lies() -> None:
    data = file_bytes(SHAPES)
    tensors = read(data)
    assert set(tensors) == set(SHAPES)
    norm = tensors["model.norm.weight"]
    assert (norm.dtype, norm.shape, norm.elements, norm.size_bytes) == ("F32", (64,), 64, 256)
    assert norm.offset + norm.size_bytes == len(data)


def changed(name: str, **what: object) -> bytes:
    header = entries(SHAPES)
    header[name] |= what
    return json_file(header, len(file_bytes(SHAPES)) - 8 - len(json.dumps({"__metadata__": {}, **header})))


@pytest.mark.parametrize(
    "what",
    [
        {"shape": [255, 64]},
        {"shape": [-1, 64]},
        {"shape": [2**62, 2**62]},
        {"shape": [1] * 20},
        {"data_offsets": [8, 4]},
        {"data_offsets": [0, 2**70]},
        {"data_offsets": [-8, 32760]},
        {"dtype": "F32"},
    ],
)
def test_a_tensor_that_lies_is_refused(what) -> None:
    with pytest.raises(EngineError) as caught:
        read(changed("model.embed_tokens.weight", **what))
    assert caught.value.code is ErrorCode.HEADER_INVALID


def test_an_unknown_number_format_is_named() -> None:
    with pytest.raises(EngineError) as caught:
        read(changed("model.embed_tokens.weight", dtype="F8_E4M3"))
    assert caught.value.code is ErrorCode.WEIGHTS_UNSUPPORTED
    assert caught.value.parameters["detail"] == "F8_E4M3"


def test_overlaps_holes_and_ends_are_refused() -> None:
    honest = entries({"a": ("F32", [4]), "b": ("F32", [4])})
    for offsets in ([0, 16], [8, 24], [20, 36]):
        header = honest | {"b": honest["b"] | {"data_offsets": offsets}}
        with pytest.raises(EngineError):
            read(json_file(header, 36))
    with pytest.raises(EngineError):
        read(file_bytes(SHAPES)[:-1])
    with pytest.raises(EngineError):
        read(file_bytes(SHAPES) + b"x")


def test_a_length_that_cannot_be_is_refused_without_reading_on() -> None:
    for length in (0, 1, 2**27, 2**63, 2**64 - 1):
        data = raw_file(b"{}", 0, length)
        with pytest.raises(EngineError):
            header_bytes(FILE, len(data), data[:8], MODEL)
    with pytest.raises(EngineError):
        header_bytes(FILE, 3, b"abc", MODEL)


@pytest.mark.parametrize("seed", range(60))
def test_a_mutated_file_is_refused_or_read(seed) -> None:
    data = mutated_file(SHAPES, seed)
    try:
        header_bytes(FILE, len(data), data[:8], MODEL)
        tensors = read(data)
    except EngineError:
        return
    assert sum(tensor.size_bytes for tensor in tensors.values()) < len(data)
