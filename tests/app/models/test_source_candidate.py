"""Candidates: stamps that change when they must, and small files read or left alone."""

from __future__ import annotations

import os
from pathlib import Path

from app.models.source_candidate import Candidate, read_small, size_of, stamp_of


def test_a_stamp_changes_with_the_size_and_the_time_of_any_part(tmp_path: Path) -> None:
    parts = [tmp_path / "a.gguf", tmp_path / "b.gguf"]
    for part in parts:
        part.write_bytes(b"1234")
        os.utime(part, ns=(10**9, 10**9))
    first = stamp_of(parts)

    assert stamp_of(parts) == first
    parts[1].write_bytes(b"12345")
    os.utime(parts[1], ns=(10**9, 10**9))
    larger = stamp_of(parts)
    parts[1].write_bytes(b"1234")
    os.utime(parts[1], ns=(10**9, 10**9 + 1))
    later = stamp_of(parts)

    assert len({first, larger, later}) == 3
    assert stamp_of(reversed(parts)) != later  # the order of the parts is part of what they are


def test_a_stamp_changes_with_the_projector(tmp_path: Path) -> None:
    model, projector = tmp_path / "a.gguf", tmp_path / "mmproj.gguf"
    model.write_bytes(b"model")
    projector.write_bytes(b"eyes")

    with_projector = stamp_of([model], projector)
    assert with_projector != stamp_of([model])
    assert stamp_of([str(model)], str(projector)) == with_projector
    assert stamp_of([model], "") == stamp_of([model])


def test_a_part_that_is_away_leaves_no_stamp(tmp_path: Path) -> None:
    assert stamp_of([tmp_path / "gone.gguf"]) == ""
    assert stamp_of([tmp_path / "a\0b.gguf"]) == ""


def test_a_fault_that_may_pass_leaves_no_stamp_and_a_lasting_one_does(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(b"x")
    passing = Candidate(path, "added", (path,), fault="away")
    lasting = Candidate(path, "added", (path,), fault="pickles", is_fault_lasting=True)
    sound = Candidate(path, "added", (path,))

    assert passing.stamp() == ""
    assert lasting.stamp() == sound.stamp() == stamp_of([path])


def test_the_size_is_that_of_the_files_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(bytes(1_000))
    assert size_of([path, tmp_path / "gone.gguf", tmp_path / "a\0b"]) == 1_000


def test_a_small_file_is_read_and_anything_else_is_not(tmp_path: Path) -> None:
    path, folder = tmp_path / "settings.json", tmp_path / "folder"
    path.write_bytes(b"{}")
    folder.mkdir()
    os.mkfifo(tmp_path / "fifo")

    assert read_small(path, 2) == b"{}"
    assert read_small(path, 1) == b""
    assert read_small(folder, 10) == b""
    assert read_small(tmp_path / "fifo", 10) == b""
    assert read_small(tmp_path / "gone", 10) == b""
