"""Every code and every death has words, whatever is missing or hostile in its parameters."""

from __future__ import annotations

import re

import pytest

from app.errors import AppError, Words, app_error, one_line, words_for, words_for_death, words_for_exception
from backends.errors import EngineError, ErrorCode, NoticeCode

CODES = [*ErrorCode, *NoticeCode]

# What backends/errors.py lists behind the codes, all at once: a code takes what it needs.
PARAMETERS = {
    "path": "/models/some model.gguf",
    "detail": "tensor 3 lies beyond the end",
    "backend": "llama.cpp",
    "architecture": "mamba9",
    "needed_bytes": 6 * 1024**3,
    "free_bytes": 900 * 1024**2,
    "context_tokens": 131072,
    "prompt_tokens": 9000,
    "command": "Score",
    "ours": 1,
    "theirs": 2,
    "line": 7,
    "limit_s": 2.0,
    "limit_bytes": 4 * 1024 * 1024,
}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_sentence_and_a_hint(code):
    words = words_for(code.value, PARAMETERS)
    for sentence in (words.message, words.hint):
        assert sentence.endswith("."), sentence
        assert sentence[0].isupper() or sentence[0] == "“"
        assert "?" not in sentence
        assert "{" not in sentence


@pytest.mark.parametrize("code", CODES)
def test_a_code_without_its_parameters_still_has_words(code):
    words = words_for(code.value, {})
    assert words.message.endswith(".")
    assert words.hint.endswith(".")


@pytest.mark.parametrize("code", CODES)
def test_hostile_parameters_stay_on_one_short_line_and_are_not_formatted_again(code):
    hostile = "\x1b[31m{0.__class__}\n{path}\u202e" + "x" * 10_000
    words = words_for(code.value, dict.fromkeys(PARAMETERS, hostile))
    for sentence in (words.message, words.hint):
        assert not re.search(r"[\x00-\x1f\x7f\u202e]", sentence)
        assert len(sentence) < 1000


def test_an_unknown_code_is_named():
    assert "flux_capacitor" in words_for("flux_capacitor", {}).message


def test_sizes_and_names_are_derived_from_bytes_and_paths():
    assert "about 6.00\u00a0GiB are needed, 900\u00a0MiB are free" in words_for("out_of_memory", PARAMETERS).message
    assert words_for("out_of_memory", {"needed_bytes": 5}).message == "There is not enough memory for this."
    assert "“some model.gguf”" in words_for("file_missing", PARAMETERS).message
    assert "“m.gguf”" in words_for("file_missing", {"path": "C:\\models\\m.gguf"}).message
    assert "4.00\u00a0MiB" in words_for("template_too_long", PARAMETERS).message
    assert "131,072" in words_for("no_kv_room", PARAMETERS).message


def test_the_line_of_a_broken_template_is_told_only_when_known():
    assert "in line 7" in words_for("template_broken", PARAMETERS).message
    assert "line" not in words_for("template_broken", {"detail": "unexpected end", "line": 0}).message


def test_a_sentence_never_ends_in_two_stops():
    assert words_for("decode_failed", {"detail": "It broke."}).message == "The engine could not go on: It broke."


@pytest.mark.parametrize(
    ("exit_code", "signal", "message"),
    [
        (None, 9, "The system ended the engine, probably out of memory."),
        (-9, None, "The system ended the engine, probably out of memory."),
        (137, None, "The system ended the engine, probably out of memory."),
        (None, 11, "The engine crashed: it reached for memory that is not its own."),
        (-1073741819, None, "The engine crashed: it reached for memory that is not its own."),
        (0xC0000005, None, "The engine crashed: it reached for memory that is not its own."),
        (None, 6, "The engine gave up: it found an error it cannot go on from."),
        (0xC0000409, None, "The engine gave up: it found an error it cannot go on from."),
        (0, None, "The engine ended by itself."),
        (3, None, "The engine ended with exit code 3."),
        (None, 15, "Another program or the system asked the engine to end."),
        (None, 10, "The engine was ended by SIGUSR1."),
        (None, 63, "The engine was ended by signal 63."),
        (0xC0000135, None, "The engine could not start: one of its libraries is missing or broken."),
        (None, None, "The engine ended, and the system does not say why."),
    ],
)
def test_each_kind_of_death_has_its_own_sentence(exit_code, signal, message):
    words = words_for_death(exit_code, signal)
    assert words.message == message
    assert words.hint.endswith(".")


def test_the_hint_after_a_kill_names_the_ways_to_need_less_memory():
    assert words_for_death(None, 9).hint == "Try a smaller quantization or a shorter context."
    assert "lacks an instruction" in words_for_death(None, 4).message
    assert "changed or removed while in use" in words_for_death(None, 7).message


def test_the_phase_is_told_and_an_unknown_one_says_nothing():
    assert words_for_death(None, 9, "loading").message.endswith(" It was loading the model.")
    assert words_for_death(None, 9, "writing").message.endswith("the text so far is kept.")
    assert words_for_death(None, 9, "idle") == words_for_death(None, 9)


def test_a_kill_of_our_own_is_not_blamed_on_memory():
    assert "did not answer" in words_for_death(None, 9, cause="killed", memory_hint="It needed 6 GiB.").message
    assert "does not understand" in words_for_death(None, 9, cause="protocol").message
    assert "Cutaway itself failed" in words_for_death(None, 9, cause="unheard").message
    assert words_for_death(None, None, cause="not_started").message == "The engine's process could not be started."
    assert "It needed 6 GiB." in words_for_death(None, 9, memory_hint="It needed 6 GiB.").message


def test_exceptions_become_words_without_quoting_what_they_hold():
    assert words_for_exception(AppError(Words("a.", "b."))) == Words("a.", "b.")
    assert words_for_exception(EngineError(ErrorCode.NO_MODEL)) == words_for("no_model", {})
    assert "No space left" in words_for_exception(OSError(28, "No space left on device", "/x/y")).message
    assert "CANARY" not in words_for_exception(ValueError("CANARY")).message
    assert words_for_exception(MemoryError()).message == "There is not enough memory."
    assert str(app_error("no_model", {})) == "No model is loaded."


def test_text_of_others_becomes_one_visible_line():
    assert one_line("a\n\x1b[0mb\u200b\ud800c") == "a [0mb c"
    assert one_line("x" * 10, 5) == "xxxx…"


def test_an_engine_that_gave_up_for_want_of_memory_says_so_in_its_log():
    lines = ("llama.cpp: ggml_aligned_malloc: insufficient memory (attempted to allocate 42 MB)", "GGML_ASSERT failed")
    words = words_for_death(None, 6, "loading", memory_hint="It needs 1 GiB.", log_lines=lines)
    assert words.message.startswith("There is not enough memory")
    assert "It needs 1 GiB." in words.message
    assert not words_for_death(None, 6, log_lines=("GGML_ASSERT failed",)).message.startswith("There is not enough")
    assert not words_for_death(None, 11, log_lines=lines).message.startswith("There is not enough")
