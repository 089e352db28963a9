"""Hashes of large and small files, and how model files begin; trust S-20."""

from __future__ import annotations

import hashlib

import pytest

from app.downloads.checks import Checksum, begins_right
from app.downloads.types import FileRef

DATA = b"GGUF" + bytes(range(200))
SHA256 = hashlib.sha256(DATA).hexdigest()
GIT = hashlib.sha1(b"blob %d\0" % len(DATA) + DATA).hexdigest()


def checksum(sha256="", etag=""):
    return Checksum(FileRef("https://h", "a/b", "c" * 40, "m.gguf", len(DATA), sha256, etag))


@pytest.mark.parametrize(
    ("sha256", "etag"), [(SHA256, ""), (SHA256.upper(), "x"), ("", SHA256), ("", GIT), ("odd", GIT)]
)
def test_the_hub_s_own_name_for_the_bytes_is_what_they_must_be(sha256, etag):
    made = checksum(sha256, etag)
    assert made.can_check
    for start in range(0, len(DATA), 50):
        made.update(DATA[start : start + 50])
    assert made.is_right()
    made.update(b"x")
    assert not made.is_right()
    made.restart()
    made.update(memoryview(DATA))
    assert made.is_right()
    made.restart()
    made.update(DATA[:-1] + b"\0")
    assert not made.is_right()


@pytest.mark.parametrize("etag", ["", "W/weak", "f" * 32 + "-3"])
def test_where_the_hub_names_nothing_nothing_is_checked(etag):
    made = checksum("", etag)
    assert not made.can_check
    assert made.is_right()


def header(length, first=b"{"):
    return length.to_bytes(8, "little") + first


@pytest.mark.parametrize(
    ("name", "head", "size_bytes", "expected"),
    [
        ("m.gguf", b"GGUF\3\0\0\0\0", 100, True),
        ("M.GGUF", b"GGUF", 4, True),
        ("m.gguf", b"<!DOCTYPE", 100, False),
        ("m.gguf", b"", 0, False),
        ("m.safetensors", header(50), 1000, True),
        ("m.safetensors", header(993), 1000, False),
        ("m.safetensors", header(992), 1000, True),
        ("m.safetensors", header(50, b"["), 1000, False),
        ("m.safetensors", header(2**40), 2**50, False),
        ("m.safetensors", b"GGUF", 4, False),
        ("config.json", b"", 0, True),
        ("gguf", b"x", 1, False),
    ],
)
def test_a_file_begins_as_its_name_says(name, head, size_bytes, expected):
    assert begins_right(name, head, size_bytes) is expected
