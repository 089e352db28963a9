"""The command line, started as a person starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.chat.messages import MessageState, Role
from backends.echo_engine import Fault
from tests.helpers import gguf_files
from tests.helpers.command_line import (
    ROOT,
    environment,
    run_cutaway,
    stored_chats,
    text_of,
    typing,
    write_script,
)

CHAT_KEYS = [
    "text",
    "stop_reason",
    "prompt_tokens",
    "reused_tokens",
    "new_tokens",
    "ttft_s",
    "prefill_tokens_per_s",
    "decode_tokens_per_s",
    "draft_proposed",
    "draft_accepted",
    "backend",
    "device",
    "model",
    "quantization",
]


@pytest.fixture
def echo(tmp_path: Path):
    """Return the flags for an echo engine that gives this answer."""

    def flags(answer: str = "A short answer.", **script: object) -> list[str]:
        return ["--backend", "echo", "--model", write_script(tmp_path, answer, **script)]

    return flags


# ------------------------------------------------------------------------------------------- one answer


def test_the_answer_goes_to_standard_output_and_its_figures_to_standard_error(echo, own_home):
    done = run_cutaway("chat", "--prompt", "hello", *echo())
    assert (done.returncode, text_of(done.stdout)) == (0, "A short answer.\n")
    assert "15 tokens written · 5 read · 0 reused" in text_of(done.stderr)
    assert text_of(done.stderr).count("\n") == 1
    [[asked, answered]] = stored_chats(own_home)
    assert (asked.role, asked.text) == (Role.USER, "hello")
    assert (answered.text, answered.state) == ("A short answer.", MessageState.COMPLETE)


def test_json_has_exactly_the_fixed_keys(echo):
    done = run_cutaway("chat", "--prompt", "hello", "--json", "--max-tokens", "7", *echo())
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(told) == CHAT_KEYS
    assert (told["text"], told["stop_reason"]) == ("A short", "max_tokens")
    assert (told["prompt_tokens"], told["reused_tokens"], told["new_tokens"]) == (5, 0, 7)
    assert (told["draft_proposed"], told["draft_accepted"]) == (0, 0)
    assert (told["backend"], told["device"], told["quantization"]) == ("echo", "CPU", "none")
    assert told["decode_tokens_per_s"] > 0


def test_the_starter_model_answers_by_its_name(starter_model):
    listed = json.loads(run_cutaway("models", "list", "--json").stdout)
    assert [(model["name"], model["origin"], model["fault"]) for model in listed] == [
        ("SmolLM2-135M-Instruct", "starter", "")
    ]
    done = run_cutaway(
        *("chat", "--model", "smollm2", "--prompt", "Say hello.", "--json"),
        *("--temperature", "0", "--max-tokens", "4", "--context", "256", "--threads", "1"),
    )
    told = json.loads(done.stdout)
    assert (done.returncode, list(told)) == (0, CHAT_KEYS)
    assert (told["stop_reason"], told["new_tokens"], told["quantization"]) == ("max_tokens", 4, "Q4_1")
    assert (told["backend"], told["model"]) == ("llama_cpp", listed[0]["key"])
    assert told["text"].strip()


def test_a_piped_text_is_the_prompt(echo, own_home):
    done = run_cutaway("chat", *echo(), stdin="piped é 🌳\n".encode())
    assert (done.returncode, text_of(done.stdout)) == (0, "A short answer.\n")
    assert stored_chats(own_home)[0][0].text == "piped é 🌳"


def test_piped_bytes_that_are_no_text_are_replaced(echo, own_home):
    assert run_cutaway("chat", *echo(), stdin=b"caf\xe9").returncode == 0
    assert stored_chats(own_home)[0][0].text == "caf\ufffd"


def test_without_a_model_the_echo_engine_repeats_the_prompt():
    done = run_cutaway("chat", "--backend", "echo", "--prompt", "say this")
    assert (done.returncode, text_of(done.stdout).strip()) == (0, "say this")


def test_a_fallback_is_told_in_words_and_the_answer_comes(echo):
    done = run_cutaway("chat", "--prompt", "x", *echo(chat_template="{% if %}"))
    assert (done.returncode, text_of(done.stdout)) == (0, "A short answer.\n")
    assert text_of(done.stderr).startswith("cutaway: This model's chat template is broken")


def test_the_chat_keeps_its_system_prompt_and_its_params(echo, own_home):
    from app.chat.store import open_store

    run_cutaway("chat", "--prompt", "hi", "--system", "Be brief.", "--seed", "7", "--top-p", "0.5", *echo())
    store = open_store(own_home / "data" / "chats.sqlite3").store
    try:
        [chat] = store.chats()
    finally:
        store.close()
    assert (chat.title, chat.system_prompt, chat.params) == ("hi", "Be brief.", {"seed": 7, "top_p": 0.5})


def test_a_temporary_chat_is_not_kept(echo, own_home):
    done = run_cutaway("chat", "--temporary", "--prompt", "CANARY-7f3", *echo())
    assert (done.returncode, text_of(done.stdout)) == (0, "A short answer.\n")
    assert stored_chats(own_home) == []
    for path in own_home.rglob("*"):
        assert path.is_dir() or b"CANARY-7f3" not in path.read_bytes()


def test_out_writes_the_answer_to_a_file_and_writes_over_one_only_when_forced(echo, tmp_path):
    out = tmp_path / "answer.txt"
    done = run_cutaway("chat", "--prompt", "hello", "--out", str(out), *echo())
    assert (done.returncode, done.stdout, out.read_text()) == (0, b"", "A short answer.\n")

    refused = run_cutaway("chat", "--prompt", "hello", "--out", str(out), *echo("Another one."))
    assert (refused.returncode, refused.stdout, out.read_text()) == (2, b"", "A short answer.\n")
    assert text_of(refused.stderr).splitlines()[1] == "  Choose another one, or write over it with --force."

    forced = run_cutaway("chat", "--prompt", "hello", "--out", str(out), "--force", *echo("Another one."))
    assert (forced.returncode, out.read_text()) == (0, "Another one.\n")


def test_an_answer_keeps_its_escape_codes_in_a_pipe(echo):
    done = run_cutaway("chat", "--prompt", "x", *echo("\x1b[31mred\x1b[0m\r\n"))
    assert done.stdout == b"\x1b[31mred\x1b[0m\r\n"


def test_output_is_utf_8_whatever_the_locale_says(echo):
    plain = environment(LC_ALL="C", LANG="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    done = run_cutaway("chat", "--prompt", "é", *echo("déjà vu 🌳"), env=plain)
    assert (done.returncode, text_of(done.stdout)) == (0, "déjà vu 🌳\n")
    assert " · " in text_of(done.stderr)


def test_a_reader_that_has_seen_enough_is_left_in_peace(echo, own_home):
    command = [sys.executable, "-m", "app", "chat", "--prompt", "x", *echo("word " * 2000, token_s=0.001)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(4) == b"word"
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(30) == 1
    assert stored_chats(own_home)[0][1].text.startswith("word ")


@pytest.mark.parametrize(("closed", "shown"), [("2>&-", b"A short answer.\n"), (">&-", b"")])
def test_a_closed_stream_disturbs_nothing(closed, shown, echo):
    line = f'exec "$0" -m app "$@" {closed}'
    command = ["sh", "-c", line, sys.executable, "chat", "--prompt", "x", *echo()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, shown)


def test_a_full_disk_is_told_in_words(echo, own_home):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "app", "chat", "--prompt", "x", *echo()]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert text_of(done.stderr).startswith("cutaway: The system refused: No space left on device.")


# ---------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["serch"], "“serch” is no command of this version."),
        (["download", "x"], "“download” is no command of this version."),
        (["models", "lst"], "“models lst” is no command of this version."),
        (["models"], "Say what to do: `cutaway models …` is not complete."),
        (["--json", "chat"], "A command comes first, then its flags."),
        (["chat", "--colour"], "“--colour” is not known here."),
        (["chat", "--seed", "x"], "Argument --seed: “x” is not a number."),
        (["chat", "--temperature", "9"], "Argument --temperature: “Temperature” must lie between 0 and 5."),
        (["chat", "--draft", "ngram", "--prompt", "x"], "Speculative decoding comes with a later version."),
        (["chat", "--prompt", "  "], "There is nothing to answer: the prompt is empty."),
        (["chat", "--backend", "echo"], "There is nothing to answer: the prompt is empty."),
        (["chat", "--prompt", "x", "--out", "/nowhere/at/all"], "The answer cannot be written to /nowhere/at/all: "),
    ],
)
def test_a_command_line_that_cannot_be_is_a_sentence_and_a_hint(arguments, sentence):
    done = run_cutaway(*arguments)
    lines = text_of(done.stderr).splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (2, b"", 2)
    assert lines[0].startswith(f"cutaway: {sentence}")
    assert lines[1].startswith("  ")


def test_a_wrong_model_name_lists_what_is_there(starter_model):
    done = run_cutaway("chat", "--model", "llama-9000", "--prompt", "x")
    assert (done.returncode, done.stdout) == (1, b"")
    told = text_of(done.stderr)
    assert "No model is called “llama-9000”." in told
    assert "SmolLM2-135M-Instruct:Q4_1" in told


def test_a_file_that_is_no_model_is_refused_before_an_engine_sees_it(tmp_path, own_home):
    path = tmp_path / "poem.gguf"
    path.write_text("Roses are red")
    done = run_cutaway("chat", "--model", str(path), "--prompt", "x")
    assert (done.returncode, done.stdout) == (1, b"")
    assert text_of(done.stderr).startswith("cutaway: poem: ")
    assert not list((own_home / "logs").glob("engine-*"))
    assert stored_chats(own_home) == []


def test_a_script_that_is_missing_is_told_in_words(tmp_path):
    done = run_cutaway("chat", "--backend", "echo", "--model", str(tmp_path / "none.json"), "--prompt", "x")
    assert done.returncode == 1
    assert text_of(done.stderr).startswith("cutaway: The model file “none.json” is not there any more.\n  ")


@pytest.mark.parametrize(("how", "words"), [("kill", "probably out of memory"), ("segv", "The engine crashed")])
def test_a_dead_engine_is_told_in_words_and_the_text_is_kept(how, words, echo, own_home):
    fault = Fault("decode", how, after_tokens=7)
    done = run_cutaway("chat", "--prompt", "x", *echo(token_s=0.02, fault=fault))
    assert (done.returncode, text_of(done.stdout)) == (1, "A short\n")
    assert words in text_of(done.stderr)
    assert "the text so far is kept" in text_of(done.stderr)
    [[_, answered]] = stored_chats(own_home)
    assert (answered.text, answered.state) == ("A short", MessageState.INTERRUPTED)


def test_json_of_a_dead_engine_has_the_text_and_no_figures(echo):
    done = run_cutaway(
        "chat", "--json", "--prompt", "x", *echo(token_s=0.02, fault=Fault("decode", "exit1", after_tokens=7))
    )
    told = json.loads(done.stdout)
    assert (done.returncode, list(told)) == (1, CHAT_KEYS)
    assert (told["text"], told["stop_reason"], told["new_tokens"], told["ttft_s"]) == ("A short", None, None, None)


def test_an_engine_that_dies_while_loading_is_told_in_words(echo, own_home):
    done = run_cutaway("chat", "--prompt", "x", *echo(fault=Fault("load", "abort")))
    assert (done.returncode, done.stdout) == (1, b"")
    assert "It was loading the model." in text_of(done.stderr)
    assert stored_chats(own_home) == []


# -------------------------------------------------------------------------------------------- no display


def test_without_a_display_the_chat_opens_in_the_terminal(starter_model, own_home):
    blind = environment(DISPLAY="", WAYLAND_DISPLAY="", QT_QPA_PLATFORM="", TERM="xterm")
    with typing(env=blind) as person:
        person.see("There is no display, so the chat opens in the terminal.")
        at = person.see("> ", person.see("/quit or Ctrl+D ends."))
        person.keys("/quit\r")
        assert person.end() == 0
    assert b"SmolLM2-135M-Instruct" in person.screen[:at]
    assert stored_chats(own_home) == []


def test_without_a_display_a_model_file_is_chatted_with_in_the_terminal(tmp_path):
    blind = environment(DISPLAY="", WAYLAND_DISPLAY="", QT_QPA_PLATFORM="")
    done = run_cutaway(str(tmp_path / "none.gguf"), stdin=b"hello", env=blind)
    told = text_of(done.stderr).splitlines()
    assert (done.returncode, done.stdout) == (1, b"")
    assert told[0] == "cutaway: There is no display, so the chat opens in the terminal."
    assert told[2] == f"cutaway: There is no file {tmp_path / 'none.gguf'}."


# ------------------------------------------------------------------------------------------------ models


def test_models_are_imported_listed_and_forgotten_and_their_files_stay(tmp_path, starter_model):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_files.named_model("Tiny\x1b[31m").to_bytes())
    added = run_cutaway("models", "import", str(path))
    assert (added.returncode, added.stderr) == (0, b"")
    assert b"\x1b" not in added.stdout

    entry = json.loads(run_cutaway("models", "list", "--json").stdout)[1]
    assert list(entry) == [
        *("key", "name", "owner", "quantization", "architecture", "format", "size_bytes", "bits_per_weight"),
        *("fallback_tensors", "has_importance_matrix", "parameters_count", "context_tokens", "path", "parts"),
        *("origin", "identity", "note", "fault", "max_context_tokens", "needed_bytes", "verdict"),
    ]
    assert (entry["path"], entry["origin"], entry["fault"]) == (str(path), "imported", "")

    path.write_bytes(b"GGUF and then nothing")
    table = text_of(run_cutaway("models", "list").stdout).splitlines()
    assert table[0].split() == ["Name", "Bits/weight", "Size", "On", "this", "machine", "Where", "Fault"]
    assert "Q4_1" in table[1]
    assert "room for 8k" in table[1]
    assert "The model file cannot be used." in table[2]

    removed = run_cutaway("models", "remove", str(path))
    assert (removed.returncode, path.exists()) == (0, True)
    assert f"Its file stays: {path}" in text_of(removed.stdout)
    assert len(json.loads(run_cutaway("models", "list", "--json").stdout)) == 1


def test_the_starter_model_cannot_be_forgotten(starter_model):
    done = run_cutaway("models", "remove", "smollm2")
    assert (done.returncode, done.stdout) == (1, b"")
    assert "was not imported, so it cannot be forgotten" in text_of(done.stderr)


def test_help_lists_only_what_is_built():
    done = run_cutaway("--help")
    told = text_of(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(word in told for word in ("chat", "models", "fit", "bench", "compare", "quantize", "selftest"))
    assert "selftest-window" not in told
    assert b"--draft" not in run_cutaway("chat", "--help").stdout
