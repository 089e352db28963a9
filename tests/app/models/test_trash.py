"""What the system's trash holds can be taken back; by the specification of freedesktop.org on Linux."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from app.models import trash

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the trash of these is the system's own")


@pytest.fixture
def home_trash(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    folder = tmp_path / "share" / "Trash"
    (folder / "files").mkdir(parents=True)
    (folder / "info").mkdir()
    return folder


def throw(folder, path, name, data=b"x", date="2026-11-30T10:00:00"):
    (folder / "files" / name).write_bytes(data)
    note = f"[Trash Info]\nPath={quote(str(path))}\nDeletionDate={date}\n"
    (folder / "info" / f"{name}.trashinfo").write_text(note, encoding="utf-8")


def test_the_last_one_of_that_name_comes_back_and_its_note_goes(home_trash, tmp_path):
    path = tmp_path / "gone folder" / "ä m.gguf"
    throw(home_trash, path, "m.gguf", b"old", "2026-11-29T10:00:00")
    throw(home_trash, path, "m.2.gguf", b"new")
    throw(home_trash, tmp_path / "other.gguf", "other.gguf")
    trash.take_back(path)
    assert path.read_bytes() == b"new"
    assert sorted(path.name for path in (home_trash / "info").iterdir()) == ["m.gguf.trashinfo", "other.gguf.trashinfo"]
    assert trash.can_take_back()


def test_what_is_not_in_the_trash_or_has_a_successor_stays(home_trash, tmp_path):
    path = tmp_path / "m.gguf"
    with pytest.raises(FileNotFoundError):
        trash.take_back(path)
    throw(home_trash, path, "m.gguf")
    path.write_bytes(b"successor")
    with pytest.raises(FileExistsError):
        trash.take_back(path)
    assert path.read_bytes() == b"successor"
    (home_trash / "files" / "m.gguf").unlink()  # emptied
    path.unlink()
    with pytest.raises(FileNotFoundError):
        trash.take_back(path)


def test_a_disk_of_its_own_has_a_trash_of_its_own(home_trash, tmp_path, monkeypatch):
    monkeypatch.setattr(trash, "_mount_point", lambda _path: tmp_path / "disk")
    folder = tmp_path / "disk" / f".Trash-{os.getuid()}"
    (folder / "files").mkdir(parents=True)
    (folder / "info").mkdir()
    throw(folder, Path("deep/m.gguf"), "m.gguf")
    trash.take_back(tmp_path / "disk" / "deep" / "m.gguf")
    assert (tmp_path / "disk" / "deep" / "m.gguf").read_bytes() == b"x"


def test_whether_there_is_a_trash(home_trash, tmp_path, monkeypatch):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"x")
    monkeypatch.setattr(trash.os, "access", lambda *_arguments: True)
    assert trash.has_trash(path) is True
    assert trash.has_trash(tmp_path / "none") is False
    monkeypatch.setattr(trash.os, "access", lambda *_arguments: False)
    assert trash.has_trash(path) is False
