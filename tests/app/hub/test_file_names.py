"""What a file's name in a repo says, however its publisher writes."""

from __future__ import annotations

import pytest

from app.hub.file_names import known_quantization, model_file, quantization_in
from tests.helpers.hub_files import HOSTILE_NAMES


@pytest.mark.parametrize(
    ("path", "quantization", "model"),
    [
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL", "Qwen3-8B"),
        ("gemma-1.1-2b-it.Q4_K_M.gguf", "Q4_K_M", "gemma-1.1-2b-it"),
        ("SmolLM2-1.7B-Instruct_Q4_K_M.gguf", "Q4_K_M", "SmolLM2-1.7B-Instruct"),
        ("qwen2.5-0.5b-instruct-q8_0.gguf", "Q8_0", "qwen2.5-0.5b-instruct"),
        ("qwen2.5-0.5b-instruct-fp16.gguf", "F16", "qwen2.5-0.5b-instruct"),
        ("Model-BF16.gguf", "BF16", "Model"),
        ("Model.i1-IQ3_XXS.gguf", "IQ3_XXS", "Model"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4", "gpt-oss-20b"),
        ("Model-Q4_0_4_8.gguf", "Q4_0_4_8", "Model"),
        ("Model-Q6_K_L.gguf", "Q6_K_L", "Model"),
        ("Q4_K_M.gguf", "Q4_K_M", ""),
        ("model-Q4_K_M.GGUF", "Q4_K_M", "model"),
        ("model-Q4_K_M-imat.gguf", "Q4_K_M", "model"),
        ("Q5_K_M-model-v2.gguf", "Q5_K_M", ""),
        ("model-q4_x_mine.gguf", "q4_x_mine", "model"),
        ("Phi-3-mini-4k-instruct-q4.gguf", "q4", "Phi-3-mini-4k-instruct"),
        ("gemma-7b.gguf", "", "gemma-7b"),
        ("Mistral-7B-v0.3.gguf", "", "Mistral-7B-v0.3"),
        ("Q8_0/model.gguf", "Q8_0", "model"),
        ("Model-IQ2_M/part.gguf", "IQ2_M", "part"),
        ("my-lora-merged-Q4_K_M.gguf", "Q4_K_M", "my-lora-merged"),
    ],
)
def test_a_models_name_and_quantization_are_read(path, quantization, model):
    found = model_file(path)
    assert (found.role, found.quantization, found.model) == ("model", quantization, model)
    assert (found.part, found.num_parts) == (1, 1)


def test_the_parts_of_a_set_belong_together():
    parts = [model_file(f"Q8_0/Big-Q8_0-{part:05d}-of-00003.gguf") for part in (1, 2, 3)]
    assert len({part.set_key for part in parts}) == 1
    assert [(part.part, part.num_parts) for part in parts] == [(1, 3), (2, 3), (3, 3)]
    assert {(part.quantization, part.model) for part in parts} == {("Q8_0", "Big")}
    assert model_file("Big-Q8_0-00001-of-00003.gguf").set_key != parts[0].set_key  # in another folder
    assert model_file("Q8_0/Big-Q8_0-00001-of-00004.gguf").set_key != parts[0].set_key


def test_one_part_of_one_is_no_set():
    found = model_file("Model-Q4_K_M-00001-of-00001.gguf")
    assert (found.num_parts, found.quantization) == (1, "Q4_K_M")


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("mmproj-model-f16.gguf", "projector"),
        ("gemma-3-4b-it.BF16-mmproj.gguf", "projector"),
        ("imatrix_unsloth.gguf", "other"),
        ("Model.imatrix.gguf", "other"),
        ("imatrix_unsloth.dat", "other"),
        ("Model-LoRA-f16.gguf", "other"),
        ("adapter.gguf", "other"),
        ("ggml-vocab-llama.gguf", "other"),
        ("README.md", "other"),
        ("model.safetensors", "other"),
        ("pytorch_model.bin", "other"),
        ("Model.Q6_K.gguf.part1of2", "pieces"),
        ("Model-Q6_K.gguf-split-a", "pieces"),
        ("Model-Q6_K.gguf.aa", "pieces"),
        ("Model.gguf.00", "pieces"),
        ("Model.gguf.md", "other"),
        ("Model.gguf.sha256", "other"),
    ],
)
def test_helpers_are_told_from_models(path, role):
    assert model_file(path).role == role


def test_pieces_of_one_file_belong_together():
    names = ("Model.Q6_K.gguf.part1of2", "Model.Q6_K.gguf.part2of2")
    assert {(found.set_key, found.quantization) for found in map(model_file, names)} == {("/Model.Q6_K", "Q6_K")}


@pytest.mark.parametrize("path", [*HOSTILE_NAMES, "-" * 300 + ".gguf", "." * 300 + ".gguf", "Q4_K_M" * 50 + ".gguf"])
def test_odd_names_break_nothing(path):
    found = model_file(path)
    assert found.role in ("model", "projector", "other", "pieces")
    assert found.num_parts >= 1


def test_a_name_without_a_quantization_is_a_name():
    assert quantization_in("Llama-3-8B") == ("", "Llama-3-8B")
    assert quantization_in("") == ("", "")


def test_only_known_quantizations_have_a_usual_spelling():
    assert known_quantization("q4_k_m") == "Q4_K_M"
    assert known_quantization("awq-int4") == "AWQ-int4"
    assert known_quantization("nonsense") == ""
