"""Models in several files: found from any part, checked together, and named where a part is missing."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from app.models import split_set
from app.models.byte_source import HeaderError
from app.models.split_set import PartName, is_later_part, part_name, read_set
from backends.errors import ErrorCode
from tests.helpers.gguf_files import (
    ARCHITECTURE_ENTRY,
    U8,
    U32,
    TinyGguf,
    entry,
    split_entries,
    split_model,
    string_entry,
    tensor,
    u32,
    write_parts,
)


def refusal(path: Path) -> str:
    with pytest.raises(HeaderError) as caught:
        read_set(path)
    assert str(caught.value).endswith(".")
    return str(caught.value)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_any_part_brings_the_whole_set(tmp_path: Path, part: int) -> None:
    paths = write_parts(tmp_path, split_model(3, string_entry("general.name", "Big")), "große-модель v1")
    found = read_set(paths[part])
    assert found.parts == tuple(paths)
    assert found.size_bytes == found.header.file_bytes == sum(path.stat().st_size for path in paths)
    assert (found.header.architecture, found.header.name) == ("llama", "Big")
    assert [one.name for one in found.header.tensors] == [f"blk.{n}.attn_q.weight" for n in range(3)]
    assert [one.offset for one in found.header.tensors] == [0, 0, 0]  # each in its own part


def test_a_single_file_is_a_set_of_one(tmp_path: Path, starter_model: Path) -> None:
    found = read_set(starter_model)
    assert (found.parts, found.size_bytes) == ((starter_model,), 98_362_432)
    named_so = TinyGguf().write(tmp_path / "merged-00002-of-00002.gguf")  # the header says nothing of parts
    assert read_set(named_so).parts == (named_so,)
    one_of_one = TinyGguf(metadata=split_entries(0, 1, 1)).write(tmp_path / "a-00001-of-00001.gguf")
    assert read_set(one_of_one).parts == (one_of_one,)


def test_the_first_part_may_hold_metadata_only(tmp_path: Path) -> None:
    first, second = split_model(2)
    first = dataclasses.replace(first, metadata=split_entries(0, 2, 1), tensors=(), data_bytes=0)
    second = dataclasses.replace(second, metadata=split_entries(1, 2, 1))
    paths = write_parts(tmp_path, [first, second])
    assert [one.name for one in read_set(paths[0]).header.tensors] == ["blk.1.attn_q.weight"]


def test_links_to_the_parts_are_followed_beside_each_other(tmp_path: Path) -> None:
    # As the Hugging Face cache has it: names in one folder, files without names in another.
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    links = []
    for number, path in enumerate(write_parts(tmp_path, split_model(2))):
        path.rename(tmp_path / "blobs" / str(number))
        links.append(tmp_path / "snapshot" / path.name)
        links[-1].symlink_to(tmp_path / "blobs" / str(number))
    assert read_set(links[1]).parts == tuple(links)
    (tmp_path / "blobs" / "0").unlink()
    assert refusal(links[1]) == "Part 1 of 2 is missing: model-00001-of-00002.gguf."


@pytest.mark.parametrize("asked", [0, 2])
def test_a_missing_part_is_named(tmp_path: Path, asked: int) -> None:
    paths = write_parts(tmp_path, split_model(3))
    paths[1].unlink()
    assert refusal(paths[asked]) == "Part 2 of 3 is missing: model-00002-of-00003.gguf."


def test_of_several_missing_parts_the_first_is_named(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, split_model(4))
    paths[0].unlink()
    paths[3].unlink()
    assert refusal(paths[2]) == "2 of 4 parts are missing; the first is part 1: model-00001-of-00004.gguf."


def changed(part: int, **changes: object) -> list[TinyGguf]:
    models = split_model(3)
    models[part] = dataclasses.replace(models[part], **changes)
    return models


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (
            changed(1, metadata=split_entries(2, 3, 3)),
            "Part 2 of 3 (model-00002-of-00003.gguf) says that it is part 3.",
        ),
        (
            changed(2, metadata=split_entries(2, 4, 3)),
            "Part 3 of 3 (model-00003-of-00003.gguf) says that it is one of 4",
        ),
        (changed(1, metadata=()), "Part 2 of 3 (model-00002-of-00003.gguf): The header does not name the model's arch"),
        (changed(1, metadata=(), architecture=ARCHITECTURE_ENTRY), "says that it is one of 0 parts."),
        (changed(0, metadata=split_entries(0, 3, 4)), "The first part promises 4 tensors; all parts hold 3."),
        (changed(0, metadata=split_entries(0, 3, 3)[:2]), "does not say how many tensors there are; all parts hold 3."),
        (changed(0, metadata=split_entries(0, 4, 3)), "The name of the file says 3 parts, its header 4."),
        (changed(0, architecture=b""), "The header does not name the model's architecture in a plain word."),
        (
            changed(2, architecture=string_entry("general.architecture", "gemma3")),
            "is of the architecture 'gemma3', the first part of 'llama'.",
        ),
        (changed(2, tensors=(tensor("blk.0.attn_q.weight", [8, 4]),)), "'blk.0.attn_q.weight' stands in two parts."),
        (changed(1, magic=b"GGML"), "Part 2 of 3 (model-00002-of-00003.gguf): This is not a GGUF model file"),
        (changed(1, data_bytes=100), "Part 2 of 3 (model-00002-of-00003.gguf): The tensor 'blk.1.attn_q.weight' reach"),
        (changed(0, metadata=(entry("split.count", U32, u32(3)),)), "'split.count' is not stored as uint16."),
        (changed(1, metadata=(entry("split.no", U8, b"\1"),)), "'split.no' is not stored as uint16."),
        (
            [dataclasses.replace(one, tensors=(), data_bytes=0) for one in split_model(3)],
            "promises 3 tensors; all parts",
        ),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path, models: list[TinyGguf], words: str) -> None:
    paths = write_parts(tmp_path, models)
    assert words in refusal(paths[0])


def test_a_damaged_part_makes_the_set_damaged_and_not_a_stranger(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, changed(1, magic=b"GGML"))
    with pytest.raises(HeaderError) as caught:
        read_set(paths[0])
    assert caught.value.code is ErrorCode.HEADER_INVALID


def test_a_set_without_any_weights_is_refused(tmp_path: Path) -> None:
    models = [TinyGguf(metadata=split_entries(part, 2, 0), tensors=(), data_bytes=0) for part in range(2)]
    assert "no weights" in refusal(write_parts(tmp_path, models)[0])


def test_a_part_under_another_name_says_that_its_name_is_the_fault(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, split_model(2))
    first, second = paths[0].rename(tmp_path / "renamed.gguf"), paths[1].rename(tmp_path / "other.gguf")
    assert "in 2 parts, but the file's name does not say which it is" in refusal(first)
    assert refusal(second) == "This is a later one of 2 parts of a model; open the first part."


def test_a_part_that_is_no_ordinary_file_is_refused_and_blocks_nothing(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, split_model(2))
    paths[1].unlink()
    os.mkfifo(paths[1])
    assert "Part 2 of 2 (model-00002-of-00002.gguf): This is a device, a pipe or a socket" in refusal(paths[0])


def test_the_work_for_a_hostile_set_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_parts(tmp_path, split_model(3))
    monkeypatch.setattr(split_set, "MAX_TENSORS", 2)
    assert "hold 3 tensors; at most 2" in refusal(paths[0])
    monkeypatch.setattr(split_set, "MAX_PARTS", 2)
    assert "in 3 parts; at most 2" in refusal(paths[0])


# ------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("m-00001-of-00003.gguf", PartName("m", 1, 3)),
        ("a-00001-of-00002-00002-of-00002.gguf", PartName("a-00001-of-00002", 2, 2)),
        ("m-00004-of-00003.gguf", None),
        ("m-00000-of-00003.gguf", None),
        ("-00001-of-00003.gguf", None),
        ("m-1-of-3.gguf", None),
        ("m-00001-of-00003.GGUF", None),
        ("m.gguf", None),
        ("m-٠٠٠٠١-of-٠٠٠٠٢.gguf", None),
    ],
)
def test_the_name_of_a_part_is_read_as_llama_cpp_writes_it(name: str, found: PartName | None) -> None:
    assert part_name(name) == found


def test_a_scan_meets_each_set_once_even_without_its_first_part(tmp_path: Path) -> None:
    paths = write_parts(tmp_path, split_model(3))
    assert [is_later_part(path) for path in paths] == [False, True, True]
    paths[0].unlink()
    assert [is_later_part(path) for path in paths[1:]] == [False, True]
    assert not is_later_part(tmp_path / "single.gguf")
    assert not is_later_part(tmp_path / "m-00002-of-09999.gguf")  # more parts than are ever read
