"""The list of downloads survives restarts, damage and newer versions; trust S-46, field reports 1 and 5."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.downloads.queue_file import QueueFile, StoredDownload
from app.downloads.types import DownloadState, FileRef
from app.errors import Words

FILE = FileRef("https://hub.example", "a/b", "c" * 40, "m.gguf", 100, "d" * 64, "d" * 64)
ONE = StoredDownload(download_id="1", title="one", files=(FILE,))
TWO = StoredDownload(
    download_id="2", title="two", files=(), state=DownloadState.FAILED, words=Words("Why.", "What."), action="retry"
)


def test_a_list_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "data" / "downloads.json"
    QueueFile(path).write([ONE, TWO])
    again = QueueFile(path)
    assert again.read() == [ONE, TWO]
    assert again.notices == []


def test_where_there_is_no_list_there_is_nothing(tmp_path):
    file = QueueFile(tmp_path / "downloads.json")
    assert file.read() == []
    assert (file.notices, list(tmp_path.iterdir())) == ([], [])


def test_the_disk_is_left_alone_while_nothing_changes(tmp_path):
    path = tmp_path / "downloads.json"
    file = QueueFile(path)
    file.write([ONE])
    path.unlink()
    file.write([ONE])
    assert not path.exists()
    file.write([TWO])
    assert path.exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"downloads": 5}', b"[" * 100_000, b"\0" * 10])
def test_a_damaged_list_is_put_aside_and_said(tmp_path, data):
    path = tmp_path / "downloads.json"
    path.write_bytes(data)
    file = QueueFile(path)
    assert file.read() == []
    (aside,) = tmp_path.iterdir()
    assert aside.read_bytes() == data
    assert aside.name.startswith("downloads.damaged-")
    assert aside.name in file.notices[0].message
    file.write([ONE])
    assert QueueFile(path).read() == [ONE]


def test_what_this_version_does_not_understand_is_kept(tmp_path):
    path = tmp_path / "downloads.json"
    newer = {"download_id": "9", "title": "new", "files": [], "state": "teleporting"}
    more = {**msgspec.to_builtins(ONE), "speed_limit": 5}
    path.write_text(json.dumps({"format": 2, "downloads": [newer, more], "order": []}))
    file = QueueFile(path)
    assert file.read() == [ONE]
    file.write([ONE, TWO])
    kept = json.loads(path.read_text())["downloads"]
    assert [one["download_id"] for one in kept] == ["9", "1", "2"]
    assert kept[0] == newer


def test_a_list_that_cannot_be_read_now_is_no_damage(tmp_path):
    (tmp_path / "downloads.json").mkdir()
    assert QueueFile(tmp_path / "downloads.json").read() == []
    assert (tmp_path / "downloads.json").is_dir()
