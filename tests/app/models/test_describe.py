"""One model described: facts from the header, faults in words, and no exception whatever the bytes are."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from app.models import byte_source
from app.models.byte_source import HeaderError
from app.models.describe import describe_candidate, describe_model, fault_of
from app.models.entry import FoundModel
from app.models.identity import provisional_identity
from app.models.source_candidate import Candidate, stamp_of
from backends.errors import ErrorCode
from tests.helpers.gguf_files import U32, TinyGguf, entry, string_entry, u32
from tests.helpers.model_folders import (
    SMALL_LLAMA,
    model_bytes,
    projector_bytes,
    safetensors_files,
    sharded_files,
    split_bytes,
    typed_bytes,
    write,
    write_files,
    write_split,
)


def _fault(path: Path) -> str:
    return describe_model(path, "added").fault


def test_a_model_is_described_from_its_header(tmp_path: Path) -> None:
    metadata = (
        string_entry("general.organization", "someone"),
        entry("llama.context_length", U32, u32(2048)),
        entry("general.file_type", U32, u32(0)),
        string_entry("tokenizer.chat_template", "{{ messages }}"),
    )
    path = write(tmp_path / "tiny-model-F32.gguf", model_bytes("Tiny Model", *metadata))
    found = describe_model(path, "folder")

    assert (found.path, found.parts, found.origin, found.format) == (str(path), (str(path),), "folder", "gguf")
    assert (found.name, found.owner, found.quantization, found.architecture) == (
        "Tiny-Model",
        "someone",
        "F32",
        "llama",
    )
    assert (found.size_bytes, found.parameters_count, found.context_tokens) == (path.stat().st_size, 32, 2048)
    assert (found.bits_per_weight, found.fallback_tensors, found.has_importance_matrix) == (32.0, 0, False)
    assert found.has_chat_template
    assert found.shape is not None
    assert found.shape.architecture == "llama"
    assert found.identity == provisional_identity([path])
    assert found.stamp == stamp_of([path])
    assert found.fault == ""


def test_the_place_names_a_model_before_its_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", model_bytes("Inner", string_entry("general.organization", "maker")))
    found = describe_model(path, "lm_studio", name="Outer", owner="publisher")
    assert (found.name, found.owner) == ("Outer", "publisher")


def test_a_split_set_is_described_as_a_whole_from_any_of_its_parts(tmp_path: Path) -> None:
    paths = write_split(tmp_path, "big", 3)
    found = [describe_model(path, "added") for path in paths]

    assert found[0] == found[1] == found[2]
    assert (found[0].path, found[0].parts) == (str(paths[0]), tuple(map(str, paths)))
    assert found[0].size_bytes == sum(path.stat().st_size for path in paths)
    assert found[0].parameters_count == 3 * 32
    assert found[0].stamp == stamp_of(paths)
    assert found[0].identity == provisional_identity(paths)
    assert found[0].fault == ""


def test_a_set_with_a_missing_part_keeps_what_its_first_part_says(tmp_path: Path) -> None:
    paths = write_split(tmp_path, "big", 3, missing=[2])
    found = describe_model(paths[0], "added")

    assert found.fault == "Part 2 of 3 is missing. Put it into the folder of the others."
    assert (found.name, found.architecture, found.parts) == ("Split-Model", "llama", tuple(map(str, paths)))
    assert (found.shape, found.parameters_count, found.identity) == (None, 0, "")
    assert found.stamp == stamp_of(paths)


def test_a_set_without_its_first_part_stands_under_the_name_of_its_file(tmp_path: Path) -> None:
    paths = write_split(tmp_path, "big-Q8_0", 2, missing=[1])
    found = describe_model(paths[0], "added")
    assert found.name == "big"
    assert found.fault == "Part 1 of 2 is missing. Put it into the folder of the others."


def test_a_name_like_that_of_a_part_is_no_fault_of_a_whole_model(tmp_path: Path) -> None:
    path = write(tmp_path / "whole-00001-of-00002.gguf", model_bytes())
    assert _fault(path) == ""


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    paths = write_split(tmp_path, "big", 2)
    paths[1].write_bytes(split_bytes(2)[1][:40])
    fault = _fault(paths[0])
    assert fault.startswith("The model file cannot be used. Part 2 of 2 (big-00002-of-00002.gguf): ")


def test_a_projector_beside_a_model_goes_with_it(tmp_path: Path) -> None:
    model = write(tmp_path / "m-Q4_0.gguf", model_bytes())
    projector = write(tmp_path / "mmproj-m-f16.gguf", projector_bytes())
    found = describe_model(model, "added")

    assert (found.projector_path, found.projector_bytes) == (str(projector), 128)
    assert found.parts == (str(model),)
    assert found.stamp == stamp_of([model], projector)


@pytest.mark.parametrize("data", [b"", b"GGUF", model_bytes("no projector")])
def test_what_is_only_called_a_projector_is_left_out(tmp_path: Path, data: bytes) -> None:
    model = write(tmp_path / "m-Q4_0.gguf", model_bytes())
    write(tmp_path / "mmproj-m-f16.gguf", data)
    found = describe_model(model, "added")
    assert (found.projector_path, found.projector_bytes, found.fault) == ("", 0, "")


def test_a_projector_is_no_model_of_its_own(tmp_path: Path) -> None:
    for name in ("mmproj-f16.gguf", "eyes.gguf"):
        path = write(tmp_path / name, projector_bytes())
        assert describe_candidate(Candidate(path, "added", (path,))) is None
        assert _fault(path) == (
            "This is a vision projector. Cutaway takes it by itself with the model that it lies beside."
        )


def test_an_adapter_is_listed_with_its_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "lora.gguf", typed_bytes("adapter"))
    assert _fault(path) == "This is an adapter (LoRA), a change to another model. It cannot be used alone."


def test_a_model_for_embeddings_says_what_it_is(tmp_path: Path) -> None:
    data = TinyGguf(architecture=string_entry("general.architecture", "nomic-bert")).to_bytes()
    fault = _fault(write(tmp_path / "embed.gguf", data))
    assert fault == (
        "This is a model of the kind nomic-bert, which turns text into numbers for searching and cannot answer."
    )


def test_an_importance_matrix_is_no_model_and_a_damaged_model_is_a_fault(tmp_path: Path) -> None:
    data = TinyGguf(architecture=string_entry("general.type", "imatrix")).to_bytes()
    for name in ("m.imatrix.gguf", "imatrix_unsloth.gguf"):
        path = write(tmp_path / name, data)
        assert describe_candidate(Candidate(path, "added", (path,))) is None
    path = write(tmp_path / "m-imatrix-Q4_0.gguf", data)
    assert describe_candidate(Candidate(path, "added", (path,))) is not None


def test_a_vocabulary_alone_is_a_fault(tmp_path: Path) -> None:
    path = TinyGguf(tensors=(), data_bytes=0).write(tmp_path / "ggml-vocab.gguf")
    assert _fault(path) == "The model file cannot be used. The file holds no weights, only a vocabulary."


# ------------------------------------------------------------------------------------------- what is no model


LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "The file is empty."),
        (LFS_POINTER, "This is a Git LFS pointer, a note in place of the model file; download the file itself."),
        (b"PK\3\4....", "This is a ZIP archive or a PyTorch file, not a GGUF model file."),
        (b"<!DOCTYPE html>", "This is a web page, not a model file; the download went wrong."),
        (bytes(4_096), "The file begins with zeros only, as an unfinished download does."),
        (b"words words", "This is not a GGUF model file: its first bytes are not those of one."),
    ],
)
def test_each_stranger_gets_one_line(tmp_path: Path, data: bytes, fault: str) -> None:
    assert _fault(write(tmp_path / "stranger.gguf", data)) == fault


def test_a_file_that_is_cut_short_says_so(tmp_path: Path) -> None:
    found = describe_model(write(tmp_path / "short-Q4_0.gguf", model_bytes()[:-1]), "added")
    assert found.fault == (
        "The model file cannot be used. The tensor 'token_embd.weight' reaches beyond the end of the file, which is "
        "cut short or damaged."
    )
    assert (found.name, found.identity, found.shape) == ("short", "", None)
    assert found.stamp == stamp_of([Path(found.path)])


def test_no_fifo_device_folder_or_link_to_nowhere_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.gguf")
    (tmp_path / "zero.gguf").symlink_to("/dev/zero")
    (tmp_path / "folder.gguf").mkdir()
    (tmp_path / "broken.gguf").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.gguf").symlink_to(tmp_path / "loop.gguf")
    for name in ("fifo.gguf", "zero.gguf"):
        assert _fault(tmp_path / name) == "This is a device, a pipe or a socket, not a model file."
    assert _fault(tmp_path / "folder.gguf").startswith("This folder holds no model of safetensors.")
    for name in ("broken.gguf", "loop.gguf"):
        assert _fault(tmp_path / name) == "This link leads to a file that is not there."


@pytest.mark.parametrize("name", ["gone.gguf", "gone.safetensors", "a\0b.gguf", "x" * 300 + ".gguf", "gone/deep.gguf"])
def test_a_file_that_is_not_there_is_a_fault_without_a_stamp(tmp_path: Path, name: str) -> None:
    found = describe_model(tmp_path / name, "imported")
    assert found.fault
    assert "\n" not in found.fault
    assert (found.stamp, found.identity, found.size_bytes) == ("", "", 0)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "pytorch_model.bin", model_bytes())
    assert _fault(path) == "Files that end in .bin can run code when they are opened, so Cutaway never opens them."


def test_a_file_that_may_not_be_read_is_looked_at_again_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "private.gguf", model_bytes())

    def refuse(*_arguments: object, **_more: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(byte_source.os, "open", refuse)  # root may read everything
    found = describe_model(path, "added")

    assert found.fault == (
        "Cutaway cannot read the file. The file could not be opened: Permission denied. Check that you may read it."
    )
    assert found.stamp == ""
    assert found.size_bytes == path.stat().st_size


def test_each_code_has_its_sentence() -> None:
    assert fault_of(HeaderError("x", ErrorCode.FILE_MISSING)).startswith("The file is not there")
    assert fault_of(HeaderError("Odd\n\u202etext.", ErrorCode.NOT_A_MODEL)) == "Odd text."
    assert fault_of(HeaderError("Bad.")) == "The model file cannot be used. Bad."


def test_an_untold_number_never_leaves_its_bounds(tmp_path: Path) -> None:
    metadata = (entry("llama.context_length", 10, b"\xff" * 8),)
    found = describe_model(write(tmp_path / "a.gguf", model_bytes("A", *metadata)), "added")
    assert found.context_tokens == 2**40


def test_a_name_that_is_no_text_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff\xe2\x80\xaename.gguf")
    path.write_bytes(TinyGguf().to_bytes())
    found = describe_model(path, "added")
    assert found.path == str(path)
    assert found.name.encode() == "bad\ufffdname".encode()
    assert found.fault == ""


# ------------------------------------------------------------------------------------------------ safetensors


def test_a_folder_of_safetensors_is_one_model(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "small-llama", safetensors_files())
    found = describe_model(folder, "added")

    assert (found.path, found.format, found.name) == (str(folder), "safetensors", "small-llama")
    assert [Path(part).name for part in found.parts] == ["config.json", "model.safetensors", "tokenizer_config.json"]
    assert found.size_bytes == sum((folder / name).stat().st_size for name in safetensors_files())
    assert (found.architecture, found.context_tokens, found.parameters_count) == ("llama", 64, 632)
    assert found.quantization.upper() == "BF16"
    assert found.bits_per_weight == 16.0
    assert found.has_chat_template
    assert found.identity == provisional_identity([folder / "model.safetensors"])
    assert found.stamp == stamp_of(found.parts)
    assert found.fault == ""
    assert describe_model(folder / "model.safetensors", "added") == found


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "m", sharded_files())
    assert _fault(folder) == ""
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert _fault(folder) == (
        "The model file cannot be used. Shard 2 of 2 is missing: model-00002-of-00002.safetensors."
    )


def test_a_model_that_brings_code_is_a_fault(tmp_path: Path) -> None:
    config = dict(SMALL_LLAMA) | {"auto_map": {"AutoModelForCausalLM": "modeling_x.XForCausalLM"}}
    folder = write_files(tmp_path / "m", safetensors_files(config))
    assert _fault(folder) == (
        "This model needs code of its own to run, and Cutaway never runs code that comes with a model."
    )


def test_a_model_that_cannot_write_says_what_it_is(tmp_path: Path) -> None:
    config = dict(SMALL_LLAMA) | {"architectures": ["LlamaModel"]}
    folder = write_files(tmp_path / "m", safetensors_files(config))
    assert _fault(folder).startswith("This is a model of the kind LlamaModel, ")


def test_folders_that_are_no_model_say_why(tmp_path: Path) -> None:
    pickles = write_files(tmp_path / "p", {"config.json": b"{}", "pytorch_model.bin": b"x"})
    broken = write_files(tmp_path / "b", safetensors_files() | {"config.json": b"{"})
    pointer = write_files(tmp_path / "l", safetensors_files() | {"model.safetensors": LFS_POINTER})
    bare = write_files(tmp_path / "n", {"model.safetensors": b"x"})

    assert _fault(pickles).startswith("This folder holds its weights as pickles only")
    assert "config.json" in _fault(broken)
    assert "Git LFS pointer" in _fault(pointer)
    assert _fault(bare).startswith("This folder holds no model of safetensors.")
    assert _fault(bare / "model.safetensors") == (
        "There is no config.json beside this file, so nothing says what kind of model it is."
    )


# ------------------------------------------------------------------------------------------- whatever comes


def _mutated(data: bytes, seed: int) -> bytes:
    changed = bytearray(data)
    for step in range(1 + seed % 4):
        changed[(seed * 7_919 + step * 104_729) % len(changed)] = (seed * 31 + step * 17) % 256
    return bytes(changed[: len(changed) - (seed % 5) * 7])


def _describe_mutated(folder: Path, seed: int) -> FoundModel:
    """Describe one mutation; the kinds take turns."""
    if seed % 2:
        return describe_model(write(folder / "m.gguf", _mutated(model_bytes(), seed)), "added")
    files = safetensors_files()
    name = ("config.json", "model.safetensors", "tokenizer_config.json")[seed // 2 % 3]
    return describe_model(write_files(folder / "s", files | {name: _mutated(files[name], seed)}), "added")


@pytest.mark.parametrize("count", [400, pytest.param(5_000, marks=pytest.mark.full)])
def test_no_mutation_raises_and_every_answer_can_travel(tmp_path: Path, count: int) -> None:
    for seed in range(count):
        found = _describe_mutated(tmp_path, seed)
        assert json.dumps([found.name, found.fault, found.architecture, found.quantization]).isprintable()
        assert found.name
        assert found.fault == "" or found.fault.endswith(".")
