"""A newer commit is news only where it changes the files that are here."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.downloads.types import FileRef
from app.downloads.updates import Update, compare, is_outdated, pinned

OLD, NEW = "1" * 40, "2" * 40


def file(path="m.gguf", revision=OLD, sha256="a" * 64, etag="a" * 64, size_bytes=5):
    return FileRef("https://h", "a/b", revision, path, size_bytes, sha256, etag)


@pytest.mark.parametrize(
    ("head_revision", "head_files", "expected"),
    [
        (OLD, [], Update.CURRENT),
        (NEW, [], Update.UNKNOWN),
        (NEW, [file(revision=NEW)], Update.CURRENT),  # the model card changed, say
        (NEW, [file(revision=NEW, sha256="b" * 64)], Update.CHANGED),
        (NEW, [file(revision=NEW, size_bytes=6)], Update.CHANGED),
        (NEW, [file("other.gguf", NEW)], Update.REMOVED),
        (NEW, [file(revision=NEW, sha256="", etag="b" * 40)], Update.CHANGED),
        (NEW, [file(revision=NEW, sha256="")], Update.CURRENT),
    ],
)
def test_what_the_newest_commit_means_for_a_file(head_revision, head_files, expected):
    assert compare([file()], head_revision, head_files) is expected
    assert is_outdated([file()], head_revision, head_files) is (expected in (Update.CHANGED, Update.UNKNOWN))


def test_one_changed_file_of_several_is_enough():
    files = [file("one"), file("two")]
    assert compare(files, NEW, [file("one", NEW), file("two", NEW, "c" * 64)]) is Update.CHANGED


def test_a_file_whose_bytes_nobody_names_may_have_changed():
    assert compare([file(sha256="", etag="")], NEW, [file(revision=NEW, sha256="", etag="")]) is Update.CHANGED


def test_the_pin_is_in_the_path():
    cache = Path("/cache")
    assert pinned(cache / "models--a--b" / "snapshots" / OLD / "x" / "m.gguf", cache) == ("a/b", OLD)
    assert pinned(cache / "models--gpt2" / "snapshots" / OLD / "m.gguf", cache) == ("gpt2", OLD)
    for path in ("/elsewhere/m.gguf", "/cache/models--a--b/blobs/x", "/cache/m.gguf"):
        assert pinned(Path(path), cache) is None
