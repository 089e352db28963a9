"""Unfinished files that nobody knows are found, go on or are deleted, never while in use; field report 5."""

from __future__ import annotations

from app.downloads.cache_layout import CacheLayout
from app.downloads.file_lock import FileLock
from app.downloads.leftovers import delete_parts, find_leftovers
from app.downloads.sidecar import sidecar_of, write_sidecar
from app.downloads.types import DownloadState, FileRef

FILE = FileRef("https://h", "a/b", "c" * 40, "m.gguf", 100, "1" * 64, "1" * 64)


def leave(layout, file=FILE, have_bytes=30, note=True):
    place = layout.place(file)
    layout.prepare(place)
    place.part.write_bytes(bytes(have_bytes))
    if note:
        write_sidecar(place.sidecar, sidecar_of(file, '"v"', have_bytes))
    return place


def test_an_unfinished_file_is_listed_as_what_it_is(tmp_path):
    layout = CacheLayout(tmp_path)
    place = leave(layout)
    (found,) = find_leftovers(layout, (), "https://mirror.example")
    shown = found.shown(0)
    assert (shown.title, shown.state, shown.action) == ("a/b · m.gguf", DownloadState.PAUSED, "resume")
    assert (shown.done_bytes, shown.total_bytes, shown.is_leftover) == (30, 100, True)
    assert shown.files[0].endpoint == "https://mirror.example"
    assert found.part == place.part
    assert "30" in shown.words.message


def test_one_of_which_nothing_is_known_can_only_be_deleted(tmp_path):
    layout = CacheLayout(tmp_path)
    leave(layout, note=False)
    (found,) = find_leftovers(layout, (), "https://h")
    shown = found.shown(0)
    assert (shown.files, shown.state, shown.action) == ((), DownloadState.FAILED, "")
    assert (shown.done_bytes, shown.total_bytes) == (30, 30)


def test_a_note_about_another_file_is_not_believed(tmp_path):
    layout = CacheLayout(tmp_path)
    place = leave(layout)
    for forged in (FileRef("", "x/y", "c" * 40, "m.gguf", 100, "1" * 64), FileRef("", "../x", "c", "..", 100, "")):
        write_sidecar(place.sidecar, sidecar_of(forged, "", 30))
        (found,) = find_leftovers(layout, (), "https://h")
        assert found.files == ()


def test_what_is_known_or_in_use_is_passed_over(tmp_path):
    layout = CacheLayout(tmp_path)
    place = leave(layout)
    assert find_leftovers(layout, {place.part}, "https://h") == []
    lock = FileLock(place.lock)
    assert lock.take()
    assert find_leftovers(layout, (), "https://h") == []
    lock.release()
    assert len(find_leftovers(layout, (), "https://h")) == 1


def test_deleting_takes_the_file_and_its_note_and_nothing_else(tmp_path):
    layout = CacheLayout(tmp_path)
    other = FileRef("https://h", "a/b", "c" * 40, "other.gguf", 100, "2" * 64, "2" * 64)
    place, kept = leave(layout), leave(layout, other)
    refused = FileRef("https://h", "a/b", "c" * 40, "../x", 1, "3" * 64)
    delete_parts(layout, (FILE, refused), None)
    assert not place.part.exists()
    assert not place.sidecar.exists()
    assert kept.part.exists()
    delete_parts(layout, (), kept.part)
    assert not kept.part.exists()


def test_what_another_program_is_fetching_is_not_deleted(tmp_path):
    layout = CacheLayout(tmp_path)
    place = leave(layout)
    lock = FileLock(place.lock)
    assert lock.take()
    delete_parts(layout, (FILE,), None)
    assert place.part.exists()
    lock.release()


def test_what_cannot_be_deleted_is_logged_and_stays(tmp_path, allow_log):
    allow_log(r"could not be deleted")
    layout = CacheLayout(tmp_path)
    place = layout.place(FILE)
    place.part.mkdir(parents=True)
    delete_parts(layout, (FILE,), None)
    assert place.part.is_dir()
