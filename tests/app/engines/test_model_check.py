"""No worker sees a model whose header cannot be true, or one that its backend does not take."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.engines.model_check import checked_path, kind_of
from backends import registry
from backends.errors import EngineError, ErrorCode
from backends.registry import BACKENDS, FOLDER, GGUF
from tests.helpers.gguf_files import TinyGguf
from tests.helpers.safetensors_files import LLAMA_CONFIG, write_model


@pytest.fixture(autouse=True)
def with_torch(monkeypatch):
    monkeypatch.setitem(registry.BACKENDS, "torch", replace(BACKENDS["torch"], distribution=""))


def code_of(path, backend: str) -> ErrorCode:
    with pytest.raises(EngineError) as caught:
        checked_path(path, backend)
    return caught.value.code


def test_a_gguf_goes_to_both(tmp_path) -> None:
    path = TinyGguf().write(tmp_path / "tiny.gguf")
    assert checked_path(path, "llama_cpp") == checked_path(path, "torch") == path


def test_a_folder_goes_to_torch_and_a_file_in_it_stands_for_it(tmp_path) -> None:
    folder = write_model(tmp_path / "model")
    assert checked_path(folder, "torch") == folder
    assert checked_path(folder / "model.safetensors", "torch") == folder
    assert code_of(folder, "llama_cpp") is ErrorCode.WRONG_KIND
    assert (kind_of(folder), kind_of(tmp_path / "x.gguf")) == (FOLDER, GGUF)


def test_headers_that_cannot_be_true_are_refused_for_both_kinds(tmp_path) -> None:
    folder = write_model(tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    assert code_of(folder, "torch") is ErrorCode.HEADER_INVALID
    (tmp_path / "no.gguf").write_bytes(b"hello")
    assert code_of(tmp_path / "no.gguf", "torch") is ErrorCode.NOT_A_MODEL
    assert code_of(tmp_path / "gone.gguf", "llama_cpp") is ErrorCode.FILE_MISSING


def test_a_folder_that_asks_for_code_is_refused(tmp_path) -> None:
    folder = write_model(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps({**LLAMA_CONFIG, "auto_map": {"AutoModel": "x.Y"}}))
    assert code_of(folder, "torch") is ErrorCode.RUNS_CODE


def test_a_script_of_ours_is_not_looked_at(tmp_path) -> None:
    assert checked_path(tmp_path / "script.json", "echo") == tmp_path / "script.json"


def test_a_backend_that_is_not_there_is_said_before_the_file_is_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(registry.BACKENDS, "torch", replace(BACKENDS["torch"], distribution="no-such-thing"))
    assert code_of(tmp_path / "gone.gguf", "torch") is ErrorCode.ENGINE_NOT_INSTALLED
