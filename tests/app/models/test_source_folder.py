"""Any folder: every depth, caches inside it, links, odd names and limits."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from app.models.scan_messages import ScanLimits
from app.models.source_candidate import Candidate
from app.models.source_folder import folder_candidates
from app.models.source_search import Search, SearchLimitError
from tests.helpers.model_folders import (
    hub_repository,
    model_bytes,
    ollama_model,
    safetensors_files,
    write,
    write_files,
    write_split,
)


def _found(folder: Path, search: Search | None = None, **more: bool) -> list[Candidate]:
    return list(folder_candidates(search or Search(folder, "added"), folder, **more))


def _names(candidates: list[Candidate], folder: Path) -> list[str]:
    return sorted(candidate.path.relative_to(folder).as_posix() for candidate in candidates)


def test_models_are_found_at_every_depth_and_hidden_folders_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.gguf", "x/b.GGUF", "x/y/z/c.gguf", ".hidden/d.gguf", "x/.e.gguf", "x/node_modules/f.gguf", "g.txt"):
        write(tmp_path / name, model_bytes())
    write_split(tmp_path / "x", "big", 2)
    write_files(tmp_path / "llama", safetensors_files())

    assert _names(_found(tmp_path), tmp_path) == [
        "a.gguf",
        "llama",
        "x/b.GGUF",
        "x/big-00001-of-00002.gguf",
        "x/y/z/c.gguf",
    ]


def test_a_root_may_be_hidden_itself(tmp_path: Path) -> None:
    write(tmp_path / ".models" / "a.gguf", model_bytes())
    assert len(_found(tmp_path / ".models")) == 1


def test_where_models_lie_by_publisher_the_folders_name_them(tmp_path: Path) -> None:
    write(tmp_path / "someone" / "Llama-3-GGUF" / "llama-3-Q4_0.gguf", model_bytes())
    write(tmp_path / "loose.gguf", model_bytes())
    write_files(tmp_path / "mlx" / "Small-4bit", safetensors_files())

    found = {model.path.name: (model.owner, model.name) for model in _found(tmp_path, is_by_publisher=True)}
    assert found == {
        "llama-3-Q4_0.gguf": ("someone", "Llama-3"),
        "loose.gguf": ("", ""),
        "Small-4bit": ("mlx", "Small-4bit"),
    }


def test_the_caches_of_other_programs_are_understood_where_they_are_met(tmp_path: Path) -> None:
    hub_repository(tmp_path / "hub", "o/m", {"abc": {"m-Q4_0.gguf": model_bytes("m")}}, main="abc")
    ollama_model(tmp_path / "ollama", "registry.ollama.ai/library/n/1b", model_bytes("n"))

    assert {(model.owner, model.name) for model in _found(tmp_path)} == {("o", "m"), ("", "n:1b")}


def test_links_to_folders_are_followed_inside_and_noted_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root / "real" / "a.gguf", model_bytes())
    write(outside / "b.gguf", model_bytes())
    (root / "again").symlink_to(root / "real")
    (root / "away").symlink_to(outside)
    (root / "real" / "up").symlink_to(root)
    (root / "self").symlink_to(root / "self")

    search = Search(root, "added")
    assert _names(_found(root, search), root) == ["real/a.gguf"]
    assert search.problems() == [
        f"The link {root / 'away'} leads out of its folder and was not followed. Add the folder that it leads to."
    ]
    both = Search(root, "added", (str(root), str(outside)))
    assert _names(_found(root, both), root) == ["away/b.gguf", "real/a.gguf"]
    assert both.problems() == []


def test_what_is_no_file_is_listed_and_a_folder_that_is_called_one_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder.gguf").mkdir(parents=True)
    write(root / "full.gguf" / "inner.gguf", model_bytes())
    os.mkfifo(root / "fifo.gguf")
    (root / "zero.gguf").symlink_to("/dev/zero")
    (root / "gone.gguf").symlink_to(tmp_path / "root" / "nowhere")
    (root / "outside.gguf").symlink_to(tmp_path)

    faults = {model.path.name: model.fault for model in _found(root)}
    out = "This link leads out of the folder, to {}. Add that folder or import the file from there."
    assert faults == {
        "folder.gguf": "This is a folder, not a model file.",
        "inner.gguf": "",
        "fifo.gguf": "",  # its header says so
        "zero.gguf": out.format("/dev/zero"),
        "gone.gguf": "This link leads to a file that is not there.",
        "outside.gguf": out.format(tmp_path),
    }


def test_odd_names_are_found_as_they_are(tmp_path: Path) -> None:
    names = [
        unicodedata.normalize("NFC", "é.gguf"),
        unicodedata.normalize("NFD", "é.gguf"),
        "\u202egnp.gguf",
        "two\nlines.gguf",
        "<img src=x><b>.gguf",
        "n" * 250 + ".gguf",
        os.fsdecode(b"\xff\xfe.gguf"),
    ]
    for name in names:
        write(tmp_path / name, model_bytes())
    assert {model.path.name for model in _found(tmp_path)} == set(names)


def test_the_walk_ends_at_its_depth_and_at_its_number_of_models(tmp_path: Path) -> None:
    for depth in range(5):
        write(tmp_path.joinpath(*["d"] * depth, f"{depth}.gguf"), model_bytes())

    assert len(_found(tmp_path, Search(tmp_path, "added", limits=ScanLimits(depth=2)))) == 3
    search = Search(tmp_path, "added", limits=ScanLimits(models=2))
    with pytest.raises(SearchLimitError):
        _found(tmp_path, search)
    assert search.problems() == [f"The folder {tmp_path} holds more models than Cutaway lists."]


def test_barred_folders_are_not_entered(tmp_path: Path) -> None:
    write(tmp_path / "nas" / "a.gguf", model_bytes())
    search = Search(tmp_path, "added", barred=frozenset({str(tmp_path / "nas")}))
    assert _found(tmp_path, search) == []


def test_the_weights_of_pictures_are_no_models(tmp_path: Path) -> None:
    write(tmp_path / "diffusion" / "model_index.json", b"{}")
    write_files(tmp_path / "diffusion" / "text_encoder", safetensors_files())
    write(tmp_path / "checkpoints" / "pictures.safetensors", b"x")
    assert _found(tmp_path) == []


def test_a_shard_that_is_a_link_out_of_the_folder_is_not_counted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_files(root / "llama", safetensors_files())
    outside = write(tmp_path / "outside.safetensors", b"x")
    (root / "llama" / "model.safetensors").unlink()
    (root / "llama" / "model.safetensors").symlink_to(outside)
    assert _found(root) == []
