"""Deleting a model through the library: what is freed and what stays listed, refusals, and taking it back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.fetched import FetchedRecord, fetched_file
from app.downloads.types import FileRef
from app.models import removal
from app.models.library import LibraryError
from tests.helpers.gguf_files import named_model
from tests.helpers.libraries import Places, keys, without_starter


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Empty places, and no starter model of this machine."""
    without_starter(monkeypatch)
    return Places(tmp_path)


def test_a_deletion_frees_what_it_said_and_leaves_nothing_listed(places: Places) -> None:
    path = named_model("Mine").write(places.models / "mine.gguf")
    library = places.library()
    library.scan()
    preview = library.delete_preview("Mine")
    assert (preview.paths, preview.freed_bytes, preview.refusal) == ((path,), path.stat().st_blocks * 512, "")
    done = library.delete("Mine", forever=True, expected=preview)
    assert (done.paths, done.freed_bytes, done.uses_trash) == (preview.paths, preview.freed_bytes, False)
    assert (path.exists(), library.entries(), places.library().entries()) == (False, [], [])


def test_a_deletion_is_refused_where_the_file_is_not_ours_in_use_or_changed(places: Places) -> None:
    starter = named_model("Starter").write(places.install / "models" / "s.gguf")
    mine = named_model("Mine").write(places.models / "mine.gguf")
    folder = places.root / "home" / ".lmstudio" / "models" / "acme" / "repo"
    folder.mkdir(parents=True)
    studio = named_model("Studio").write(folder / "studio.gguf")
    library = places.library()
    library.import_path(studio)
    assert "belongs to another program or to Cutaway itself" in library.delete_preview("Starter").refusal
    assert "lies in a folder of another program" in library.delete_preview("Studio").refusal
    assert library.delete_preview("Mine", in_use=[mine]).refusal == (
        "Mine is loaded. Use another model first, then delete it."
    )
    with pytest.raises(LibraryError, match="is loaded"):
        library.delete("Mine", forever=True, in_use=[mine])
    preview = library.delete_preview("Mine")
    os.utime(mine, ns=(1, 1))
    with pytest.raises(LibraryError, match="changed since you were asked"):
        library.delete("Mine", forever=True, expected=preview)
    assert all(path.exists() for path in (starter, mine, studio))


def test_what_cutaway_downloaded_is_deleted_where_it_lies_and_comes_back(places: Places, monkeypatch) -> None:
    cache = places.root / "home" / ".cache" / "huggingface" / "hub"
    data = named_model("Mine").to_bytes()
    file = FileRef("https://h", "ann/Mine-GGUF", "1" * 40, "mine.gguf", len(data), "a" * 64, "a" * 64)
    layout = CacheLayout(cache)
    place = layout.place(file)
    layout.prepare(place)
    place.part.write_bytes(data)
    path = layout.publish(place, place.part)
    library = places.library()
    library.import_path(path)
    assert "lies in a folder of another program" in library.delete_preview(str(path)).refusal
    fetched = fetched_file(file, path, has_bytes=True, has_name=True)
    FetchedRecord(places.data).note("ann/Mine-GGUF:F32", "main", fetched)
    entry = library.find(str(path))
    library.set_note(entry.key, "mine")
    kept = places.root / "kept"
    monkeypatch.setattr(removal, "has_trash", lambda _path: True)
    monkeypatch.setattr(removal, "to_trash", lambda gone: gone.rename(kept))
    monkeypatch.setattr(removal, "take_back", lambda _path: kept.rename(path))
    done = library.delete(entry.key)
    assert done.uses_trash
    assert library.entries() == []
    library.undo_delete(entry, done)
    (back,) = library.entries()
    assert (back.path, back.note, back.origin) == (path, "mine", "imported")
    library.scan()
    library.delete(back.key, forever=True)
    assert (library.entries(), list(cache.glob("models--*"))) == ([], [])


def test_a_copy_is_deleted_alone(places: Places) -> None:
    ours = named_model("Same").write(places.models / "ours.gguf")
    other = named_model("Same").write(places.models / "other.gguf")
    library = places.library()
    library.scan()
    _first, copy = library.duplicates()[0]
    library.delete(copy.key, forever=True)
    assert [path.exists() for path in (ours, other)] == [copy.path != ours, copy.path != other]
    assert (keys(library), library.duplicates()) == (["Same:F32"], [])
