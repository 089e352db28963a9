"""The list of imported models of earlier versions: taken over once, and never lost when it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.models import library_list
from app.models.library import LibraryError
from tests.helpers.gguf_files import named_model
from tests.helpers.libraries import Places, keys, without_starter


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    without_starter(monkeypatch)
    return Places(tmp_path)


def write_list(places: Places, *paths: Path | str) -> None:
    places.list_path.write_text(json.dumps({"version": 1, "imported": [str(path) for path in paths]}))


def names(places: Places) -> list[str]:
    return sorted(file.name for file in places.data.iterdir() if file.suffix == ".json")


def test_a_list_is_taken_over_once_in_its_order(places):
    paths = [named_model(name).write(places.elsewhere / f"{name}.gguf") for name in ("Two", "One")]
    write_list(places, *paths, places.elsewhere / "gone.gguf", "/caf\udce9.gguf")
    library = places.library()
    assert [(found.key, found.origin, bool(found.fault)) for found in library.entries()] == [
        ("Two:F32", "imported", False),
        ("One:F32", "imported", False),
        ("gone", "imported", True),
        (library.entries()[3].key, "imported", True),
    ]
    assert library.entries()[3].path == Path("/caf\udce9.gguf")
    assert library.notices() == []
    assert names(places) == ["library.taken-over.json"]
    library.remove("Two:F32")
    assert "Two:F32" not in keys(places.library())


def test_an_import_into_a_library_with_an_old_list_keeps_both(places):
    write_list(places, named_model("Old").write(places.elsewhere / "old.gguf"))
    places.library().import_path(named_model("New").write(places.elsewhere / "new.gguf"))
    assert keys(places.library()) == ["Old:F32", "New:F32"]


def test_what_was_kept_already_is_not_taken_over_again(places):
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    library.import_path(path)
    library.set_note("Mine", "kept")
    write_list(places, path)  # the rename did not come to pass
    again = places.library()
    assert [(found.key, found.note) for found in again.entries()] == [("Mine:F32", "kept")]


def test_of_a_long_list_the_rest_is_looked_at_later(places, monkeypatch):
    monkeypatch.setattr("app.models.library_core._FIRST_LOOKS", 1)
    write_list(places, *(named_model(f"M{n}").write(places.elsewhere / f"m{n}.gguf") for n in range(3)))
    library = places.library()
    assert keys(library) == ["M0:F32", "m1", "m2"]
    library.refresh()
    assert keys(library) == ["M0:F32", "M1:F32", "M2:F32"]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff\xfe garbage",
        b'{"version": 1, "imported": ["/a.gg',
        b"[]",
        b'{"version": 2, "imported": []}',
        b'{"version": 1}',
        b'{"version": 1, "imported": "x"}',
        b'{"version": 1, "imported": [1]}',
        b'{"version": 1, "imported": [""]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_list_is_moved_aside_and_said(places, damaged):
    places.list_path.write_bytes(damaged)
    library = places.library()
    assert library.entries() == []
    (aside,) = places.data.glob("library.damaged-*.json")
    assert aside.read_bytes() == damaged
    assert library.notices() == [
        "The list of imported models could not be understood. "
        f"It was moved to {aside} and a new one begins; no model file was touched."
    ]
    library.import_path(named_model("Mine").write(places.elsewhere / "mine.gguf"))
    assert keys(places.library()) == ["Mine:F32"]


def test_odd_paths_in_the_list_are_faults_and_nothing_worse(places):
    odd = ["/a\0b.gguf", "/" + "x" * 5_000 + ".gguf", "relative.gguf", "/dev/zero", "\ud800.gguf"]
    write_list(places, *odd)
    assert [bool(found.fault) for found in places.library().entries()] == [True] * 4


def test_a_list_that_cannot_be_read_is_left_alone(places):
    places.list_path.mkdir()  # stands for any file the system refuses to give
    library = places.library()
    assert library.entries() == []
    assert library.notices() == ["The list of imported models could not be read (Is a directory). It was left alone."]
    library.import_path(named_model("Mine").write(places.elsewhere / "mine.gguf"))
    assert places.list_path.is_dir()


def test_a_damaged_list_that_cannot_be_moved_is_left_and_said(places, monkeypatch):
    def denied(_source, _target):
        raise PermissionError(13, "Permission denied")

    places.list_path.write_bytes(b"garbage")
    monkeypatch.setattr(Path, "replace", denied)
    assert places.library().notices() == [
        "The list of imported models is damaged and could not be moved aside (Permission denied)."
    ]
    assert places.list_path.read_bytes() == b"garbage"


def test_a_list_that_could_not_be_kept_is_tried_again(tmp_path):
    path = tmp_path / "library.json"
    path.write_text('{"version": 1, "imported": ["/a.gguf"]}')

    def refuse(_paths):
        raise LibraryError("The disk is full.")

    with pytest.raises(LibraryError):
        library_list.take_over(path, refuse, lambda _words: None)
    kept, said = [], []
    library_list.take_over(path, kept.extend, said.append)
    library_list.take_over(path, kept.extend, said.append)
    assert (kept, said) == ([Path("/a.gguf")], [])


def test_a_list_that_cannot_be_renamed_is_said(tmp_path, monkeypatch):
    path = tmp_path / "library.json"
    path.write_text('{"version": 1, "imported": []}')

    def denied(_source, _target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", denied)
    said = []
    library_list.take_over(path, lambda _paths: None, said.append)
    assert said == [
        f"The old list of imported models was taken over, but {path} could not be renamed (Permission denied)."
    ]
