"""Several files and folders at once: the sound ones are added, the others told."""

from __future__ import annotations

import pytest

from app.models.adding import add_paths, is_folder_of_models
from app.models.library import Library
from tests.helpers.gguf_files import named_model


@pytest.fixture
def library(tmp_path):
    made = Library(tmp_path / "data", tmp_path / "install", {})
    yield made
    made.close()


def test_one_bad_file_keeps_no_other_back(library, tmp_path):
    good = named_model("Good").write(tmp_path / "good.gguf")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF")
    folder = tmp_path / "many"
    folder.mkdir()
    added = add_paths(library, [bad, tmp_path / "gone.gguf", good, folder])
    assert [entry.path for entry in added.entries] == [good]
    assert added.folders == [folder]
    assert library.folders() == [folder]
    assert list(added.problems) == [bad, tmp_path / "gone.gguf"]
    assert all(words.message for words in added.problems.values())


def test_a_folder_that_is_called_like_a_file_is_refused_as_one(library, tmp_path):
    (tmp_path / "folder.gguf").mkdir()
    added = add_paths(library, [tmp_path / "folder.gguf"])
    assert (added.entries, added.folders) == ([], [])
    assert "folder.gguf" in added.problems[tmp_path / "folder.gguf"].message


def test_a_folder_with_a_config_is_one_model(tmp_path):
    assert is_folder_of_models(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert not is_folder_of_models(tmp_path)
    assert not is_folder_of_models(tmp_path / "config.json")
