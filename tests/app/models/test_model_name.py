"""Names of models: the spelling people know, and nothing that could mislead them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.models.gguf_header import read_header
from app.models.model_name import file_name, model_name, model_owner, plain_name, plain_owner, without_format
from tests.helpers.gguf_files import TinyGguf, string_entry


def name_of(path: Path, **metadata: str) -> str:
    entries = tuple(string_entry(f"general.{key}", value) for key, value in metadata.items())
    return model_name(read_header(TinyGguf(metadata=entries).write(path)), path)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "qwen2.5-0.5b-instruct"),
        ("gemma-3-270m_IQ2_XXS.GGUF", "gemma-3-270m"),
        ("big-model-Q3_K_M-00001-of-00003.gguf", "big-model"),
        ("my model F16.gguf", "my-model"),
        ("gpt-oss-20b-MXFP4.gguf", "gpt-oss-20b"),
        ("Q4_1.gguf", "Q4_1"),
        ("plain.gguf", "plain"),
        ("\u202e\u200b.gguf", "model"),
        ("a\nb:c\\d.gguf", "a-b-c-d"),
        (f"{'x' * 200}.gguf", "x" * 80),
    ],
)
def test_a_files_name_gives_the_models(file: str, name: str) -> None:
    assert file_name(Path(file)) == name


def test_a_file_name_that_is_no_text_still_gives_a_name() -> None:
    assert file_name(Path("caf\udce9.gguf")) == "caf�"


def test_the_starter_models_file_corrects_its_header(starter_model: Path) -> None:
    assert model_name(read_header(starter_model), starter_model) == "SmolLM2-135M-Instruct"
    assert model_owner(read_header(starter_model)) == "HuggingFaceTB"


@pytest.mark.parametrize(
    ("file", "metadata", "name"),
    [
        ("m.gguf", {"name": "SmolLM2 135M Instruct"}, "SmolLM2-135M-Instruct"),
        ("m.gguf", {"basename": "SmolLM2", "size_label": "135M"}, "SmolLM2-135M"),
        ("smollm2-135m-chat.gguf", {"name": "x", "basename": "SmolLM2", "size_label": "135M"}, "smollm2-135m-chat"),
        ("m.gguf", {"name": "A", "basename": "SmolLM2", "size_label": "135M"}, "A"),
        ("m.gguf", {"basename": "SmolLM2"}, "m"),
        ("m.gguf", {"name": " \u200b\n"}, "m"),
        ("m.gguf", {"name": "meta/llama:\u202e7B\x1b[31m"}, "meta-llama-7B[31m"),
    ],
)
def test_the_header_names_the_model_where_the_file_does_not(
    tmp_path: Path, file: str, metadata: dict[str, str], name: str
) -> None:
    assert name_of(tmp_path / file, **metadata) == name


@pytest.mark.parametrize(
    ("organization", "owner"), [("HuggingFaceTB", "HuggingFaceTB"), ("Open AI", ""), ("../x", ""), ("a/b", "")]
)
def test_only_a_plain_word_is_an_owner(tmp_path: Path, organization: str, owner: str) -> None:
    path = TinyGguf(metadata=(string_entry("general.organization", organization),)).write(tmp_path / "a.gguf")
    assert model_owner(read_header(path)) == owner


def test_a_name_of_another_program_is_one_short_visible_word() -> None:
    assert plain_name("My model/with: parts") == "My-model-with-parts"
    assert plain_name("\u202e\u200bname\n") == "name"
    assert plain_name("n" * 300) == "n" * 80
    assert plain_name(os.fsdecode(b"a\xffb")) == "a\ufffdb"
    assert plain_name("\u200b") == ""


def test_an_owner_of_another_program_is_one_plain_word_or_nobody() -> None:
    assert plain_owner("lmstudio-community") == "lmstudio-community"
    assert plain_owner("two words") == plain_owner("../up") == plain_owner("") == plain_owner("x" * 65) == ""


def test_the_format_at_the_end_of_a_name_is_left_out() -> None:
    assert [without_format(name) for name in ("A-GGUF", "a_gguf", "a.gguf", "gguf", "-gguf", "a-4bit")] == [
        "A",
        "a",
        "a",
        "gguf",
        "-gguf",
        "a-4bit",
    ]
