"""Finding a model by what a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.library_find import find
from app.models.library_view import EMPTY, Listed, build_view
from app.models.library_words import LibraryError
from tests.helpers.libraries import found_model


def view_of(*names, owner="acme"):
    found = [
        found_model(number, name=name.partition(":")[0], quantization=name.partition(":")[2], owner=owner)
        for number, name in enumerate(names, 1)
    ]
    return build_view(Listed(model, "folder", model.identity) for model in found)


VIEW = build_view(
    Listed(model, "folder", model.identity)
    for model in (
        found_model(1, name="Alpha-1B", quantization="F32"),
        found_model(2, name="Alpha-1B", quantization="Q8_0"),
        found_model(3, name="Beta", quantization="F32", owner=""),
        found_model(3, name="Beta", quantization="F32", owner="", path="/copy.gguf"),
    )
)


def nothing_there(path):
    raise AssertionError(f"{path} was looked at")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("acme/Alpha-1B:F32", "acme/Alpha-1B:F32"),
        ("ACME/alpha-1b:q8_0", "acme/Alpha-1B:Q8_0"),
        ("Alpha-1B:Q8_0", "acme/Alpha-1B:Q8_0"),
        ("alpha-1b:q", "acme/Alpha-1B:Q8_0"),
        ("beta", "Beta:F32"),
        (" Be ", "Beta:F32"),
        ("beta:f32#2", "Beta:F32#2"),
        ("/copy.gguf", "Beta:F32#2"),
        ("/models/model-1.gguf", "acme/Alpha-1B:F32"),
    ],
)
def test_models_are_found_by_key_name_unique_beginning_and_path(text, key):
    assert find(text, VIEW, nothing_there).key == key


def test_an_ambiguous_name_lists_what_fits():
    with pytest.raises(LibraryError, match="fits “alpha”: acme/Alpha-1B:F32, acme/Alpha-1B:Q8_0"):
        find("alpha", VIEW, nothing_there)


@pytest.mark.parametrize("text", ["gamma", "acme/gamma", "", "  ", "a\0b", "x" * 10_000])
def test_an_unknown_name_lists_what_is_there(text):
    with pytest.raises(LibraryError, match=r"There are: acme/Alpha-1B:F32, acme/Alpha-1B:Q8_0, Beta:F32\."):
        find(text, VIEW, nothing_there)


def test_a_long_list_is_cut():
    view = view_of(*(f"M{number}:F32" for number in range(30)))
    with pytest.raises(LibraryError) as caught:
        find("nope", view, nothing_there)
    assert str(caught.value).endswith("acme/M18:F32, acme/M19:F32, ….")


def test_an_exact_name_wins_over_a_longer_one():
    assert find("phi", view_of("Phi:F32", "Phi-mini:F32"), nothing_there).name == "Phi"


def test_a_path_that_is_not_listed_is_looked_at(tmp_path):
    path = tmp_path / "loose.gguf"
    path.touch()
    assert find(str(path), VIEW, lambda seen: seen) == path
    for missing in (str(tmp_path / "none.gguf"), "none.gguf", "~/none", "./none"):
        with pytest.raises(LibraryError, match="There is no file"):
            find(missing, VIEW, nothing_there)


def test_a_name_wins_over_a_file_of_the_same_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("beta").touch()
    assert find("beta", VIEW, nothing_there).key == "Beta:F32"


def test_an_empty_library_says_what_to_do():
    with pytest.raises(LibraryError, match="Give the path of a GGUF file"):
        find("anything", EMPTY, nothing_there)
