"""The header of a safetensors file, check by check (trust.md S-08); its mutations are in test_header_fuzz.py."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from app.models import safetensors_tensors
from app.models.byte_source import HeaderError, open_file
from app.models.safetensors_tensors import DTYPE_BITS, SafeTensor, read_tensors
from backends.errors import ErrorCode
from tests.helpers.byte_sources import FakeSource
from tests.helpers.safetensors_files import BITS, entries, file_bytes, json_file, raw_file


def one(dtype: str = "F32", shape: object = (2, 4), begin: object = 0, end: object = 32) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refusal(whole: bytes) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        read_tensors(FakeSource(whole))
    assert str(caught.value).endswith(".")
    return caught.value


def test_tensors_come_in_the_order_of_their_places() -> None:
    header = {"b": one(begin=4, end=36), "a": one("U8", [4], 0, 4), "__metadata__": {"format": "pt"}}
    assert read_tensors(FakeSource(json_file(header, 36))) == (
        SafeTensor("a", "U8", (4,), 4),
        SafeTensor("b", "F32", (2, 4), 32),
    )


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_every_dtype_is_read_with_its_size(dtype: str) -> None:
    (tensor,) = read_tensors(FakeSource(file_bytes({"a": (dtype, [3, 8])})))
    assert (tensor.dtype, tensor.dims, tensor.elements) == (dtype, (3, 8), 24)
    assert tensor.size_bytes == 24 * BITS[dtype] // 8
    assert DTYPE_BITS[dtype] == BITS[dtype]


def test_every_dtype_is_known() -> None:
    assert set(DTYPE_BITS) == set(BITS)


def test_single_numbers_empty_tensors_and_long_headers_are_read() -> None:
    shapes = {"scalar": ("I64", []), "empty": ("F32", [0, 7]), "last": ("BOOL", [3]), "empty too": ("F16", [5, 0])}
    found = read_tensors(FakeSource(file_bytes(shapes)))
    assert [(tensor.name, tensor.elements) for tensor in found] == [
        ("scalar", 1),
        ("empty", 0),
        ("last", 3),
        ("empty too", 0),
    ]
    padded = json.dumps(entries(shapes)).encode() + b" " * 700_000  # writers pad with spaces
    assert read_tensors(FakeSource(raw_file(padded, 11), piece_bytes=1_000)) == found


def test_sizes_beyond_4_gib_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    shapes = {"a": ("BF16", [2**16, 2**16]), "b": ("F8_E4M3", [2**17, 2**16]), "c": ("U8", [3])}
    header = {"__metadata__": {}, **entries(shapes)}
    path.write_bytes(json_file(header, 0))
    os.truncate(path, path.stat().st_size + 2**33 + 2**33 + 3)
    source = open_file(path)
    assert [tensor.size_bytes for tensor in read_tensors(source)] == [2**33, 2**33, 3]
    source.close()


def test_no_tensor_at_all_is_left_to_the_caller() -> None:
    assert read_tensors(FakeSource(raw_file(b"{}", 0))) == ()


@pytest.mark.parametrize(
    "whole",
    [
        b"x",
        bytes(9),
        raw_file(b"{}", 0, length=0),
        raw_file(b"{}", 0, length=100_000_001),
        raw_file(b"{}", 0, length=2**64 - 1),
        raw_file(b" {}", 0),
        b"GGUF\3\0\0\0" + bytes(100),
        b"<html>" * 10,
    ],
)
def test_a_stranger_is_no_model(whole: bytes) -> None:
    error = refusal(whole)
    assert error.code is ErrorCode.NOT_A_MODEL


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"a": one(end=36)}, "takes 36 bytes, which is not what its shape needs"),
        ({"a": one(shape=[2, 5])}, "takes 32 bytes, which is not"),
        ({"a": one("F4", [3], 0, 2)}, "takes 2 bytes, which is not"),  # no whole bytes
        ({"a": one(begin=32, end=0)}, "ends before it begins"),
        ({"a": one(begin=-1, end=31)}, "ends before it begins"),
        ({"a": one(shape=[2**40, 2**40])}, "impossible shape"),
        ({"a": one(shape=[-2, -4])}, "impossible shape"),
        ({"a": one(shape=[2**70])}, "impossible shape"),
        ({"a": one(shape=[1] * 17)}, "claims 17 dimensions"),
        ({"a": one("F33")}, "unknown type 'F33'"),
        ({"a": one("f32")}, "unknown type 'f32'"),
        ({"": one()}, "name of a tensor is empty"),
        ({"a\nb": one()}, "not plain text"),
        ({"x" * 1_025: one()}, "too long"),
        ({"a": one(shape=[2, "4"])}, "not as the format wants it"),
        ({"a": one(shape=[2, 4.0])}, "not as the format wants it"),
        ({"a": one(shape=8)}, "not as the format wants it"),
        ({"a": one(end="32")}, "not as the format wants it"),
        ({"a": {"dtype": "F32", "shape": [8]}}, "not as the format wants it"),
        ({"a": {**one(), "data_offsets": [0, 32, 64]}}, "not as the format wants it"),
        ({"a": 7}, "not as the format wants it"),
        ({"__metadata__": {"a": 1}}, "metadata of the header is not as the format wants it"),
        ({"__metadata__": []}, "metadata of the header is not as the format wants it"),
        ({"a": one(), "b": one()}, "lies upon the one before it"),
        ({"a": one(), "b": one(begin=16, end=48)}, "lies upon the one before it"),
        (
            {"a": one(), "b": one(shape=[0], begin=16, end=16)},
            "'b' lies upon the one before it",
        ),  # no bytes, yet inside
        ({"a": one(), "b": one(shape=[0], begin=40, end=40)}, "hole in front of the tensor 'b'"),
        ({"a": one(begin=1, end=33)}, "hole in front of the tensor 'a'"),
        ({"a": one(), "b": one(begin=33, end=65)}, "hole in front of the tensor 'b'"),
        ({"a": one(shape=[100], end=400)}, "beyond the end of the file"),
        ({"a": one(shape=[2**60], end=2**62)}, "beyond the end of the file"),
        ({"a": one(shape=[4], end=16)}, "16 bytes follow the last tensor"),
    ],
)
def test_hostile_tensors_are_refused(header: dict[str, object], words: str) -> None:
    data_bytes = 96 if "hole" in words or "upon" in words else 32
    error = refusal(json_file(header, data_bytes))
    assert words in str(error)
    assert error.code is ErrorCode.HEADER_INVALID


def test_an_entry_that_stands_twice_cannot_hide_bytes() -> None:
    # JSON decoders keep the last one, so the first one's bytes are a hole.
    twice = b'{"a":' + json.dumps(one()).encode() + b',"a":' + json.dumps(one(begin=32, end=64)).encode() + b"}"
    assert "hole in front" in str(refusal(raw_file(twice, 64)))


def test_a_header_cut_anywhere_is_refused() -> None:
    whole = file_bytes({"a": ("F32", [2, 4]), "b": ("U8", [3])})
    for length in range(1, len(whole)):
        refusal(whole[:length])
    assert len(read_tensors(FakeSource(whole))) == 2


def test_the_work_for_a_hostile_header_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors_tensors, "MAX_TENSORS", 2)
    whole = file_bytes({"a": ("U8", [1]), "b": ("U8", [1]), "c": ("U8", [1])})
    assert "claims 3 tensors; at most 2" in str(refusal(whole))
    monkeypatch.setattr(safetensors_tensors, "_MAX_VALUES", 10)
    assert "values; at most 10" in str(refusal(whole))


@pytest.mark.parametrize("junk", [b"[" * 90_000, b'{"a":' * 90_000, b'{"a":1,' * 9, b'{"a":[' + b"0," * 90_000])
def test_junk_of_any_kind_is_refused(junk: bytes) -> None:
    refusal(raw_file(b"{" + junk[1:], 0))


def test_elements_are_the_product_of_the_shape() -> None:
    assert SafeTensor("a", "U8", (3, 5, 7), 105).elements == math.prod((3, 5, 7))
