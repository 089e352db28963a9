"""`cutaway models` and `cutaway fit` as a person uses them: the real program, from outside."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tests.helpers.command_line import run_cutaway, text_of
from tests.helpers.gguf_files import named_model

OWNERS = ("weights_bytes", "kv_reserved_bytes", "kv_used_bytes", "compute_bytes", "rest_bytes")


@pytest.fixture
def tiny(tmp_path):
    return named_model("Tiny").write(tmp_path / "tiny.gguf")


def listed(*flags):
    return json.loads(run_cutaway("models", "list", "--json", *flags).stdout)


def test_a_fit_gives_every_owner_the_largest_contexts_and_one_sentence(starter_model):
    done = run_cutaway("fit", "smollm2", "--context", "2048", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)
    assert told["source"] == "probe"
    assert sum(told["predicted"][owner] for owner in OWNERS) == told["predicted"]["total_bytes"]
    assert told["predicted"]["kv_reserved_bytes"] == 2048 * 23_040
    assert told["measured"] is None
    assert told["fits"] is True
    assert told["max_context_tokens"] == {"f16": 8192, "q8_0": 8192, "q4_0": 8192}
    assert told["sentence"].startswith("Needs ")
    assert told["decode_tokens_per_s"] > 0


def test_a_fit_in_words_names_the_owners_and_where_the_figures_come_from(starter_model):
    told = text_of(run_cutaway("fit", str(starter_model), "--context", "2048", "--kv-type", "q8_0").stdout)
    for words in ("Weights", "KV cache", "Compute", "Engine itself", "Largest context by KV type: f16: 8,192 tokens"):
        assert words in told
    assert told.endswith("Told by the engine's allocator, nothing loaded, for 2,048 tokens with q8_0 KV.\n")


def test_a_model_that_cannot_be_used_is_no_question_of_memory(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    done = run_cutaway("fit", str(broken))
    assert done.returncode == 1
    assert text_of(done.stderr).startswith("cutaway: broken: ")
    gone = run_cutaway("fit", "nothing-like-it")
    assert gone.returncode == 1
    assert "No model is called" in text_of(gone.stderr)


def test_a_folder_is_added_listed_and_taken_away_again(tmp_path, tiny):
    folder = tmp_path / "many"
    folder.mkdir()
    tiny.rename(folder / "tiny.gguf")
    added = run_cutaway("models", "import", str(folder))
    assert (added.returncode, text_of(added.stderr)) == (0, "")
    assert "Tiny" in [entry["name"] for entry in listed()]
    removed = run_cutaway("models", "remove", str(folder))
    assert "no longer looked into" in text_of(removed.stdout)
    assert "Tiny" not in [entry["name"] for entry in listed()]
    assert (folder / "tiny.gguf").is_file()


def test_a_model_is_deleted_only_after_it_was_said(tiny):
    assert run_cutaway("models", "import", str(tiny)).returncode == 0
    [entry] = [entry for entry in listed("--no-scan") if entry["name"] == "Tiny"]
    assert entry["identity"].startswith("sha256:")
    asked = run_cutaway("models", "remove", entry["key"], "--delete", "--forever")
    assert asked.returncode == 1
    assert "Nothing was deleted." in text_of(asked.stderr)
    assert tiny.is_file()
    done = run_cutaway("models", "remove", entry["key"], "--delete", "--forever", "--force")
    assert done.returncode == 0
    assert "are free again" in text_of(done.stdout)
    assert not tiny.exists()


def test_a_load_that_may_not_fit_is_asked_for_and_forced(tiny):
    asked = run_cutaway("chat", "--model", str(tiny), "--prompt", "x")
    assert asked.returncode == 1
    assert "With --force it is loaded without asking." in text_of(asked.stderr)
    forced = run_cutaway("chat", "--model", str(tiny), "--prompt", "x", "--force")
    assert forced.returncode == 1  # it has no vocabulary; the engine itself says so now
    assert "With --force" not in text_of(forced.stderr)


@pytest.mark.drill
def test_what_a_load_took_is_in_the_library_and_stands_beside_the_estimate(starter_model, own_home):
    asked = json.loads(run_cutaway("fit", str(starter_model), "--context", "512", "--json").stdout)
    flags = ("--model", str(starter_model), "--context", "512", "--max-tokens", "20", "--temperature", "0")
    assert run_cutaway("chat", "--prompt", "Count to ten.", *flags).returncode == 0
    with sqlite3.connect(own_home / "data" / "library.sqlite3") as database:
        assert database.execute("SELECT COUNT(*) FROM loads").fetchone()[0] > 0
    database.close()
    told = json.loads(run_cutaway("fit", str(starter_model), "--context", "512", "--json").stdout)
    assert told["source"] == "measured"
    for owner in ("weights_bytes", "kv_reserved_bytes", "compute_bytes"):
        assert told["measured"][owner] == asked["predicted"][owner]
    assert told["measured"]["total_bytes"] == pytest.approx(asked["predicted"]["total_bytes"], rel=0.03)
