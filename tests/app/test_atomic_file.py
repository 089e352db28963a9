"""A file is replaced as a whole or stays as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from app import atomic_file
from app.atomic_file import replace_file


def test_a_file_is_made_and_replaced(tmp_path) -> None:
    path = tmp_path / "file.json"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [inside.name for inside in tmp_path.iterdir()] == ["file.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_that_is_not_there_is_not_made(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "missing" / "file", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace", "mkstemp"])
def test_when_a_call_fails_the_old_file_stays_and_nothing_is_left(tmp_path, monkeypatch, call) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")

    def fail(*_arguments: object, **_fields: object) -> None:
        raise OSError(28, "No space left on device")

    owner = {"fsync": os, "replace": Path, "mkstemp": atomic_file.tempfile}[call]
    monkeypatch.setattr(owner, call, fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [inside.name for inside in tmp_path.iterdir()] == ["file"]


def test_a_link_stays_a_link(tmp_path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
