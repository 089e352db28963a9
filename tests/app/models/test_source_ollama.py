"""Ollama's manifests: tags, digests, projectors, and what is missing or makes no sense."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from app.models.source_candidate import Candidate
from app.models.source_ollama import is_ollama_folder, ollama_candidates
from app.models.source_search import Search
from tests.helpers.model_folders import model_bytes, ollama_model, projector_bytes, write

LIBRARY = "registry.ollama.ai/library"


def _found(folder: Path, search: Search | None = None) -> list[Candidate]:
    return list(ollama_candidates(search or Search(folder, "ollama"), folder))


def _blob(folder: Path, data: bytes) -> Path:
    return folder / "blobs" / f"sha256-{hashlib.sha256(data).hexdigest()}"


def test_the_folder_is_known_by_what_is_in_it() -> None:
    assert is_ollama_folder({"manifests", "blobs"})
    assert not is_ollama_folder({"blobs", "snapshots"})


def test_a_tag_is_a_model_whose_digest_is_known(tmp_path: Path) -> None:
    data = model_bytes("llama")
    ollama_model(tmp_path, f"{LIBRARY}/llama3.2/3b", data, kinds={"params": b"{}", "template": b"{{ .Prompt }}"})

    [found] = _found(tmp_path)
    assert found.path == _blob(tmp_path, data)
    assert (found.name, found.owner, found.fault) == ("llama3.2:3b", "", "")
    assert found.sha256 == hashlib.sha256(data).hexdigest()
    assert found.parts == (found.path,)


@pytest.mark.parametrize(
    ("manifest", "name", "owner"),
    [
        ("registry.ollama.ai/someone/tuned/v1", "tuned:v1", "someone"),
        ("hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF/Q4_K_M", "Llama-3.2-1B-Instruct-GGUF:Q4_K_M", "bartowski"),
        ("localhost:5000/a/b/m/latest", "m:latest", "b"),
        ("example.org/m/latest", "m:latest", ""),
    ],
)
def test_other_hosts_and_people_give_the_owner(tmp_path: Path, manifest: str, name: str, owner: str) -> None:
    ollama_model(tmp_path, manifest, model_bytes())
    [found] = _found(tmp_path)
    assert (found.name, found.owner) == (name, owner)


def test_a_blob_with_two_tags_is_listed_once_by_the_one_that_says_more(tmp_path: Path) -> None:
    data = model_bytes()
    for tag in ("latest", "8b-instruct", "8b"):
        ollama_model(tmp_path, f"{LIBRARY}/llama3.1/{tag}", data)
    assert [found.name for found in _found(tmp_path)] == ["llama3.1:8b"]


def test_the_projector_layer_goes_with_the_model(tmp_path: Path) -> None:
    eyes = projector_bytes()
    ollama_model(tmp_path, f"{LIBRARY}/llava/7b", model_bytes(), kinds={"projector": eyes})
    [found] = _found(tmp_path)
    assert found.projector == _blob(tmp_path, eyes)


def test_a_missing_blob_says_how_to_get_it_again(tmp_path: Path) -> None:
    ollama_model(tmp_path, "registry.ollama.ai/someone/gone/1b", None)
    [found] = _found(tmp_path)
    assert found.fault == "Ollama's file of this model is not there. Run `ollama pull someone/gone:1b` to get it again."
    assert found.stamp() == ""


def test_a_blob_that_is_cut_short_is_a_fault(tmp_path: Path) -> None:
    data = model_bytes()
    ollama_model(tmp_path, f"{LIBRARY}/m/latest", data)
    _blob(tmp_path, data).write_bytes(data[:-1])

    [found] = _found(tmp_path)
    assert found.fault == (
        "The file does not have the size that Ollama's entry says. Run `ollama pull m:latest` again."
    )


def test_a_model_with_an_adapter_is_a_fault_and_its_plain_tag_is_not(tmp_path: Path) -> None:
    data = model_bytes()
    ollama_model(tmp_path, f"{LIBRARY}/a-tuned/1b", data, kinds={"adapter": b"GGUF"})
    assert _found(tmp_path)[0].fault == "Ollama uses this model with an adapter, which Cutaway cannot add."

    ollama_model(tmp_path, f"{LIBRARY}/plain/1b", data)
    assert [(found.name, found.fault) for found in _found(tmp_path)] == [("plain:1b", "")]


def test_a_model_in_pieces_is_a_fault_and_one_that_runs_elsewhere_is_nothing(tmp_path: Path) -> None:
    pieces = {"layers": [{"mediaType": "application/vnd.ollama.image.tensor; name=x", "digest": "sha256:00"}]}
    write(tmp_path / "manifests" / LIBRARY / "pieces" / "latest", json.dumps(pieces).encode())
    write(tmp_path / "manifests" / LIBRARY / "big" / "cloud", json.dumps({"layers": []}).encode())
    (tmp_path / "blobs").mkdir()

    [found] = _found(tmp_path)
    assert found.name == "pieces:latest"
    assert found.fault == "Ollama keeps this model in pieces of its own, which only Ollama can read."


@pytest.mark.parametrize(
    "digest",
    ["", "sha256:../../../secret", "sha256:" + "0" * 63, "md5:" + "0" * 64, "sha256:" + "g" * 64, "/etc/passwd"],
)
def test_a_digest_that_is_none_leads_nowhere(tmp_path: Path, digest: str) -> None:
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": 1}
    write(tmp_path / "manifests" / LIBRARY / "evil" / "latest", json.dumps({"layers": [layer]}).encode())

    [found] = _found(tmp_path)
    assert found.fault == "Ollama's entry for this model does not say where its file is."
    assert found.path == tmp_path / "manifests" / LIBRARY / "evil" / "latest"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"layers": 3}',
        b'{"layers": [3]}',
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"layers": [{"size": "x"}]}',
    ],
)
def test_manifests_without_sense_are_passed_over(tmp_path: Path, data: bytes) -> None:
    write(tmp_path / "manifests" / LIBRARY / "broken" / "latest", data)
    ollama_model(tmp_path, f"{LIBRARY}/good/1b", model_bytes())
    assert [found.name for found in _found(tmp_path)] == ["good:1b"]


def test_a_manifest_that_is_too_large_or_leads_outside_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    good = ollama_model(folder, f"{LIBRARY}/good/1b", model_bytes())
    outside = write(tmp_path / "outside", good.read_bytes())
    link = folder / "manifests" / LIBRARY / "linked" / "latest"
    link.parent.mkdir()
    link.symlink_to(outside)
    write(folder / "manifests" / LIBRARY / "large" / "latest", good.read_bytes() + b" " * 2**20)
    write(folder / "manifests" / LIBRARY / ".DS_Store", b"x")

    assert [found.name for found in _found(folder)] == ["good:1b"]


def test_a_blob_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    data = model_bytes()
    ollama_model(folder, f"{LIBRARY}/m/1b", data)
    outside = write(tmp_path / "outside.gguf", data)
    _blob(folder, data).unlink()
    _blob(folder, data).symlink_to(outside)

    [found] = _found(folder)
    assert found.fault.startswith("This link leads out of the folder")


def test_blobs_of_early_versions_have_a_colon_in_their_name(tmp_path: Path) -> None:
    data = model_bytes()
    ollama_model(tmp_path, f"{LIBRARY}/m/1b", data)
    old = tmp_path / "blobs" / f"sha256:{hashlib.sha256(data).hexdigest()}"
    _blob(tmp_path, data).rename(old)
    assert [found.path for found in _found(tmp_path)] == [old]


def test_a_folder_without_manifests_holds_nothing(tmp_path: Path) -> None:
    search = Search(tmp_path, "ollama")
    assert _found(tmp_path, search) == []
    assert search.problems() == []
