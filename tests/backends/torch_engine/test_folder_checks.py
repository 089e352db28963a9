"""A folder before it is loaded: its files, its links, its pickles, its parts."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_checks import check_folder, check_inside
from tests.helpers.safetensors_files import SHAPES, write_index, write_model, write_shards

TOKENIZER = b'{"model": {}}'


@pytest.fixture
def folder(tmp_path) -> Path:
    """An honest folder as far as these checks look."""
    made = write_model(tmp_path / "model")
    (made / "tokenizer.json").write_bytes(TOKENIZER)
    return made


def code_of(path: Path) -> ErrorCode:
    with pytest.raises(EngineError) as caught:
        check_folder(path)
    return caught.value.code


def test_an_honest_folder_is_told_file_by_file(folder) -> None:
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 3]}', encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ x }}"}', encoding="utf-8")
    checked = check_folder(folder)
    assert checked.path == folder
    assert set(checked.tensors) == set(SHAPES)
    assert checked.elements == 256 * 64 + 64 * 64 + 64
    assert checked.weight_bytes == 2 * (256 * 64 + 64 * 64) + 256
    assert checked.tokenizer == TOKENIZER
    assert checked.chat_template == "{{ x }}"
    assert checked.generation == {"eos_token_id": [2, 3]}
    assert check_folder(folder / "model.safetensors").path == folder


def test_templates_are_found_where_they_may_lie(folder) -> None:
    several = [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}, 5]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}), encoding="utf-8")
    assert check_folder(folder).chat_template == "d"
    (folder / "chat_template.jinja").write_text("own", encoding="utf-8")
    assert check_folder(folder).chat_template == "own"


class _Planted:
    """A pickle of this creates a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "x.pt", "x.PTH", "x.ckpt", "x.pkl", "x.joblib", "x.npy"])
def test_a_folder_with_only_pickles_is_refused_and_none_is_opened(tmp_path, name) -> None:
    made = write_model(tmp_path / "model")
    (made / "model.safetensors").unlink()
    (made / "tokenizer.json").write_bytes(TOKENIZER)
    (made / name).write_bytes(pickle.dumps(_Planted(tmp_path / "touched")))
    assert code_of(made) is ErrorCode.NOT_A_MODEL
    assert code_of(made / name) is ErrorCode.NOT_A_MODEL
    assert not (tmp_path / "touched").exists()


def test_a_pickle_beside_safetensors_is_left_alone(folder, tmp_path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Planted(tmp_path / "touched")))
    (folder / "pytorch_model.bin").chmod(0)
    assert set(check_folder(folder).tensors) == set(SHAPES)
    assert not (tmp_path / "touched").exists()


def test_what_is_missing_is_named(folder, tmp_path) -> None:
    assert code_of(tmp_path / "nowhere") is ErrorCode.FILE_MISSING
    (folder / "tokenizer.json").unlink()
    assert code_of(folder) is ErrorCode.NO_VOCABULARY
    (folder / "config.json").unlink()
    assert code_of(folder) is ErrorCode.NOT_A_MODEL


def test_parts_are_read_by_their_index(tmp_path) -> None:
    first, second = dict(list(SHAPES.items())[:1]), dict(list(SHAPES.items())[1:])
    parts = write_shards(tmp_path / "model", [first, second])
    made = parts[0].parent
    (made / "tokenizer.json").write_bytes(TOKENIZER)
    assert set(check_folder(made).tensors) == set(SHAPES)
    assert set(check_folder(parts[1]).tensors) == set(SHAPES)
    for name in ("../x.safetensors", "/x.safetensors", "a\\b.safetensors", ".x.safetensors", "x.bin", ""):
        write_index(made, {"model.norm.weight": name})
        assert code_of(made) is ErrorCode.HEADER_INVALID
    write_index(made, dict.fromkeys(SHAPES, parts[0].name))
    assert code_of(made) is ErrorCode.HEADER_INVALID
    write_index(made, {"model.norm.weight": "model-00009-of-00009.safetensors"})
    assert code_of(made) is ErrorCode.HEADER_INVALID
    (made / "model.safetensors.index.json").unlink()
    assert code_of(made) is ErrorCode.HEADER_INVALID


def test_two_parts_with_one_tensor_are_refused(tmp_path) -> None:
    parts = write_shards(tmp_path / "model", [SHAPES, SHAPES])
    (parts[0].parent / "tokenizer.json").write_bytes(TOKENIZER)
    write_index(parts[0].parent, {"a": parts[0].name, "b": parts[1].name})
    assert code_of(parts[0].parent) is ErrorCode.HEADER_INVALID


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path) -> None:
    (tmp_path / "secret").write_bytes((folder / "tokenizer.json").read_bytes())
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to(tmp_path / "secret")
    assert code_of(folder) is ErrorCode.FILE_UNREADABLE


def test_the_hub_cache_s_own_links_are_followed(folder, tmp_path) -> None:
    top = tmp_path / "models--one--model"
    snapshot, blobs = top / "snapshots" / "abc", top / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(folder.iterdir()):
        (blobs / str(number)).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(Path("../../blobs") / str(number))
    assert set(check_folder(snapshot).tensors) == set(SHAPES)
    inner = snapshot / "other"
    inner.symlink_to(tmp_path / "models--another" / "blobs" / "1")
    with pytest.raises(EngineError):
        check_inside(snapshot, inner)


def test_a_pipe_does_not_hang(folder) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")
    assert code_of(folder) is ErrorCode.FILE_UNREADABLE


def test_a_config_that_asks_for_code_is_refused_before_its_weights_are_looked_at(folder) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(content | {"auto_map": {"AutoConfig": "x.Y"}}), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"junk")
    assert code_of(folder) is ErrorCode.RUNS_CODE
