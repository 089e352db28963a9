"""Every code has words, whatever is missing or hostile in its parameters."""

from __future__ import annotations

import re

import pytest

from app.errors import AppError, Words, app_error, one_line, words_for, words_for_exception
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
    "packages": "torch transformers",
    "takes": "GGUF files",
    "note": "this kind of model skips the attention hook",
    "asked": "q8_0",
    "kv_type": "f16",
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
