"""Archives of strangers cannot leave their folder, fill the disk or crash the program."""

from __future__ import annotations

import contextlib
import random
import zipfile
from pathlib import Path

import pytest

from app.compare import window_archive
from app.compare.window_archive import MANIFEST, WindowArchive, WindowExportError, window_entry, write_archive


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    window = tmp_path / "a.cwin"
    window.write_bytes(b"a window" * 100)
    path = tmp_path / "honest.windows"
    write_archive(path, b'{"title": "A model"}', {0: window, 1: window})
    return path


def archive_of(path: Path, entries: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return path


def unpack_all(path: Path) -> None:
    with WindowArchive(path) as archive:
        archive.manifest()
        for number in archive.numbers:
            archive.unpack(number, path.with_name("unpacked"))


def reason_of(path: Path) -> str:
    with pytest.raises(WindowExportError) as failed:
        unpack_all(path)
    assert not path.with_name("unpacked").exists()
    return failed.value.words.message


def test_an_honest_archive_comes_back(honest: Path, tmp_path: Path):
    with WindowArchive(honest) as archive:
        assert archive.numbers == (0, 1)
        assert archive.manifest() == b'{"title": "A model"}'
        archive.unpack(1, tmp_path / "b.cwin")
    assert (tmp_path / "b.cwin").read_bytes() == b"a window" * 100


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "/etc/passwd",
        "windows/../../evil",
        "C:\\evil",
        "windows/window-0001.cwin/",
        "windows/a",
        "w\u202exe",
    ],
)
def test_a_name_that_does_not_belong_there_is_refused(tmp_path: Path, name: str):
    found = reason_of(archive_of(tmp_path / "a.windows", {MANIFEST: b"{}", name: b"x"}))
    assert "does not belong there" in found
    assert "\u202e" not in found


def test_bombs_are_refused_by_what_they_say_and_by_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bomb = archive_of(tmp_path / "a.windows", {MANIFEST: b"{}", window_entry(0): bytes(65 * 2**20)})
    assert bomb.stat().st_size < 2**20
    assert "larger than any export's" in reason_of(bomb)
    many = {MANIFEST: b"{}", **{window_entry(number): b"x" for number in range(1026)}}
    assert "more files" in reason_of(archive_of(tmp_path / "b.windows", many))
    monkeypatch.setattr(window_archive, "MAX_TOTAL_BYTES", 1000)
    small = {MANIFEST: b"{}", window_entry(0): bytes(2000)}
    assert "too much room" in reason_of(archive_of(tmp_path / "c.windows", small))


def test_an_entry_that_is_longer_than_it_says_ends_there(tmp_path: Path):
    """The size in both headers is a lie: what was said is a bound for what is read."""
    path = archive_of(tmp_path / "a.windows", {MANIFEST: b"{}", window_entry(0): b"x" * 5000}, zipfile.ZIP_STORED)
    data = path.read_bytes().replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    path.write_bytes(data)
    assert "damaged" in reason_of(path)


def test_a_file_that_is_there_twice_missing_or_packed_otherwise_is_refused(tmp_path: Path):
    same = archive_of(tmp_path / "a.windows", {MANIFEST: b"{}", window_entry(0): b"x", window_entry(1): b"x"})
    same.write_bytes(same.read_bytes().replace(b"window-0002", b"window-0001"))
    assert "twice" in reason_of(tmp_path / "a.windows")
    assert "missing" in reason_of(archive_of(tmp_path / "b.windows", {window_entry(0): b"x"}))
    assert "missing" in reason_of(archive_of(tmp_path / "c.windows", {MANIFEST: b"{}", window_entry(1): b"x"}))
    packed = archive_of(tmp_path / "d.windows", {MANIFEST: b"{}", window_entry(0): b"x" * 100}, zipfile.ZIP_LZMA)
    assert "packed in a way" in reason_of(packed)


def test_what_is_no_archive_is_said(tmp_path: Path):
    (tmp_path / "text.windows").write_text("no archive", encoding="utf-8")
    assert "damaged" in reason_of(tmp_path / "text.windows")
    assert "reasonable size" in reason_of(tmp_path)
    assert reason_of(tmp_path / "gone.windows").endswith("cannot be used: No such file or directory.")


def test_damaged_archives_never_raise_anything_else(honest: Path, tmp_path: Path):
    whole = honest.read_bytes()
    for seed in range(300):
        draw = random.Random(seed)
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path = tmp_path / "damaged.windows"
        path.write_bytes(bytes(data[: draw.choice((len(data), draw.randrange(len(data))))]))
        with contextlib.suppress(WindowExportError):
            unpack_all(path)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path):
    with pytest.raises(WindowExportError, match="could not be written"):
        write_archive(tmp_path / "a.windows", b"{}", {0: tmp_path / "gone.cwin"})
    assert not list(tmp_path.iterdir())
