"""A repo's files as rows: sets folded, helpers aside, nothing that can run code in any of them."""

from __future__ import annotations

import pytest

from app.downloads.types import FileRef
from app.hub.table import MAX_ROWS, quantizations_of, sort_files

CONFIG = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")


def files(*paths: str, size_bytes: int = 100) -> list[FileRef]:
    return [FileRef("https://h", "a/b", "c" * 40, path, size_bytes) for path in paths]


def shards(count: int, prefix: str = "model") -> list[str]:
    return [f"{prefix}-{part:05d}-of-{count:05d}.safetensors" for part in range(1, count + 1)]


def test_one_row_for_each_quantization_few_bits_first():
    table = sort_files(files("m-Q8_0.gguf", "m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-BF16.gguf", "README.md"))
    assert [row.key for row in table.rows] == ["Q2_K", "Q4_K_M", "Q8_0", "BF16"]
    assert [row.size_bytes for row in table.rows] == [100] * 4
    assert {row.state for row in table.rows} == {"unread"}
    assert [file.path for file in table.others] == ["README.md"]


def test_sets_are_folded_in_the_order_of_their_parts():
    paths = [f"Q8_0/m-Q8_0-{part:05d}-of-00003.gguf" for part in (3, 1, 2)]
    (row,) = sort_files(files(*paths)).rows
    assert [file.path for file in row.files] == sorted(paths)
    assert (row.key, row.size_bytes, row.is_broken) == ("Q8_0", 300, False)


def test_a_set_with_a_missing_part_is_shown_with_its_fault_and_comes_last():
    table = sort_files(files("m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf", "m-F16.gguf"))
    assert [row.key for row in table.rows] == ["F16", "Q8_0"]
    assert table.rows[1].fault == "Part 2 of 3 is missing at the hub."
    assert (table.rows[1].is_broken, table.rows[1].state) == (True, "failed")


def test_files_cut_by_hand_are_one_row_with_its_fault():
    (row,) = sort_files(files("m.Q6_K.gguf.part1of2", "m.Q6_K.gguf.part2of2")).rows
    assert (row.key, row.size_bytes, row.is_broken) == ("Q6_K", 200, True)
    assert "joined" in row.fault


def test_projectors_and_helpers_are_put_aside():
    table = sort_files(
        files("m-Q4_K_M.gguf", "mmproj-F16.gguf", "imatrix.dat", "m.imatrix.gguf", "m-lora-f16.gguf", "README.md")
    )
    assert [row.key for row in table.rows] == ["Q4_K_M"]
    assert [file.path for file in table.projectors] == ["mmproj-F16.gguf"]
    assert [file.path for file in table.others] == ["imatrix.dat", "m.imatrix.gguf", "m-lora-f16.gguf", "README.md"]


def test_two_models_in_one_repo_have_keys_of_their_own():
    table = sort_files(files("small-Q8_0.gguf", "large-Q8_0.gguf", "large-Q4_K_M.gguf"))
    assert [row.key for row in table.rows] == ["Q4_K_M", "large-Q8_0", "small-Q8_0"]
    assert [row.quantization for row in table.rows] == ["Q4_K_M", "Q8_0", "Q8_0"]


def test_a_set_and_a_file_of_one_quantization_have_keys_of_their_own():
    table = sort_files(files("m-Q8_0.gguf", "m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"))
    assert len({row.key for row in table.rows}) == 2
    assert sorted(len(row.files) for row in table.rows) == [1, 2]


def test_unknown_names_are_shown_as_they_are():
    table = sort_files(files("m-q4_x_mine.gguf", "gemma-7b.gguf", "m-Q4_K_M.gguf"))
    assert [(row.key, row.quantization) for row in table.rows] == [
        ("Q4_K_M", "Q4_K_M"),
        ("gemma-7b", ""),
        ("q4_x_mine", "q4_x_mine"),
    ]


def test_an_empty_file_is_a_fault():
    (row,) = sort_files(files("m-Q4_K_M.gguf", size_bytes=0)).rows
    assert row.is_broken
    assert row.fault == "A file of it is empty at the hub."


def test_keys_are_never_twice():
    paths = [f"{folder}/m-Q8_0.gguf" for folder in "abcd"] + ["m-Q8_0.gguf", "x/m.gguf", "y/m.gguf"]
    table = sort_files(files(*paths))
    assert len({row.key for row in table.rows}) == len(paths)


