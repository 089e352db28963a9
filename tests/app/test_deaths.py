"""Every way a worker can end has words of its own."""

from __future__ import annotations

import pytest

from app.deaths import words_for_death


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


def test_an_engine_that_gave_up_for_want_of_memory_says_so_in_its_log():
    lines = ("llama.cpp: ggml_aligned_malloc: insufficient memory (attempted to allocate 42 MB)", "GGML_ASSERT failed")
    words = words_for_death(None, 6, "loading", memory_hint="It needs 1 GiB.", log_lines=lines)
    assert words.message.startswith("There is not enough memory")
    assert "It needs 1 GiB." in words.message
    assert not words_for_death(None, 6, log_lines=("GGML_ASSERT failed",)).message.startswith("There is not enough")
    assert not words_for_death(None, 11, log_lines=lines).message.startswith("There is not enough")
