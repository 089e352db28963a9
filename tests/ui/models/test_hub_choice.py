"""What belongs together: rows, downloads, models that are here, projectors, figures, what is recommended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from app.downloads.types import DownloadState
from app.hub.types import RepoReference
from tests.helpers import hub_values
from tests.helpers.hub_values import GIB, LLAMA, MACHINE, detail, download, file, fits, llama_3, row, summary
from tests.helpers.model_entries import entry
from ui.models.hub_choice import (
    download_title,
    downloads_by_row,
    entries_here,
    files_of,
    may_fit,
    projector_of,
    published_figures,
    recommendation,
    repos_here,
    row_of_reference,
    usual_key,
)


def here(found, **fields):
    made = entry(found.key, found.quantization, 4.9, path=Path(f"/m/{found.files[0].path.rpartition('/')[2]}"))
    return replace(made, **{"size_bytes": found.size_bytes, **fields})


# -------------------------------------------------------------------------------------- files of a row


def test_the_usual_projector_goes_along_unless_it_is_not_wanted():
    repo = hub_values.large_repo()
    projector = projector_of(repo)
    assert projector.path == "mmproj-F16.gguf"
    found = repo.row("BF16")
    assert files_of(repo, found, True) == (*found.files, projector)
    assert files_of(repo, found, False) == found.files
    other = msgspec.structs.replace(found, format="safetensors")
    assert files_of(repo, other, True) == found.files
    assert projector_of(detail()) is None


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("mmproj-BF16.gguf", "mmproj-F32.gguf"), "mmproj-BF16.gguf"),
        (("mmproj-model-f32.gguf", "mmproj-Q8_0.gguf"), "mmproj-Q8_0.gguf"),
        (("b.mmproj.gguf", "a.mmproj.gguf"), "a.mmproj.gguf"),
    ],
)
def test_of_several_projectors_the_one_that_nearly_every_program_takes(names, taken):
    repo = detail(projectors=tuple(file(LLAMA, name, GIB) for name in names))
    assert projector_of(repo).path == taken


def test_a_download_is_called_as_the_command_line_takes_it():
    repo = detail()
    assert download_title(repo, repo.rows[2]) == f"{LLAMA}:Q4_K_M"


# -------------------------------------------------------------------------------------- what is on its way


def test_downloads_are_found_by_their_first_file():
    state = DownloadState
    rows = detail().rows
    gone = download(state.CANCELLED, "Q8_0", 0.0)
    kept = download(state.CANCELLED, "Q6_K", 0.5)
    other = download(state.RUNNING, "Q2_K", repo="somebody/else")
    leftover = download(state.PAUSED, "F16", is_leftover=True)
    older, newer = download(state.FAILED), download(state.RUNNING, download_id="newer")
    found = downloads_by_row(rows, [older, newer, gone, kept, other, leftover])
    assert found == {"Q4_K_M": newer, "Q6_K": kept}


# -------------------------------------------------------------------------------------- what is here


def test_the_same_bytes_or_the_same_name_and_size_are_here():
    rows = detail().rows
    by_hash = here(rows[0], path=Path("/ollama/blobs/sha256-1"), identity=f"sha256:{rows[0].files[0].sha256}")
    by_name = here(rows[2], identity="provisional:x")
    wrong_size = here(rows[3], size_bytes=rows[3].size_bytes - 1)
    faulty = here(rows[4], fault="Gone.")
    found = entries_here(rows, [by_hash, by_name, wrong_size, faulty])
    assert found == {"Q2_K": by_hash.key, "Q4_K_M": by_name.key}


def test_a_set_is_here_only_as_a_whole():
    found = row(LLAMA, "Q8_0", 8.5, parts=3)
    first = entry("x", "Q8_0", path=Path(f"/m/{found.files[0].path.rpartition('/')[2]}"))
    part = replace(first, size_bytes=found.files[0].size_bytes, identity=f"sha256:{found.files[0].sha256}")
    whole = replace(part, size_bytes=found.size_bytes)
    assert entries_here([found], [part]) == {}
    assert entries_here([found], [whole]) == {"Q8_0": whole.key}


def test_repos_are_known_by_the_folders_of_the_hub_cache():
    folder = Path("/cache/models--bartowski--Llama-3--8B/snapshots/abc/x.gguf")
    entries = [entry("a", "Q4_0", path=folder), entry("b", "Q4_0", path=Path("/m/models--odd/x.gguf")), entry("c", "")]
    assert repos_here(entries) == {"bartowski/Llama-3--8B"}


# -------------------------------------------------------------------------------------- figures and advice


def test_figures_are_for_the_very_model_that_was_measured():
    figures = published_figures(llama_3())
    assert {"Q2_K", "Q4_K_M", "Q8_0"} <= set(figures)
    assert figures["Q4_K_M"].kl_mean == pytest.approx(0.02815)
    assert published_figures(detail()) == {}


def test_nothing_is_recommended_before_every_row_is_known():
    repo = detail(is_read=False)
    known = fits(detail())
    assert recommendation(repo.rows, {}).key == ""
    assert recommendation(repo.rows, {"Q4_K_M": known["Q4_K_M"]}).key == ""
    chosen = recommendation(repo.rows, known)
    assert chosen.key == "Q5_K_M"
    assert chosen.reason
    failed = [msgspec.structs.replace(one, state="failed") for one in repo.rows]
    assert recommendation(failed, {"Q4_K_M": known["Q4_K_M"]}).key == "Q4_K_M"


def test_to_begin_with_the_row_that_most_people_take_is_chosen():
    assert usual_key(detail(is_read=False).rows) == "Q4_K_M"
    broken = [msgspec.structs.replace(one, is_broken=True) for one in detail().rows]
    assert usual_key(broken) == usual_key([]) == ""


def test_only_what_cannot_fit_in_few_bits_is_kept_out_of_a_search():
    assert may_fit(summary(), MACHINE)
    assert not may_fit(summary(parameters_count=70_553_706_560), MACHINE)
    assert may_fit(summary(parameters_count=None), MACHINE)
    assert may_fit(summary(parameters_count=70_553_706_560), None)


# -------------------------------------------------------------------------------------- addresses


def test_an_address_names_a_row_by_quantization_or_by_file():
    repo = hub_values.large_repo()
    assert row_of_reference(repo, RepoReference(repo=LLAMA, quantization="q8_0")) == "Q8_0"
    assert row_of_reference(repo, RepoReference(repo=LLAMA, quantization="Q1_Z")) == ""
    part = repo.row("BF16").files[1].path
    assert row_of_reference(repo, RepoReference(repo=LLAMA, path=part, is_file=True)) == "BF16"
    assert row_of_reference(repo, RepoReference(repo=LLAMA, path="README.md", is_file=True)) == ""
    assert row_of_reference(repo, RepoReference(repo=LLAMA)) == ""
