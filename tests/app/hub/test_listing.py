"""What huggingface_hub says, as our own values: whatever strangers wrote into it."""

from __future__ import annotations

import pytest
from huggingface_hub.hf_api import ModelInfo

from app.hub.listing import commit_of, files_of, importance_matrix_of, parameter_types, summary_of
from tests.helpers.hub_files import HOSTILE_NAMES

COMMIT = "a" * 40
LFS = {"sha256": "b" * 64, "size": 5, "pointerSize": 130}


def info(**facts: object) -> ModelInfo:
    return ModelInfo(**{"id": "ann/Tiny-GGUF", **facts})


def sibling(path: str, size: int = 5, **more: object) -> dict[str, object]:
    return {"rfilename": path, "size": size, "blobId": "c" * 40, **more}


def test_a_repo_is_described():
    found = summary_of(
        info(
            downloads=7,
            likes=3,
            lastModified="2025-03-01T09:30:00.000Z",
            gated="manual",
            tags=[
                "gguf",
                "license:apache-2.0",
                "base_model:ann/Base",
                "base_model:quantized:ann/Base",
                "base_model:finetune:bob/Older",
            ],
            gguf={"total": 8_030_261_248, "architecture": "llama", "context_length": 131_072},
        )
    )
    assert (found.repo, found.owner, found.name) == ("ann/Tiny-GGUF", "ann", "Tiny-GGUF")
    assert (found.downloads, found.likes, found.gated) == (7, 3, "manual")
    assert found.updated == "2025-03-01T09:30:00+00:00"
    assert found.licence == "apache-2.0"
    assert found.parameters_count == 8_030_261_248
    assert (found.context_tokens, found.architecture) == (131_072, "llama")
    assert found.formats == ("gguf",)
    assert found.base_models == ("ann/Base", "bob/Older")


def test_the_card_names_a_licence_that_the_tags_call_other():
    data = {"license": "other", "license_name": "gemma-terms"}
    assert summary_of(info(tags=["license:other"], cardData=data)).licence == "gemma-terms"
    assert summary_of(info(tags=["license:other"])).licence == "other"
    assert summary_of(info(tags=["license:mit"], cardData={"license": ["a", "b"]})).licence == "mit"


def test_a_safetensors_repo_is_described():
    found = summary_of(info(tags=["safetensors"], safetensors={"parameters": {"BF16": 100}, "total": 100}))
    assert (found.formats, found.parameters_count) == (("safetensors",), 100)
    assert parameter_types(info(safetensors={"parameters": {"BF16": 100, "F32": 4, "X": -1}, "total": 104})) == {
        "BF16": 100,
        "F32": 4,
    }
    assert parameter_types(info()) == {}


@pytest.mark.parametrize("name", ["gpt2", "../x", "a/b/c", "a/<img src=x>", "a/b\u202e", "", "a/" + "b" * 200, 5])
def test_a_repo_without_a_name_of_its_kind_is_left_out(name):
    assert summary_of(info(id=name)) is None


@pytest.mark.parametrize("odd", [-1, 0, True, 1.5, "7", None, 2**60, [], {}])
def test_odd_counts_count_nothing(odd):
    found = summary_of(info(downloads=odd, likes=odd, gguf={"total": odd, "context_length": odd, "architecture": odd}))
    assert (found.downloads, found.likes, found.parameters_count, found.context_tokens) == (0, 0, None, None)


@pytest.mark.parametrize("tags", [None, "gguf", {"gguf": 1}, [5, None, ["x"]], ["x" * 5000]])
def test_odd_tags_are_no_tags(tags):
    assert summary_of(info(tags=tags)).tags == ()


def test_tags_are_bounded_and_made_one_line():
    found = summary_of(info(tags=["a\nb\u202ec", *map(str, range(1000))]))
    assert found.tags[0] == "a b c"
    assert len(found.tags) == 300


@pytest.mark.parametrize(
    ("gated", "wanted"),
    [(False, False), (None, False), ("auto", "auto"), ("manual", "manual"), (True, True), ("x", True)],
)
def test_the_gate_is_one_of_three(gated, wanted):
    assert summary_of(info(gated=gated)).gated == wanted


def test_files_have_their_hashes_and_sizes():
    siblings = info(siblings=[sibling("m.gguf", lfs=LFS), sibling("config.json")]).siblings
    (model, config), refused = files_of(siblings, "https://h", "ann/Tiny-GGUF", COMMIT)
    assert (model.path, model.size_bytes, model.sha256, model.etag) == ("m.gguf", 5, "b" * 64, "b" * 64)
    assert (config.sha256, config.etag) == ("", "c" * 40)
    assert (model.endpoint, model.repo, model.revision) == ("https://h", "ann/Tiny-GGUF", COMMIT)
    assert refused == 0


def test_hostile_names_and_twins_are_left_out_and_counted():
    siblings = info(siblings=[sibling("m.gguf"), *map(sibling, HOSTILE_NAMES)]).siblings
    files, refused = files_of(siblings, "https://h", "a/b", COMMIT)
    assert [file.path for file in files] == [
        "m.gguf",
        "café.gguf",
        "Twin.gguf",
        "-rf.gguf",
        "~/home.gguf",
        "$HOME/%TEMP%.gguf",
    ]
    assert refused == len(HOSTILE_NAMES) - 5


@pytest.mark.parametrize("size", [None, -5, "5", 2**60])
def test_odd_sizes_are_nothing_or_refused(size):
    files, refused = files_of(info(siblings=[sibling("m.gguf", size)]).siblings, "https://h", "a/b", COMMIT)
    assert [file.size_bytes for file in files] + [0] * refused == [0]


@pytest.mark.parametrize("digest", ["", "x" * 64, "b" * 63, None, 5, "B" * 64])
def test_only_a_hash_is_a_hash(digest):
    lfs = {"sha256": digest, "size": 5, "pointerSize": 1}
    (file,), _refused = files_of(info(siblings=[sibling("m.gguf", lfs=lfs)]).siblings, "h", "a/b", COMMIT)
    assert file.sha256 == ("b" * 64 if digest == "B" * 64 else "")


def test_a_repo_of_a_million_files_is_bounded():
    siblings = info(siblings=[{"rfilename": f"{number}.gguf"} for number in range(10_050)]).siblings
    files, refused = files_of(siblings, "h", "a/b", COMMIT)
    assert (len(files), refused) == (10_000, 50)


@pytest.mark.parametrize(
    ("facts", "paths", "wanted"),
    [
        ({"gguf": {"quantize_imatrix_file": "/x/m.dat"}}, [], True),
        ({"tags": ["imatrix"]}, [], True),
        ({"id": "mradermacher/Tiny-i1-GGUF"}, [], True),
        ({}, ["Tiny.imatrix"], True),
        ({}, ["Tiny-Q4_K_M.gguf"], None),
        ({"gguf": {"total": 5}}, [], None),
    ],
)
def test_an_importance_matrix_is_known_or_not(facts, paths, wanted):
    assert importance_matrix_of(info(**facts), paths) is wanted


def test_only_a_commit_is_a_commit():
    assert commit_of(info(sha=COMMIT)) == COMMIT
    assert commit_of(info(sha="main")) == ""
    assert commit_of(info()) == ""
