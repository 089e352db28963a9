"""The Hugging Face cache: each blob once, from the right snapshot, and never a file from outside."""

from __future__ import annotations

import os
from pathlib import Path

from app.models.source_candidate import Candidate
from app.models.source_huggingface import hub_candidates, is_hub_folder
from app.models.source_search import Search
from tests.helpers.model_folders import (
    hub_repository,
    model_bytes,
    projector_bytes,
    safetensors_files,
    sharded_files,
    write,
)


def _found(hub: Path, search: Search | None = None) -> list[Candidate]:
    return list(hub_candidates(search or Search(hub, "huggingface"), hub))


def test_a_publication_is_known_by_its_name_and_folders() -> None:
    assert is_hub_folder("models--someone--m", {"snapshots", "refs", "blobs"})
    assert not is_hub_folder("datasets--someone--m", {"snapshots"})
    assert not is_hub_folder("models--someone--m", {"notes"})


def test_a_gguf_is_listed_where_its_snapshot_has_it_with_owner_and_name(tmp_path: Path) -> None:
    files = {"Llama-3-Q4_K_M.gguf": model_bytes("a"), "README.md": b"words"}
    folder = hub_repository(tmp_path, "someone/Llama-3-GGUF", {"abc": files}, main="abc")

    [found] = _found(tmp_path)
    assert found.path == folder / "snapshots" / "abc" / "Llama-3-Q4_K_M.gguf"
    assert (found.owner, found.name, found.origin, found.fault) == ("someone", "Llama-3", "huggingface", "")


def test_a_repository_without_an_owner_has_none(tmp_path: Path) -> None:
    hub_repository(tmp_path, "gpt2", {"abc": {"gpt2-Q4_0.gguf": model_bytes()}}, main="abc")
    [found] = _found(tmp_path)
    assert (found.owner, found.name) == ("", "gpt2")


def test_a_blob_that_two_snapshots_hold_is_listed_once_and_from_main(tmp_path: Path) -> None:
    data = model_bytes("a")
    snapshots = {"new": {"m-Q4_0.gguf": data}, "old": {"m-Q4_0.gguf": data}}
    folder = hub_repository(tmp_path, "o/m", snapshots, main="old")

    [found] = _found(tmp_path)
    assert found.path.parent == folder / "snapshots" / "old"


def test_without_a_main_the_newest_snapshot_counts(tmp_path: Path) -> None:
    snapshots = {name: {"m-Q4_0.gguf": model_bytes(name)} for name in ("aaa", "zzz")}
    folder = hub_repository(tmp_path, "o/m", snapshots)
    os.utime(folder / "snapshots" / "zzz", (1, 1))

    [found] = _found(tmp_path)
    assert found.path.parent.name == "aaa"


def test_a_quantization_that_only_an_older_snapshot_has_is_listed_too(tmp_path: Path) -> None:
    snapshots = {"new": {"m-Q4_0.gguf": model_bytes("4")}, "old": {"m-Q8_0.gguf": model_bytes("8")}}
    hub_repository(tmp_path, "o/m", snapshots, main="new")
    assert [found.path.name for found in _found(tmp_path)] == ["m-Q4_0.gguf", "m-Q8_0.gguf"]


def test_split_sets_in_folders_and_projectors_are_put_together(tmp_path: Path) -> None:
    files = {f"Q8_0/m-Q8_0-{number:05d}-of-00002.gguf": model_bytes(str(number)) for number in (1, 2)}
    files |= {"m-Q4_0.gguf": model_bytes("4"), "mmproj-F16.gguf": projector_bytes()}
    folder = hub_repository(tmp_path, "o/m-GGUF", {"abc": files}, main="abc")

    small, big = sorted(_found(tmp_path), key=lambda found: len(found.parts))
    snapshot = folder / "snapshots" / "abc"
    assert small.path == snapshot / "m-Q4_0.gguf"
    assert [part.name for part in big.parts] == ["m-Q8_0-00001-of-00002.gguf", "m-Q8_0-00002-of-00002.gguf"]
    assert {small.projector, big.projector} == {snapshot / "mmproj-F16.gguf"}
    assert {small.name, big.name} == {"m"}


def test_a_publication_of_safetensors_is_one_model(tmp_path: Path) -> None:
    folder = hub_repository(tmp_path, "o/m", {"abc": sharded_files()}, main="abc")

    [found] = _found(tmp_path)
    assert (found.path, found.format) == (folder / "snapshots" / "abc", "safetensors")
    assert [part.name for part in found.parts] == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    assert (found.owner, found.name) == ("o", "m")


def test_the_models_of_a_picture_pipeline_are_no_models(tmp_path: Path) -> None:
    files = {f"text_encoder/{name}": data for name, data in safetensors_files().items()}
    hub_repository(tmp_path, "o/pictures", {"abc": files | {"model_index.json": b"{}"}}, main="abc")
    assert _found(tmp_path) == []


def test_links_out_of_the_cache_and_broken_ones_are_faults(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    outside = write(tmp_path / "secret.gguf", model_bytes())
    snapshot = hub_repository(hub, "o/m", {"abc": {"README.md": b""}}, main="abc") / "snapshots" / "abc"
    (snapshot / "evil-Q4_0.gguf").symlink_to(outside)
    (snapshot / "gone-Q4_0.gguf").symlink_to("../../blobs/0000")

    evil, gone = _found(hub)
    assert evil.fault.startswith(f"This link leads out of the folder, to {outside}.")
    assert gone.fault == "This link leads to a file that is not there."
    assert evil.stamp() == gone.stamp() == ""


def test_an_unfinished_download_of_a_gguf_is_listed_with_its_fault(tmp_path: Path) -> None:
    folder = hub_repository(tmp_path, "o/m-GGUF", {"abc": {"README.md": b"x"}}, main="abc")
    write(folder / "blobs" / "11.incomplete", b"GGUF" + bytes(100))
    write(folder / "blobs" / "22.incomplete", b"GGUF" + bytes(200))
    write(folder / "blobs" / "33.incomplete", b'{"tokenizer"' + bytes(900))
    write(folder / "blobs" / "44.incomplete", b"")

    [found] = _found(tmp_path)
    assert found.path.name == "22.incomplete"
    assert (found.owner, found.name) == ("o", "m")
    assert found.fault == "The download of this model was not finished. Finish it in the program that began it."


def test_a_cache_without_links_as_on_windows_is_read_too(tmp_path: Path) -> None:
    write(tmp_path / "models--o--m" / "snapshots" / "abc" / "m-Q4_0.gguf", model_bytes())
    (tmp_path / "models--o--empty" / "snapshots").mkdir(parents=True)
    (tmp_path / "models--o--bare").mkdir()
    write(tmp_path / "version.txt", b"1")

    search = Search(tmp_path, "huggingface")
    assert [found.path.name for found in _found(tmp_path, search)] == ["m-Q4_0.gguf"]
    assert search.problems() == []
