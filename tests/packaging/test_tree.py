"""A staged tree is the same to the byte wherever and whenever it is made."""

from __future__ import annotations

import os
from pathlib import Path

import bootstrap
import pytest
import tree


def make(root: Path, names: list[str], mask: int) -> str:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        path.chmod(0o777 & ~mask)
    (root / "lib" / "link").symlink_to("a.so")
    tree.normalise(root, 1_700_000_000)
    return tree.digest(root)


NAMES = ["bin/program", "lib/a.so", "lib/b/c.txt", "runtime/bin/python3"]


def test_the_same_files_give_the_same_tree_whatever_their_order_time_and_mode(tmp_path):
    first = make(tmp_path / "one", NAMES, 0o000)
    os.utime(tmp_path / "one" / "lib")
    assert make(tmp_path / "two", NAMES[::-1], 0o077) == first


def test_only_programs_may_be_run(tmp_path):
    make(tmp_path, NAMES, 0)
    modes = {name: oct((tmp_path / name).stat().st_mode & 0o777) for name in NAMES}
    assert modes == {
        "bin/program": "0o755",
        "lib/a.so": "0o644",
        "lib/b/c.txt": "0o644",
        "runtime/bin/python3": "0o755",
    }
    assert {int(path.lstat().st_mtime) for path in tmp_path.rglob("*")} == {1_700_000_000}


@pytest.mark.parametrize("change", ["content", "mode", "time", "name", "link"])
def test_every_difference_shows_in_the_digest(change, tmp_path):
    before = make(tmp_path, NAMES, 0)
    path = tmp_path / "lib" / "a.so"
    match change:
        case "content":
            path.write_bytes(b"lib/b.so")
            os.utime(path, (1_700_000_000, 1_700_000_000))
        case "mode":
            path.chmod(0o600)
        case "time":
            os.utime(path, (1, 1))
        case "name":
            path.rename(tmp_path / "lib" / "b.so")
        case "link":
            (tmp_path / "lib" / "link").unlink()
    assert tree.digest(tmp_path) != before


def test_the_time_is_the_one_asked_for_else_the_last_commit_s(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "12345")
    assert tree.source_time_s() == 12345
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(bootstrap.SetupError, match="Set SOURCE_DATE_EPOCH"):
        tree.source_time_s()
