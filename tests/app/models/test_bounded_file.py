"""The bounded reader: nothing blocks, nothing reads past the end, texts are passed over exactly."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from app.models import bounded_file
from app.models.bounded_file import HeaderError, open_bounded
from backends.errors import ErrorCode
from tests.helpers.gguf_files import text, u32, u64


def refusal(path: Path) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        open_bounded(path, 100)
    return caught.value


def test_numbers_and_bytes_come_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(u32(7) + u64(2**40) + b"rest")
    with open_bounded(path, 100) as file:
        assert (file.u32(), file.u64(), file.position, file.remaining_bytes) == (7, 2**40, 12, 4)
        assert file.take(4) == b"rest"
        assert file.file_bytes == 16


@pytest.mark.parametrize("chunk_bytes", [1, 8, 9, 16, 100, 1_000])
def test_texts_are_passed_over_as_the_obvious_loop_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    # The plain twin is the sum of the pieces; the chunk's size must not matter.
    monkeypatch.setattr(bounded_file, "_CHUNK_BYTES", chunk_bytes)
    draw = random.Random(5)
    words = [bytes(draw.choice((0, 1, 7, 8, 9, 40, 300))) for _ in range(200)]
    body = b"".join(text(word) for word in words)
    path = tmp_path / "a"
    path.write_bytes(b"abc" + body + b"behind")
    with open_bounded(path, 10**6) as file:
        assert file.take(3) == b"abc"
        file.skip_texts(len(words), 300)
        assert file.position == 3 + len(body)
        assert file.take(6) == b"behind"


@pytest.mark.parametrize("position", [0, 100, 199])
def test_a_text_over_the_limit_is_refused_wherever_it_stands(tmp_path: Path, position: int) -> None:
    words = [bytes(10)] * 200
    words[position] = bytes(700_000)
    path = tmp_path / "a"
    path.write_bytes(b"".join(text(word) for word in words))
    with open_bounded(path, 10**6) as file, pytest.raises(HeaderError, match="claims 700,000 bytes; at most 600,000"):
        file.skip_texts(200, 600_000)


def test_nothing_is_read_past_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(text(b"word") + u64(5) + b"four")
    with open_bounded(path, 100) as file:
        with pytest.raises(HeaderError, match="ends in the middle of its header, after 24 bytes"):
            file.skip_texts(2, 100)
        with pytest.raises(HeaderError, match="ends in the middle"):
            file.skip(25)
        with pytest.raises(HeaderError, match="ends in the middle"):
            file.take(25)


def test_a_header_over_its_limit_is_refused_though_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(3 * 2**20))
    with open_bounded(path, 2**20) as file:
        file.skip(2**20)
        with pytest.raises(HeaderError, match="larger than 1 MiB"):
            file.u32()


def test_a_file_that_shrinks_is_refused_and_kills_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(1_000))
    with open_bounded(path, 1_000) as file:
        os.truncate(path, 10)
        with pytest.raises(HeaderError, match="became shorter") as caught:
            file.take(20)
    assert caught.value.code is ErrorCode.FILE_UNREADABLE


def test_a_file_that_cannot_be_read_says_the_systems_reason() -> None:
    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("no /proc here")
    assert "empty" in str(refusal(path))  # a regular file of no size: refused before its EIO could come


def test_fifos_folders_devices_and_empty_files_are_refused_unopened(tmp_path: Path) -> None:
    fifo, empty, link = tmp_path / "fifo.gguf", tmp_path / "empty.gguf", tmp_path / "zero.gguf"
    os.mkfifo(fifo)
    empty.touch()
    link.symlink_to("/dev/zero")
    folder = tmp_path / "folder.gguf"
    folder.mkdir()
    assert {str(refusal(path)) for path in (fifo, link)} == {"This is a device, a pipe or a socket, not a model file."}
    assert str(refusal(empty)) == "The file is empty."
    assert str(refusal(folder)) == "This is a folder, not a model file."
    assert refusal(fifo).code is ErrorCode.NOT_A_MODEL
    assert not refusal(fifo).is_gguf


def test_a_file_exchanged_for_a_fifo_after_the_first_look_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "a.gguf"
    os.mkfifo(fifo)
    honest = tmp_path / "honest"
    honest.write_bytes(b"GGUF")
    first_look = honest.stat()
    monkeypatch.setattr(Path, "stat", lambda _path: first_look)
    assert "a pipe" in str(refusal(fifo))


def test_links_to_regular_files_are_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "a", tmp_path / "link"
    target.write_bytes(b"GGUF")
    link.symlink_to(target)
    with open_bounded(link, 100) as file:
        assert file.take(4) == b"GGUF"


@pytest.mark.parametrize("name", ["missing.gguf", "file/below.gguf"])
def test_a_missing_file_has_its_own_code(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"x")
    error = refusal(tmp_path / name)
    assert (str(error), error.code) == ("There is no such file.", ErrorCode.FILE_MISSING)


def test_a_link_loop_and_a_zero_byte_in_the_path_are_refused_in_words(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (loop, tmp_path / "a\0b"):
        assert str(refusal(path)).startswith("The file could not be opened: ")
        assert refusal(path).code is ErrorCode.FILE_UNREADABLE


def test_a_file_without_permission_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path, _flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "a"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(os, "open", denied)  # the tests may run as root, whom no mode stops
    assert str(refusal(path)) == "The file could not be opened: Permission denied."


@pytest.mark.parametrize("suffix", [".bin", ".pt", ".pth", ".ckpt", ".pkl", ".joblib", ".npy", ".PT"])
def test_pickles_are_refused_before_any_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    def never(_path: Path, _flags: int) -> int:
        raise AssertionError("it was opened")

    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(os, "open", never)
    assert "never opens them" in str(refusal(path))
