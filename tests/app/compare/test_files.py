"""Files of a comparison: whole or not at all, and every failure a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.compare.files import FolderError, read_file, size_of, worded, write_file
from app.compare.run_files import RunFailure

FAILURE = RunFailure(message="It ended.", hint="Go on.")


def test_what_was_written_is_read_back_and_nothing_else_is_left(tmp_path) -> None:
    path = tmp_path / "failure.json"
    assert read_file(path, RunFailure) is None
    write_file(path, FAILURE)
    assert read_file(path, RunFailure) == FAILURE
    assert [found.name for found in tmp_path.iterdir()] == ["failure.json"]


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'{"message": 5}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_or_foreign_file_is_a_sentence(tmp_path, data) -> None:
    path = tmp_path / "failure.json"
    path.write_bytes(data)
    with pytest.raises(FolderError, match="damaged, or of another program") as caught:
        read_file(path, RunFailure)
    assert caught.value.words.hint


def test_a_file_in_the_place_of_a_folder_holds_nothing(tmp_path) -> None:
    (tmp_path / "file").touch()
    assert read_file(tmp_path / "file" / "plan.json", RunFailure) is None
    with pytest.raises(FolderError, match="cannot be used"):
        write_file(tmp_path / "file" / "plan.json", FAILURE)


def test_what_the_system_refuses_is_told_with_its_reason() -> None:
    with pytest.raises(FolderError, match="No space left on device") as caught, worded(Path("x")):
        raise OSError(28, "No space left on device")
    assert "what was measured is kept" in caught.value.words.hint


def test_sizes_are_of_files_and_links_are_not_followed(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"12345")
    (tmp_path / "two").write_bytes(b"123")
    (tmp_path / "around").symlink_to(tmp_path)
    assert size_of(tmp_path / "a") == 5
    assert 8 <= size_of(tmp_path) < 4096
    assert size_of(tmp_path / "gone") == 0
