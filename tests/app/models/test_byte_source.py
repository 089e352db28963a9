"""Files as sources of bytes: opened without blocking, read at any place, pickles left alone.

The refusals of open_file() are tried through open_bounded() too, in test_bounded_file.py.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from app.models.byte_source import ByteSource, FileSource, HeaderError, is_pickle, open_file
from backends.errors import ErrorCode
from tests.helpers.byte_sources import FakeSource


def test_a_file_is_read_at_any_place_and_ends_with_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    source: ByteSource = open_file(path)
    assert source.size_bytes == 100
    assert source.read(90, 5) == bytes(range(90, 95))
    assert source.read(10, 5) == bytes(range(10, 15))
    assert source.read(98, 50) == bytes((98, 99))
    assert source.read(100, 5) == source.read(1_000, 5) == b""
    source.close()
    source.close()


def test_a_file_behind_4_gib_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, 2**33 + 100)
    source = open_file(path)
    assert (source.size_bytes, source.read(2**33, 200)) == (2**33 + 100, bytes(100))
    source.close()


class FailingDisk(io.FileIO):
    """A file on a disk that fails."""

    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_file_that_cannot_be_read_says_the_systems_reason(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    source = FileSource(FailingDisk(path), 1)
    with pytest.raises(HeaderError) as caught:
        source.read(0, 1)
    assert str(caught.value) == "The file could not be read: Input/output error."
    assert caught.value.code is ErrorCode.FILE_UNREADABLE
    source.close()


def test_what_blocks_or_never_ends_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, words in ((tmp_path / "fifo", "a pipe"), (tmp_path, "a folder"), (Path("/dev/null"), "a device")):
        with pytest.raises(HeaderError, match=words):
            open_file(path)


def test_pickles_are_known_by_their_names() -> None:
    assert [is_pickle(Path(name)) for name in ("a.bin", "b.PT", "c.joblib", "d.npy")] == [True] * 4
    assert [is_pickle(Path(name)) for name in ("a.gguf", "b.safetensors", "bin", "c.json")] == [False] * 4


def test_the_fake_source_gives_holes_and_small_pieces() -> None:
    source: ByteSource = FakeSource(b"abc", size_bytes=10, piece_bytes=4)
    assert (source.read(0, 10), source.read(2, 3), source.read(9, 9), source.read(10, 1)) == (
        b"abc\0",
        b"c\0\0",
        b"\0",
        b"",
    )
