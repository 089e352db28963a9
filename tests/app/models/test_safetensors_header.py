"""Safetensors models on disk: single files, shards with their index, and every way in which a folder can lie."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.models import safetensors_header
from app.models.byte_source import HeaderError
from app.models.safetensors_header import is_shard, read_safetensors
from backends.errors import ErrorCode
from tests.helpers.safetensors_files import (
    LLAMA_CONFIG,
    SHAPES,
    Shapes,
    file_bytes,
    write_index,
    write_model,
    write_shards,
)

SHARDS: list[Shapes] = [
    {"embed": ("BF16", [8, 4]), "a": ("BF16", [4, 4])},
    {"b": ("F8_E4M3", [4, 4])},
    {"c": ("BF16", [4, 4]), "head": ("BF16", [8, 4])},
]


def refusal(path: Path) -> HeaderError:
    with pytest.raises(HeaderError) as caught:
        read_safetensors(path)
    assert str(caught.value).endswith(".")
    return caught.value


def test_a_model_in_one_file_is_read_from_its_folder_or_its_file(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "SmolLM2 135M · ü")
    path = folder / "model.safetensors"
    model = read_safetensors(folder)
    assert model == read_safetensors(path)
    assert (model.parts, model.size_bytes) == ((path,), path.stat().st_size)
    assert [one.name for one in model.tensors] == list(SHAPES)
    assert model.tensor_bytes == 256 * 64 * 2 + 64 * 64 * 2 + 64 * 4
    assert dict(model.config) == LLAMA_CONFIG
    assert (model.architecture, model.quantization, model.runs_code) == ("llama", None, "")


@pytest.mark.parametrize("asked", ["", "model-00002-of-00003.safetensors"])
def test_a_model_in_shards_is_read_from_its_folder_or_any_shard(tmp_path: Path, asked: str) -> None:
    paths = write_shards(tmp_path, SHARDS)
    model = read_safetensors(tmp_path / asked)
    assert model.parts == tuple(paths)
    assert [one.name for one in model.tensors] == ["embed", "a", "b", "c", "head"]
    assert model.size_bytes == sum(path.stat().st_size for path in paths)


def test_quantization_and_a_wish_for_code_are_noted(tmp_path: Path) -> None:
    quantized = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    write_model(tmp_path, config={**LLAMA_CONFIG, "quantization_config": quantized, "auto_map": {"AutoModel": "x.Y"}})
    model = read_safetensors(tmp_path)
    assert model.quantization is not None
    assert (model.quantization.description, model.runs_code) == ("GPTQ int4 g128", "auto_map")


def test_a_lone_file_of_any_name_is_the_model(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    path = (folder / "model.safetensors").rename(folder / "consolidated.safetensors")
    assert read_safetensors(folder).parts == read_safetensors(path).parts == (path,)


def test_the_single_file_is_taken_where_an_index_lies_beside_it(tmp_path: Path) -> None:
    write_shards(tmp_path, SHARDS)
    write_model(tmp_path)
    assert [path.name for path in read_safetensors(tmp_path).parts] == ["model.safetensors"]


def test_links_are_followed_and_broken_ones_are_missing_shards(tmp_path: Path) -> None:
    # As the Hugging Face cache has it.
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    write_shards(blobs, SHARDS)
    snapshot.mkdir()
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(path)
    assert len(read_safetensors(snapshot).parts) == 3
    (blobs / "model-00003-of-00003.safetensors").unlink()
    assert str(refusal(snapshot)) == "Shard 3 of 3 is missing: model-00003-of-00003.safetensors."


def test_missing_shards_are_named(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, SHARDS)
    paths[1].unlink()
    assert str(refusal(tmp_path)) == "Shard 2 of 3 is missing: model-00002-of-00003.safetensors."
    paths[0].unlink()
    assert "2 of 3 shards are missing; the first is model-00001-of" in str(refusal(paths[2]))


def test_tensors_are_where_the_index_says(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, SHARDS)
    places = {name: path.name for path, shapes in zip(paths, SHARDS, strict=True) for name in shapes}
    write_index(tmp_path, {**places, "b": paths[0].name, "a": paths[1].name})
    assert "index.json says" in str(refusal(tmp_path))
    write_index(tmp_path, {**places, "lost": paths[0].name})
    assert "The tensor 'lost' is in none of the files" in str(refusal(tmp_path))
    write_index(tmp_path, {name: file for name, file in places.items() if name != "embed"})
    assert len(read_safetensors(tmp_path).tensors) == 5  # one that the index forgot does no harm
    paths[1].write_bytes(file_bytes({"b": ("BF16", [1]), "a": ("BF16", [1])}))
    write_index(tmp_path, places)
    assert "The tensor 'a' stands in 'model-00001-of-00003.safetensors' and again." in str(refusal(tmp_path))


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, SHARDS)
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    error = refusal(tmp_path)
    assert str(error).startswith("'model-00002-of-00003.safetensors': The tensor 'b' reaches beyond the end")
    assert error.code is ErrorCode.HEADER_INVALID
    paths[1].unlink()
    os.mkfifo(paths[1])
    assert "a pipe" in str(refusal(tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        "../model.safetensors",
        "/etc/model.safetensors",
        "a/b.safetensors",
        "a\\..\\b.safetensors",
        "C:model.safetensors",
        "model.bin",
        ".safetensors",
        "..safetensors",
        "a\n.safetensors",
        "x" * 300 + ".safetensors",
        "",
    ],
)
def test_an_index_never_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    write_shards(tmp_path / "model", SHARDS)
    write_index(tmp_path / "model", {"a": name})
    assert "names a file that no shard may be called" in str(refusal(tmp_path / "model"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not as the format wants it"),
        ("[]", "not as the format wants it"),
        ("{}", "not as the format wants it"),
        ('{"weight_map": {}}', "lists 0 tensors"),
        ('{"weight_map": {"a": 1}}', "not as the format wants it"),
        ('{"weight_map": ["a"]}', "not as the format wants it"),
        ('{"weight_map": ' + "[" * 100_000, "not as the format wants it"),
        ('{"weight_map": {"a": "a.safetensors"}, "metadata": ' + "[" * 900_000, "nested too deeply"),
        ("[" * 2_000_000, "holds 2,000,001 values; at most 1,048,576"),
    ],
)
def test_a_hostile_index_is_refused(tmp_path: Path, text: str, words: str) -> None:
    write_shards(tmp_path, SHARDS)
    (tmp_path / "model.safetensors.index.json").write_text(text or " ", encoding="utf-8")
    assert words in str(refusal(tmp_path))


def test_the_work_for_a_hostile_index_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path, SHARDS)
    for limit, value, words in (
        ("MAX_TENSORS", 4, "holds 9 values; at most 8"),
        ("MAX_SHARDS", 2, "names 3 files; at most 2"),
        ("MAX_INDEX_BYTES", 100, "index.json takes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(safetensors_header, limit, value)
            assert words in str(refusal(tmp_path))


# ------------------------------------------------------------------------------------------ incomplete folders


def test_a_folder_without_config_says_what_is_missing(tmp_path: Path) -> None:
    write_model(tmp_path, config=None)
    assert str(refusal(tmp_path)) == "There is no config.json, so nothing says what kind of model this is."
    (tmp_path / "config.json").symlink_to(tmp_path / "nowhere")
    assert "There is no config.json" in str(refusal(tmp_path))
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    assert str(refusal(tmp_path)) == "config.json: This is a folder, not a model file."


def test_a_config_of_many_megabytes_is_refused_unread(tmp_path: Path) -> None:
    write_model(tmp_path)
    os.truncate(tmp_path / "config.json", 2**40)
    assert "config.json takes 1,099,511,627,776 bytes; at most 8,388,608" in str(refusal(tmp_path))


def test_shards_without_their_index_say_so(tmp_path: Path) -> None:
    write_shards(tmp_path, SHARDS)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert str(refusal(tmp_path)) == "The list of the model's parts is missing: model.safetensors.index.json."


def test_several_files_without_an_index_are_no_model(tmp_path: Path) -> None:
    for name in ("unet.safetensors", "vae.safetensors"):
        (tmp_path / name).write_bytes(file_bytes(SHAPES))
    assert "holds 2 safetensors files and no" in str(refusal(tmp_path))


def test_folders_without_weights_are_no_models(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert (str(error), error.code) == ("The folder holds no safetensors file.", ErrorCode.NOT_A_MODEL)
    assert refusal(tmp_path / "gone").code is ErrorCode.FILE_MISSING
    write_model(tmp_path, shapes={})
    assert str(refusal(tmp_path)) == "The files hold no weights."


def test_pickles_in_a_folder_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_CONFIG), encoding="utf-8")
    opened: list[str] = []
    real_open = os.open

    def watched(path: str | Path, flags: int) -> int:
        opened.append(Path(path).name)
        return real_open(path, flags)

    monkeypatch.setattr(os, "open", watched)
    error = refusal(tmp_path)
    assert error.code is ErrorCode.NOT_A_MODEL
    assert "can run code when they are opened ('pytorch_model.bin')" in str(error)
    write_model(tmp_path)
    opened.clear()
    assert len(read_safetensors(tmp_path).parts) == 1
    assert opened == ["model.safetensors", "config.json"]
    assert "never opens them" in str(refusal(tmp_path / "pytorch_model.bin"))


def test_a_folder_that_may_not_be_read_says_the_systems_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", denied)  # the tests may run as root, whom no mode stops
    error = refusal(tmp_path)
    assert (str(error), error.code) == ("The folder could not be read: Permission denied.", ErrorCode.FILE_UNREADABLE)


def test_a_shard_is_known_by_its_name() -> None:
    assert is_shard(Path("model-00001-of-00030.safetensors"))
    assert not any(
        is_shard(Path(name)) for name in ("model.safetensors", "model-00001-of-00002.gguf", "a-1-of-2.safetensors")
    )
