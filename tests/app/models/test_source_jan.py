"""Jan's folders: names from folders, entries that lead elsewhere, and YAML of which three keys are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.source_candidate import Candidate
from app.models.source_jan import jan_candidates, parse_list
from app.models.source_search import Search
from tests.helpers.model_folders import jan_model, model_bytes, projector_bytes, write


def _found(folder: Path) -> list[Candidate]:
    return list(jan_candidates(Search(folder, "jan"), folder))


def test_a_model_is_named_by_its_folder_since_every_file_is_called_alike(tmp_path: Path) -> None:
    folder = jan_model(tmp_path, "someone/Qwen3-4B-Q4_K_M", model_bytes())
    write(folder / "mmproj.gguf", projector_bytes())

    [found] = _found(tmp_path)
    assert found.path == folder / "model.gguf"
    assert (found.name, found.fault) == ("Qwen3-4B", "")
    assert found.projector == folder / "mmproj.gguf"


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    folder = jan_model(tmp_path, "gone", None)
    [found] = _found(tmp_path)
    assert found.path == folder / "model.gguf"
    assert found.fault == "Jan's entry for this model names a file that is not there. Get it again in Jan."


def test_an_entry_may_name_a_file_elsewhere_in_the_data_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "shared" / "big.gguf", model_bytes())
    jan_model(tmp_path, "big", None, "shared/big.gguf")
    assert [(found.path, found.name, found.fault) for found in _found(tmp_path)] == [(path, "big", "")]


@pytest.mark.parametrize("is_absolute", [True, False])
def test_an_entry_that_leads_out_of_the_data_folder_is_refused(tmp_path: Path, is_absolute: bool) -> None:
    outside = write(tmp_path / "private.gguf", model_bytes())
    data = tmp_path / "data"
    jan_model(data, "evil", None, str(outside) if is_absolute else "../private.gguf")

    [found] = _found(data)
    assert found.fault.startswith(f"This link leads out of the folder, to {outside}.")


def test_the_folders_of_earlier_versions_are_looked_through(tmp_path: Path) -> None:
    write(tmp_path / "models" / "trinity-v1" / "trinity-v1-Q4_0.gguf", model_bytes())
    write(tmp_path / "models" / "trinity-v1" / "model.json", b"{}")
    assert [found.path.name for found in _found(tmp_path)] == ["trinity-v1-Q4_0.gguf"]


def test_a_data_folder_without_models_holds_nothing(tmp_path: Path) -> None:
    assert _found(tmp_path) == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"model_path: a/b.gguf\n", {"model_path": "a/b.gguf"}),
        (b"model_path: a/b.gguf   # here\r\nname: M\r\n", {"model_path": "a/b.gguf", "name": "M"}),
        (b"model_path: 'it''s/b.gguf'\n", {"model_path": "it's/b.gguf"}),
        (b'model_path: "C:\\\\models\\\\b.gguf"\n', {"model_path": "C:\\models\\b.gguf"}),
        (
            b"model_path: >-\n  a folder/with\n  words.gguf\nname: M\n",
            {"model_path": "a folder/with words.gguf", "name": "M"},
        ),
        (b"files:\n  model_path: inner.gguf\n", {}),
        (b"model_path: [a, b]\nmodel_path: &x y\nmodel_path: !!python/object:os.system x\n", {}),
        (b"model_path: \"torn\nname: 'torn\n", {}),
        (b"model_path: a\nmodel_path: b\n", {"model_path": "a"}),
        (b"model_path:\nname:  \n", {}),
        (b"model_path: a\0b\n", {}),
        (b"\xff\xfe\x00", {}),
        (b"", {}),
    ],
)
def test_the_keys_are_read_and_nothing_else_is(data: bytes, found: dict[str, str]) -> None:
    assert parse_list(data) == found
