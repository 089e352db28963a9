"""Deleting what Cutaway downloaded into the cache that it shares: ours goes, what others need or left stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.fetched import FetchedRecord, fetched_file
from app.downloads.file_lock import FileLock
from app.downloads.types import FileRef
from app.models import removal
from app.models.entry import ModelEntry
from app.models.library_words import LibraryError
from app.models.removal import Ownership
from app.models.removal_fetched import FetchedPlaces
from tests.helpers.downloads import tree_of

OLD, NEW, REPO = "1" * 40, "2" * 40, "ann/x-GGUF"
SIZE = 10_000


class Cache:
    """A hub cache, and the note of what of it is ours."""

    def __init__(self, folder):
        self.root = folder / "hub"
        self.layout = CacheLayout(self.root)
        self.record = FetchedRecord(folder / "data")
        self.ownership = Ownership(folder / "models", [self.root], (), FetchedPlaces(self.record, self.root))

    def put(self, path="m-Q4_K_M.gguf", revision=OLD, letter="a", *, is_ours=True, has_bytes=True, title="x:Q4"):
        """Bring a file into the cache as a download does; returns its place in the snapshot."""
        file = FileRef("https://h", REPO, revision, path, SIZE, letter * 64, letter * 64)
        place = self.layout.place(file)
        self.layout.prepare(place)
        if not place.blob.exists():
            place.part.write_bytes(letter.encode() * SIZE)
            self.layout.publish(place, place.part)
        else:
            self.layout.publish(place, place.blob)
        self.layout.set_branch(file, "main")
        if is_ours:
            self.record.note(title, "main", fetched_file(file, place.snapshot, has_bytes=has_bytes, has_name=True))
        return place.snapshot

    def preview(self, *paths, in_use=(), **fields):
        entry = ModelEntry("m:Q4", "m", fields.pop("path", paths[0]), parts=paths, **{"origin": "imported"} | fields)
        ownership = Ownership(self.ownership.own_folder, self.ownership.foreign_folders, in_use, self.ownership.fetched)
        return removal.preview(entry, ownership)

    def blobs(self):
        return sorted(path.name[0] for path in (self.layout.root / "models--ann--x-GGUF" / "blobs").iterdir())


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


@pytest.mark.parametrize("origin", ["imported", "huggingface"])
def test_what_we_fetched_goes_for_good_and_leaves_nothing_behind(cache, origin):
    path = cache.put()
    preview = cache.preview(path, origin=origin)
    assert (preview.refusal, preview.paths, preview.kept) == ("", (path,), "")
    assert SIZE <= preview.freed_bytes <= 3 * 4096
    assert path.exists()
    done = removal.delete(preview, forever=True)
    assert done.freed_bytes == preview.freed_bytes
    assert {name for name, kind in tree_of(cache.root).items() if kind.startswith("file") and ".locks" not in name} == (
        set()
    )
    assert not (cache.root / "models--ann--x-GGUF").exists()
    assert cache.record.models() == []


def test_the_trash_gets_the_model_under_its_own_name_and_can_give_it_back(cache):
    path = cache.put()
    trashed = []

    def throw(thrown):
        trashed.append((thrown.name, thrown.is_symlink(), thrown.stat().st_size))
        thrown.unlink()

    preview = cache.preview(path)
    if not preview.uses_trash:
        pytest.skip("this system has no trash")
    assert removal.delete(preview, forever=False, trash=throw).uses_trash
    assert trashed == [("m-Q4_K_M.gguf", False, SIZE)]
    assert cache.blobs() == []
    assert path.parent.is_dir()
    assert [one.title for one in cache.record.models()] == ["x:Q4"]


def test_what_came_back_from_the_trash_is_still_ours(cache, monkeypatch):
    kept = {}
    path = cache.put()
    preview = cache.preview(path)

    def throw(thrown):
        kept[thrown] = thrown.with_name("kept")
        thrown.rename(kept[thrown])

    monkeypatch.setattr(removal, "take_back", lambda asked: kept[asked].rename(asked))
    removal.delete(preview, forever=False, trash=throw)
    removal.undo(preview)
    assert path.stat().st_size == SIZE
    assert cache.preview(path).refusal == ""
    removal.delete(cache.preview(path), forever=True)
    assert not path.exists()


def test_the_name_of_bytes_that_stayed_comes_back_with_the_rest(cache, monkeypatch):
    old, projector = cache.put(), cache.put("mmproj-F16.gguf", letter="b")
    cache.put("mmproj-F16.gguf", revision=NEW, letter="b")
    away = {}

    def throw(thrown):
        away[thrown] = thrown.with_name("away")
        thrown.rename(away[thrown])

    monkeypatch.setattr(removal, "take_back", lambda asked: away[asked].rename(asked))
    preview = cache.preview(old, projector_path=projector)
    removal.delete(preview, forever=False, trash=throw)
    assert not projector.is_symlink()
    removal.undo(preview)
    assert (old.read_bytes()[:1], projector.read_bytes()[:1]) == (b"a", b"b")


def test_what_is_not_in_the_trash_any_more_is_said(cache, monkeypatch):
    preview = cache.preview(cache.put())
    removal.delete(preview, forever=True)

    def gone(path):
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(removal, "take_back", gone)
    with pytest.raises(LibraryError, match="could not be taken back from the trash: No such file"):
        removal.undo(preview)


def test_bytes_that_another_version_uses_stay(cache):
    old = cache.put()
    new = cache.put(revision=NEW)
    preview = cache.preview(old)
    assert (preview.freed_bytes, preview.uses_trash) == (0, False)
    assert "another version in the cache of Hugging Face uses them" in preview.kept
    words = removal.deletion_words("m", removal.delete(preview, forever=False))
    assert words == "m is deleted; nothing came free. " + preview.kept
    assert not old.exists()
    assert new.read_bytes() == b"a" * SIZE
    assert removal.delete(cache.preview(new), forever=True).freed_bytes >= SIZE


def test_bytes_that_were_there_before_us_stay(cache):
    path = cache.put(has_bytes=False)
    preview = cache.preview(path)
    assert preview.freed_bytes == 0
    assert "before Cutaway needed them" in preview.kept
    removal.delete(preview, forever=True)
    assert not path.is_symlink()
    assert cache.blobs() == ["a"]


def test_what_others_put_there_is_refused(cache):
    path = cache.put(is_ours=False)
    preview = cache.preview(path)
    assert "lies in a folder of another program" in preview.refusal
    assert "belongs to another program" in cache.preview(path, origin="huggingface").refusal
    with pytest.raises(LibraryError):
        removal.delete(preview, forever=True)
    assert path.exists()


def test_other_bytes_in_place_of_ours_are_refused(cache):
    path = cache.put()
    blob = Path(os.path.realpath(path))
    os.utime(blob, ns=(1, 1))
    assert cache.preview(path).refusal
    blob.unlink()
    path.unlink()
    elsewhere = cache.root / "elsewhere.gguf"
    elsewhere.write_bytes(b"a" * SIZE)
    path.symlink_to(elsewhere)
    changed_ns = cache.record.models()[0].files[0].changed_ns
    os.utime(elsewhere, ns=(changed_ns, changed_ns))
    assert cache.preview(path).refusal
    assert elsewhere.exists()


def test_one_part_of_another_makes_the_whole_theirs(cache):
    parts = (cache.put("m-00001-of-00002.gguf"), cache.put("m-00002-of-00002.gguf", letter="b", is_ours=False))
    assert cache.preview(*parts).refusal


def test_a_projector_goes_with_the_last_model_that_needs_it(cache):
    one = cache.put()
    projector = cache.put("mmproj-F16.gguf", letter="b")
    other = cache.put("m-Q8_0.gguf", letter="c", title="x:Q8")
    assert cache.preview(one, projector_path=projector).paths == (one,)
    removal.delete(cache.preview(other, projector_path=projector), forever=True)
    assert set(cache.preview(one, projector_path=projector).paths) == {one, projector}


def test_a_folder_of_safetensors_goes_with_all_that_came_with_it(cache):
    names = ("config.json", "tokenizer.json", "model.safetensors", "special.json")
    paths = [cache.put(name, letter=letter) for name, letter in zip(names, "abcd", strict=True)]
    gguf = cache.put("m.gguf", letter="e")
    preview = cache.preview(*paths[:3], path=paths[0].parent, format="safetensors")
    assert set(preview.paths) == set(paths)
    removal.delete(preview, forever=True)
    assert gguf.exists()
    assert [path.exists() for path in paths] == [False] * 4


def test_what_is_loaded_or_being_fetched_stays(cache):
    path = cache.put()
    assert cache.preview(path, in_use=[path]).refusal == "m is loaded. Use another model first, then delete it."
    assert "is loaded" in cache.preview(path, in_use=[path], origin="huggingface").refusal
    preview = cache.preview(path)
    lock = FileLock(preview.cached[0].lock)
    assert lock.take()
    try:
        with pytest.raises(LibraryError, match="being downloaded just now"):
            removal.delete(preview, forever=True)
    finally:
        lock.release()
    assert path.exists()


def test_what_changed_since_the_question_stays(cache):
    path = cache.put()
    preview = cache.preview(path)
    os.utime(os.path.realpath(path), ns=(5, 5))
    with pytest.raises(LibraryError, match="changed since you were asked"):
        removal.delete(preview, forever=True)
    assert path.exists()


def test_the_branch_goes_with_its_commit_and_no_other(cache):
    old, new = cache.put(), cache.put(revision=NEW, letter="b")
    refs = cache.root / "models--ann--x-GGUF" / "refs" / "main"
    assert refs.read_text() == NEW
    removal.delete(cache.preview(old), forever=True)
    assert refs.read_text() == NEW
    (new.parent / "kept-by-another-program.json").write_text("{}")
    removal.delete(cache.preview(new), forever=True)
    assert refs.read_text() == NEW


def test_a_cache_reached_through_a_link_is_the_same_cache(cache, tmp_path):
    path = cache.put()
    (tmp_path / "way").symlink_to(cache.root)
    through = tmp_path / "way" / path.relative_to(cache.layout.root)
    preview = cache.preview(through)
    assert preview.paths == (path,)
    removal.delete(preview, forever=True)
    assert not path.exists()


def test_without_links_the_file_lies_in_the_snapshot_and_goes(cache, monkeypatch):
    def refuse(_self, _target):
        raise OSError(1, "not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    path = cache.put()
    assert not path.is_symlink()
    preview = cache.preview(path)
    assert preview.freed_bytes >= SIZE
    removal.delete(preview, forever=True)
    assert not path.exists()