def test_a_repo_with_thousands_of_models_is_bounded():
    table = sort_files(files(*(f"model{number}-Q8_0.gguf" for number in range(MAX_ROWS + 7))))
    assert len(table.rows) == MAX_ROWS
    assert len(table.others) == 7


# ------------------------------------------------------------------------------------------------ safetensors


def test_a_safetensors_model_is_one_row_with_its_companions_and_without_pickles():
    paths = [*CONFIG, "model.safetensors", "pytorch_model.bin", "model.pt", "modeling_x.py", "README.md"]
    table = sort_files(files(*paths), "Model", {"BF16": 100, "F32": 5})
    (row,) = table.rows
    assert (row.format, row.key, row.quantization) == ("safetensors", "BF16", "BF16")
    assert [file.path for file in row.files] == ["model.safetensors", *CONFIG]
    assert row.size_bytes == 500
    assert [file.path for file in table.others] == ["pytorch_model.bin", "model.pt", "modeling_x.py", "README.md"]


def test_shards_come_with_their_list():
    names = shards(3)
    (row,) = sort_files(files(*names, *CONFIG, "model.safetensors.index.json")).rows
    assert [file.path for file in row.files[:3]] == names
    assert "model.safetensors.index.json" in [file.path for file in row.files]
    assert not row.is_broken


@pytest.mark.parametrize(
    ("paths", "fault"),
    [
        ([*shards(3)[:2], "config.json", "model.safetensors.index.json"], "Part 3 of 3 is missing at the hub."),
        ([*shards(2), "config.json"], "The list of the model's parts is missing at the hub: "),
        (["model.safetensors"], "There is no config.json, so nothing says what kind of model this is."),
    ],
)
def test_an_incomplete_model_is_shown_with_its_fault(paths, fault):
    (row,) = sort_files(files(*paths)).rows
    assert row.fault.startswith(fault)
    assert row.is_broken


def test_the_same_weights_in_a_second_form_are_left_aside():
    paths = [*shards(2), "config.json", "model.safetensors.index.json", "consolidated.safetensors"]
    table = sort_files(files(*paths))
    assert [file.path for file in table.rows[0].files[:2]] == shards(2)
    assert [file.path for file in table.others] == ["consolidated.safetensors"]


@pytest.mark.parametrize(
    "paths",
    [
        ["adapter_model.safetensors", "adapter_config.json"],
        ["unet/model.safetensors", "config.json"],
        ["a.safetensors", "b.safetensors", "config.json"],
        ["pytorch_model.bin", "config.json"],
        [],
    ],
)
def test_what_is_no_model_makes_no_row(paths):
    table = sort_files(files(*paths))
    assert table.rows == ()
    assert [file.path for file in table.others] == paths


@pytest.mark.parametrize(
    ("name", "types", "quantization"),
    [
        ("Model-AWQ", {"I32": 90, "F16": 10}, "AWQ-int4"),
        ("Model-GPTQ-Int4", {"I32": 90}, "GPTQ-int4"),
        ("Model-FP8", {"F8_E4M3": 90}, "FP8"),
        ("Model", {"F8_E4M3": 90, "BF16": 10}, "FP8"),
        ("Model", {"F16": 90}, "F16"),
        ("Model", {}, ""),
    ],
)
def test_a_models_quantization_is_told_by_its_repo_or_its_types(name, types, quantization):
    (row,) = sort_files(files("model.safetensors", "config.json"), name, types).rows
    assert row.quantization == quantization
    assert row.key == (quantization or "safetensors")


def test_both_formats_in_one_repo_have_their_rows():
    table = sort_files(files("m-BF16.gguf", "model.safetensors", "config.json"), "m", {"BF16": 5})
    assert [(row.key, row.format) for row in table.rows] == [("BF16", "gguf"), ("safetensors", "safetensors")]


def test_the_quantizations_of_a_repo_are_told_without_sizes():
    paths = ["m-Q8_0.gguf", "m-Q2_K.gguf", "mmproj-F16.gguf", "x-Q2_K.gguf", "README.md", "m.gguf"]
    assert quantizations_of(paths) == ("Q2_K", "Q8_0")
