"""`cutaway models search`, `show` and `download` against a server that speaks the hub's protocol, from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli_hub import progress_line
from app.downloads.types import Download, DownloadState
from tests.helpers.command_line import environment, run_cutaway, text_of
from tests.helpers.gguf_files import named_model
from tests.helpers.hub_server import HubServer
from tests.helpers.shape_files import write_shape

MIB = 2**20


@pytest.fixture
def hub():
    with HubServer() as server:
        yield server


@pytest.fixture
def ask(hub, tmp_path):
    """Run a command of `models` that may ask the hub."""
    env = environment(HF_ENDPOINT=hub.endpoint, HF_HUB_CACHE=str(tmp_path / "hub"))

    def run(*arguments):
        return run_cutaway("models", *arguments, env=env)

    return run


@pytest.fixture
def tiny(hub, tmp_path):
    model = named_model("Tiny").write(tmp_path / "tiny.gguf").read_bytes()
    files = {"Tiny-Q8_0.gguf": model, "README.md": "# Tiny"}
    hub.tiny_repo = hub.add_repo("ann/Tiny-GGUF", files, card={"license": "mit"}, downloads=9)
    return model


def test_a_search_lists_what_the_hub_has(ask, tiny, hub):
    found = json.loads(ask("search", "tiny", "--json").stdout)
    assert [item["repo"] for item in found] == ["ann/Tiny-GGUF"]
    assert found[0]["licence"] == "mit"
    table = text_of(ask("search", "tiny").stdout)
    assert table.splitlines()[0].startswith("Repo")
    assert "ann/Tiny-GGUF" in table
    nothing = ask("search", "nothing-is-called-so")
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert "Nothing is called so." in text_of(nothing.stderr)


def test_a_repo_is_shown_with_what_fits_and_one_recommended_row(ask, hub, tmp_path):
    shape = write_shape("smollm2-135m", tmp_path)
    hub.add_repo("ann/Small-GGUF", {"Small-Q4_K_M.gguf": shape})
    told = json.loads(ask("show", "ann/Small-GGUF", "--json").stdout)
    [row] = told["quantizations"]
    assert (row["key"], row["verdict"], row["is_recommended"]) == ("Q4_K_M", "fits", True)
    assert row["max_context_tokens"]["f16"] == 8192
    assert row["sentence"].startswith("Needs ")
    words = text_of(ask("show", "ann/Small-GGUF").stdout)
    assert "room for 8k" in words
    assert "recommended" in words


def test_a_download_ends_in_the_library_and_a_second_one_fetches_nothing(ask, tiny, hub, tmp_path):
    done = ask("download", "ann/Tiny-GGUF:Q8_0", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)
    assert (told["key"], told["size_bytes"]) == ("Tiny:F32", len(tiny))
    assert Path(told["path"]).read_bytes() == tiny
    hub.wait_idle()
    sent = hub.sent("ann/Tiny-GGUF/Tiny-Q8_0.gguf")
    assert "Tiny" in [entry["name"] for entry in json.loads(run_cutaway("models", "list", "--json").stdout)]
    assert ask("download", "ann/Tiny-GGUF").returncode == 0
    hub.wait_idle()
    assert hub.sent("ann/Tiny-GGUF/Tiny-Q8_0.gguf") == sent


def test_a_newer_version_comes_beside_the_older_one_and_both_can_be_deleted(ask, tiny, hub, tmp_path):
    first = json.loads(ask("download", "ann/Tiny-GGUF:Q8_0", "--json").stdout)
    newer = named_model("Tiny two").write(tmp_path / "newer.gguf").read_bytes()
    hub.tiny_repo.commit({"Tiny-Q8_0.gguf": newer})
    done = ask("download", "ann/Tiny-GGUF:Q8_0", "--json")
    assert done.returncode == 0
    assert "An older version is here" in text_of(done.stderr)
    second = json.loads(done.stdout)
    assert Path(first["path"]).read_bytes() == tiny
    assert Path(second["path"]).read_bytes() == newer
    for told in (first, second):
        gone = run_cutaway("models", "remove", told["key"], "--delete", "--force")
        assert (gone.returncode, gone.stderr) == (0, b"")
        assert not Path(told["path"]).exists()
    assert "Tiny" not in run_cutaway("models", "list", "--json").stdout.decode()


@pytest.mark.parametrize(
    ("repo", "words"),
    [
        ("ann/Tiny-GGUF:Q2_K", "has no quantization “Q2_K”"),
        ("ann/Gone-GGUF", "ann/Gone-GGUF"),
        ("no repo at all", "is no repo of the hub"),
    ],
)
def test_what_is_not_there_is_said_in_words(ask, tiny, repo, words):
    done = ask("download", repo)
    assert (done.returncode, done.stdout) == (1, b"")
    assert words in text_of(done.stderr)


def test_progress_is_one_honest_line():
    download = Download(
        download_id="1", title="t", files=(), state=DownloadState.RUNNING, done_bytes=64 * MIB, total_bytes=100 * MIB
    )
    assert progress_line(download) == "64.0 % · 64.0 of 100 MiB"
    moving = Download(**{**_fields(download), "speed_bytes_per_s": 48.0 * MIB, "left_s": 40.0})
    assert progress_line(moving) == "64.0 % · 64.0 of 100 MiB · 48.0 MiB/s · 40.0 s left"
    checking = Download(**{**_fields(download), "state": DownloadState.VERIFYING, "checked_bytes": 50 * MIB})
    assert progress_line(checking) == "Checking what is here: 50.0 %"


def _fields(download):
    return {name: getattr(download, name) for name in download.__struct_fields__}
