"""What we fetched stays ours: over commits, over programs, and only as long as the bytes are those that we left."""

from __future__ import annotations

import threading

import pytest

from app.downloads.fetched import FetchedFile, FetchedRecord, fetched_file
from app.downloads.types import FileRef

OLD, NEW = "1" * 40, "2" * 40


def ref(path="m.gguf", revision=OLD, etag="a" * 64, repo="ann/x"):
    return FileRef("https://h", repo, revision, path, 5, etag, etag)


def found(file=None, changed_ns=7, **claims):
    return FetchedFile(file=file or ref(), changed_ns=changed_ns, **{"has_bytes": True, "has_name": True} | claims)


@pytest.fixture
def record(tmp_path):
    return FetchedRecord(tmp_path / "data", now=lambda: 1000.0)


def test_nothing_was_fetched_before_anything_was(record):
    assert record.models() == []


def test_files_of_one_download_are_one_model_and_a_commit_more_is_another(record):
    record.note("x:Q4", "main", found())
    record.note("x:Q4", "main", found(ref("mmproj.gguf", etag="b" * 64)))
    record.note("x:Q4", "main", found(ref(revision=NEW, etag="c" * 64)))
    told = [(one.title, one.branch, one.fetched_at, [file.path for file in one.refs]) for one in record.models()]
    assert told == [("x:Q4", "main", 1000.0, ["m.gguf", "mmproj.gguf"]), ("x:Q4", "main", 1000.0, ["m.gguf"])]


def test_what_was_ours_stays_ours_when_it_is_found_again(record):
    record.note("x:Q4", "main", found())
    record.note("x:Q4", "main", found(has_bytes=False, has_name=False))
    assert record.models()[0].files == (found(),)
    record.note("x:Q4", "main", found(ref(revision=NEW), has_bytes=False, has_name=True))
    assert [one.files[0].has_bytes for one in record.models()] == [True, True]


def test_other_bytes_of_that_name_are_not_ours(record):
    record.note("x:Q4", "main", found())
    record.note("x:Q4", "main", found(changed_ns=8, has_bytes=False, has_name=False))
    (file,) = record.models()[0].files
    assert (file.has_bytes, file.has_name) == (False, False)


def test_what_was_deleted_is_forgotten(record):
    record.note("x:Q4", "main", found())
    record.note("x:Q4", "main", found(ref("mmproj.gguf", etag="b" * 64)))
    record.drop([ref()])
    assert [one.refs for one in record.models()] == [(ref("mmproj.gguf", etag="b" * 64),)]
    record.drop([ref("mmproj.gguf")])
    assert record.models() == []


def test_several_that_write_at_once_lose_nothing(tmp_path):
    def note(number):
        FetchedRecord(tmp_path).note(f"x:{number}", "main", found(ref(f"{number}.gguf", etag=f"{number}" * 40)))

    threads = [threading.Thread(target=note, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.title for one in FetchedRecord(tmp_path).models()) == [f"x:{number}" for number in range(8)]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"models": 3}', b'{"models": [{"title": 1}]}', b"\xff\xfe"])
def test_a_damaged_record_claims_nothing(tmp_path, data, allow_log):
    allow_log(r"cannot be told")
    (tmp_path / "fetched.json").write_bytes(data)
    record = FetchedRecord(tmp_path)
    assert record.models() == []
    record.note("x:Q4", "main", found())
    assert [one.title for one in record.models()] == ["x:Q4"]


def test_a_file_is_known_by_when_its_bytes_were_written(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    noted = fetched_file(ref(), tmp_path / "link", has_bytes=True, has_name=False)
    assert noted == found(changed_ns=path.stat().st_mtime_ns, has_name=False)
    with pytest.raises(FileNotFoundError):
        fetched_file(ref(), tmp_path / "gone", has_bytes=True, has_name=True)
