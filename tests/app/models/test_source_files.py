"""Files made into models by their names: split sets, projectors, safetensors, and what a person points at."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.source_files import candidate_at, gguf_candidates, is_model_file, is_projector, safetensors_candidate
from tests.helpers.model_folders import model_bytes, projector_bytes, safetensors_files, write, write_files, write_split

HERE = Path("models")


def _paths(*names: str) -> list[Path]:
    return [HERE / name for name in names]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("a.gguf", True),
        ("A.GGUF", True),
        ("a.gguf.part", False),
        ("incomplete-a.gguf", False),
        (".a.gguf", False),
        ("a.bin", False),
        ("gguf", False),
    ],
)
def test_a_model_file_is_known_by_its_ending(name: str, is_one: bool) -> None:
    assert is_model_file(name) is is_one


def test_a_projector_is_known_by_its_name() -> None:
    assert is_projector("mmproj-model-f16.gguf")
    assert is_projector("gemma-3-4b-it-MMPROJ-BF16.gguf")
    assert not is_projector("gemma-3-4b-it-Q4_K_M.gguf")


def test_the_parts_of_a_set_are_one_model() -> None:
    paths = _paths("big-00002-of-00003.gguf", "big-00001-of-00003.gguf", "big-00003-of-00003.gguf", "small.gguf")
    models, lone = gguf_candidates(paths, "added")

    assert [model.path.name for model in models] == ["big-00001-of-00003.gguf", "small.gguf"]
    assert [part.name for part in models[0].parts] == [f"big-{number:05d}-of-00003.gguf" for number in (1, 2, 3)]
    assert models[0].missing == models[1].missing == ""
    assert lone == 0


def test_a_set_with_a_missing_part_says_which() -> None:
    models, _lone = gguf_candidates(_paths("big-00001-of-00003.gguf", "big-00003-of-00003.gguf"), "added")
    assert [model.missing for model in models] == ["Part 2 of 3 is missing. Put it into the folder of the others."]

    models, _lone = gguf_candidates(_paths("big-00003-of-00003.gguf"), "added")
    assert models[0].path.name == "big-00003-of-00003.gguf"
    assert models[0].missing == ("2 of the 3 parts are missing, part 1 first. Put them into the folder of the others.")


def test_sets_of_different_lengths_are_different_models() -> None:
    models, _lone = gguf_candidates(_paths("a-00001-of-00001.gguf", "a-00001-of-00002.gguf"), "added")
    assert [len(model.missing) > 0 for model in models] == [False, True]


def test_every_quantization_of_one_model_gets_its_projector_and_the_best_one() -> None:
    paths = _paths("m-Q4_K_M.gguf", "m-Q8_0.gguf", "mmproj-F32.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf")
    models, lone = gguf_candidates(paths, "lm_studio")

    assert [model.path.name for model in models] == ["m-Q4_K_M.gguf", "m-Q8_0.gguf"]
    assert {model.projector for model in models} == {HERE / "mmproj-F16.gguf"}
    assert lone == 2


def test_among_several_models_a_projector_goes_to_the_one_it_names() -> None:
    paths = _paths(
        "gemma-3-4b-it-Q4_0.gguf", "qwen2-vl-2b-Q4_0.gguf", "mmproj-gemma-3-4b-it-f16.gguf", "mmproj-f16.gguf"
    )
    models, lone = gguf_candidates(paths, "added")

    assert [model.projector for model in models] == [HERE / "mmproj-gemma-3-4b-it-f16.gguf", None]
    assert lone == 1


def test_projectors_alone_are_no_models() -> None:
    assert gguf_candidates(_paths("mmproj-a.gguf", "mmproj-b.gguf"), "added") == ([], 2)


def test_a_publication_names_its_models_only_when_they_are_one() -> None:
    one, _lone = gguf_candidates(_paths("m-Q4_0.gguf", "m-Q8_0.gguf"), "lm_studio", owner="someone", name="The-M")
    two, _lone = gguf_candidates(_paths("m-Q4_0.gguf", "n-Q4_0.gguf"), "lm_studio", owner="someone", name="The-M")

    assert [(model.owner, model.name) for model in one] == [("someone", "The-M")] * 2
    assert [(model.owner, model.name) for model in two] == [("someone", "")] * 2


def test_a_folder_of_safetensors_is_one_model_with_what_it_needs() -> None:
    names = {"config.json", "model.safetensors", "tokenizer.json", "README.md", "holiday.jpg"}
    found = safetensors_candidate(HERE, names, "added")

    assert found is not None
    assert found.format == "safetensors"
    assert found.path == HERE
    assert [part.name for part in found.parts] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert found.fault == ""


@pytest.mark.parametrize(
    ("weights", "used"),
    [
        ({"model.safetensors", "consolidated.safetensors"}, {"model.safetensors"}),
        (
            {"model-00001-of-00001.safetensors", "model.safetensors.index.json", "consolidated.safetensors"},
            {"model-00001-of-00001.safetensors", "model.safetensors.index.json"},
        ),
        ({"model.safetensors.index.json", "a.safetensors"}, {"model.safetensors.index.json", "a.safetensors"}),
        ({"only.safetensors"}, {"only.safetensors"}),
    ],
)
def test_weights_that_a_folder_holds_twice_count_once(weights: set[str], used: set[str]) -> None:
    found = safetensors_candidate(HERE, {"config.json", *weights}, "added")
    assert found is not None
    assert {part.name for part in found.parts} == {"config.json", *used}


@pytest.mark.parametrize(
    "names",
    [
        {"model.safetensors"},  # nothing says what it is: weights of a picture's model
        {"config.json", "diffusion.safetensors", "model_index.json"},
        {"config.json", "tokenizer.json"},
        {"config.json", "training_args.bin"},
        set(),
    ],
)
def test_other_folders_are_no_models(names: set[str]) -> None:
    assert safetensors_candidate(HERE, names, "added") is None


def test_a_folder_of_pickles_says_why_it_is_not_opened() -> None:
    found = safetensors_candidate(HERE, {"config.json", "pytorch_model.bin"}, "added")
    assert found is not None
    assert found.fault.startswith("This folder holds its weights as pickles only")
    assert [part.name for part in found.parts] == ["config.json", "pytorch_model.bin"]


def test_an_adapter_says_that_it_is_one() -> None:
    found = safetensors_candidate(HERE, {"adapter_config.json", "adapter_model.safetensors"}, "added")
    assert found is not None
    assert found.fault == "This is an adapter (LoRA), a change to another model. It cannot be used alone."


def test_any_part_that_a_person_points_at_stands_for_its_set(tmp_path: Path) -> None:
    parts = write_split(tmp_path, "big", 3)
    for part in parts:
        found = candidate_at(part, "imported", name="N", owner="o")
        assert (found.path, found.parts, found.missing) == (parts[0], tuple(parts), "")
        assert (found.name, found.owner) == ("N", "o")


def test_a_file_that_a_person_points_at_brings_its_projector(tmp_path: Path) -> None:
    model = write(tmp_path / "m-Q4_0.gguf", model_bytes())
    projector = write(tmp_path / "mmproj-m-f16.gguf", projector_bytes())

    assert candidate_at(model, "imported").projector == projector
    assert candidate_at(projector, "imported").parts == (projector,)


def test_a_folder_that_a_person_points_at(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "llama", safetensors_files())
    assert candidate_at(folder, "imported").format == "safetensors"
    assert candidate_at(tmp_path, "imported").fault == (
        "This folder holds no model of safetensors. Choose the model file in it, or add the folder."
    )


def test_what_is_not_there_or_has_an_odd_name_is_a_candidate_too(tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.symlink_to(tmp_path / "nowhere")

    assert candidate_at(link, "imported").fault == "This link leads to a file that is not there."
    for name in ("gone.gguf", "a\0b.gguf", "x" * 300 + ".gguf", "", "model.bin"):
        path = tmp_path / name if name else Path("gone.gguf")
        assert candidate_at(path, "imported").path == path
