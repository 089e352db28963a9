"""The note beside an unfinished file: written whole, read with suspicion, about the right bytes only."""

from __future__ import annotations

import os

import msgspec
import pytest

from app.downloads.sidecar import Sidecar, draft_path, read_sidecar, sidecar_of, write_sidecar
from app.downloads.types import FileRef

FILE = FileRef("https://hub.example", "a/b", "c" * 40, "m.gguf", 100, "d" * 64, "d" * 64)


def test_a_note_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.json"
    write_sidecar(path, sidecar_of(FILE, '"v1"', 50))
    note = read_sidecar(path)
    assert note == sidecar_of(FILE, '"v1"', 50)
    assert note.is_about(FILE)
    assert note.file("https://hub.example") == FILE


def test_it_holds_no_address(tmp_path):
    path = tmp_path / "x.json"
    write_sidecar(path, sidecar_of(FILE, '"v1"', 50))
    assert b"http" not in path.read_bytes()


def changed(**fields):
    return msgspec.structs.replace(FILE, **fields)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (changed(revision="e" * 40), True),  # the same bytes of another commit
        (changed(path="other.gguf"), True),
        (changed(size_bytes=101), False),
        (changed(sha256="e" * 64), False),
        (changed(sha256="", etag="d" * 64), True),
        (changed(sha256="", etag="e" * 64), False),
    ],
)
def test_bytes_are_known_by_their_hash(file, expected):
    assert sidecar_of(FILE).is_about(file) is expected


def test_bytes_that_nobody_names_are_known_by_their_place():
    nameless = changed(sha256="", etag="")
    assert sidecar_of(nameless).is_about(nameless)
    assert not sidecar_of(nameless).is_about(changed(sha256="", etag="", revision="e" * 40))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"repo": 5}',
        msgspec.json.encode(sidecar_of(FILE, "", 101)),
        msgspec.json.encode(sidecar_of(FILE, "", -1)),
        msgspec.json.encode(sidecar_of(FILE))[:-1],
        b" " * 70_000 + msgspec.json.encode(sidecar_of(FILE)),
        b"[" * 60_000,
    ],
    ids=lambda data: ascii(data[:12]),
)
def test_what_cannot_be_true_is_no_note(tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    assert read_sidecar(path) is None


def test_neither_a_missing_file_nor_a_folder_nor_a_pipe_is_a_note(tmp_path):
    assert read_sidecar(tmp_path / "none") is None
    assert read_sidecar(tmp_path) is None
    os.mkfifo(tmp_path / "pipe")
    assert read_sidecar(tmp_path / "pipe") is None


def test_no_link_is_followed_for_reading_or_writing(tmp_path):
    target, path = tmp_path / "target", tmp_path / "x.json"
    target.write_bytes(msgspec.json.encode(sidecar_of(FILE)))
    path.symlink_to(target)
    assert read_sidecar(path) is None
    before = target.read_bytes()
    write_sidecar(path, sidecar_of(FILE, "", 50))
    assert target.read_bytes() == before
    assert not path.is_symlink()
    assert read_sidecar(path) == sidecar_of(FILE, "", 50)


def test_a_draft_of_a_killed_program_hinders_nothing_and_is_no_way_out(tmp_path):
    path, target = tmp_path / "x.json", tmp_path / "target"
    for left in (draft_path(path).touch, lambda: draft_path(path).symlink_to(target)):
        left()
        write_sidecar(path, sidecar_of(FILE, "", 50))
        assert [one.name for one in tmp_path.iterdir()] == ["x.json"]
    assert read_sidecar(path) == sidecar_of(FILE, "", 50)


def test_what_a_newer_version_adds_is_passed_over(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.asdict(sidecar_of(FILE)) | {"format": 2, "more": [1]}))
    assert read_sidecar(path) == msgspec.structs.replace(sidecar_of(FILE), format=2)
    assert isinstance(read_sidecar(path), Sidecar)
