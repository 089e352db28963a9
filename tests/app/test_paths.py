"""The folders are made, found or replaced, and a person is told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from app import paths as module
from app.paths import install_folder, open_paths, resources_folder

FIELDS = ("data", "config", "cache", "logs", "models")


def test_cutaway_home_holds_every_folder_and_they_are_private(tmp_path):
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path / "new" / "home")})
    assert problems == ()
    for field in FIELDS:
        folder = getattr(paths, field)
        inner = "data/models" if field == "models" else field  # where the library looks
        assert folder == tmp_path / "new" / "home" / inner
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert [inside.name for inside in paths.data.iterdir()] == ["models"]


@pytest.mark.parametrize("name", ["ユーザー α", "with space", "n" * 200, "e\u0301", "line\nbreak"])
def test_odd_names_of_the_home_work(tmp_path, name):
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path / name)})
    assert problems == ()
    assert paths.models.is_dir()


def test_a_relative_home_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths, problems = open_paths({"CUTAWAY_HOME": "here"})
    assert problems == ()
    assert paths.data == tmp_path / "here" / "data"


def test_without_cutaway_home_the_systems_places_are_used(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    paths, problems = open_paths({})
    assert problems == ()
    assert all(getattr(paths, field).is_relative_to(tmp_path) for field in FIELDS)
    assert len({getattr(paths, field) for field in FIELDS}) == 5


def test_a_home_that_cannot_be_made_is_replaced_by_temporary_folders_and_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path / "file")})
    assert len(problems) == 5
    assert "Not a directory" in problems[0].message
    assert str(paths.data) in problems[0].hint
    for field in FIELDS:
        folder = getattr(paths, field)
        assert not folder.is_relative_to(tmp_path / "file")
        (folder / "probe").write_text("usable")


def test_a_name_too_long_for_the_system_is_replaced(tmp_path):
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path / ("x" * 300))})
    assert len(problems) == 5
    assert "name too long" in problems[0].message
    assert paths.data.is_dir()


def test_an_unknown_home_is_replaced(monkeypatch):
    monkeypatch.setattr(module, "_asked_folders", lambda _: {name: Path("~/x") / name for name in FIELDS})
    paths, problems = open_paths({})
    assert "no home folder is known" in problems[0].message
    assert paths.config.is_dir()
    assert not Path("~").exists()


def test_a_folder_that_can_only_be_read_is_kept_when_it_holds_something(tmp_path, monkeypatch):
    # Permissions do not bind the superuser, so the refusal itself is played.
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "chats").write_text("precious")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "old").write_text("worthless")
    monkeypatch.setattr(module, "_why_not_writable", lambda _: "Read-only file system")
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path)})
    assert paths.data == tmp_path / "data"
    assert not paths.logs.is_relative_to(tmp_path / "logs")
    assert "can be read but not written: Read-only file system." in problems[0].message


def test_with_no_temporary_place_either_the_words_say_that_nothing_is_saved(tmp_path, monkeypatch):
    def refuse(**_):
        raise FileNotFoundError

    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(module.tempfile, "mkdtemp", refuse)
    paths, problems = open_paths({"CUTAWAY_HOME": str(tmp_path / "file")})
    assert paths.data == tmp_path / "file" / "data"
    assert problems[0].hint == "No temporary folder can be used either, so nothing is saved."


def test_the_install_folder_holds_the_packages():
    assert (install_folder() / "backends" / "protocol.py").is_file()
    assert resources_folder() == install_folder() / "resources"
