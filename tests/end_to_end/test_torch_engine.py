"""The torch engine in the real program: the same window, the same chat, its death told; nothing special for it."""

from __future__ import annotations

import json
import signal

import psutil
import pytest

from tests.helpers.command_line import run_cutaway, text_of
from tests.helpers.hf_folders import smol_folder
from tests.helpers.program import (
    LONG_ANSWER,
    SHORT_ANSWER,
    ChatFile,
    DrivenProgram,
    maps_of,
    stretched,
    wait_for,
    write_settings,
)

pytestmark = pytest.mark.drill

LOAD_S = 120.0  # importing torch and transformers takes seconds, on a busy machine many


def test_a_chat_with_torch_from_the_first_word_to_a_dead_engine(own_home):
    write_settings(own_home, max_tokens=24, backend="torch")
    with DrivenProgram(own_home) as program:
        state = program.wait_ready(LOAD_S)
        assert "torch" in state["chip"]
        for text in (SHORT_ANSWER, "Go on."):
            program.ask("send", text)
            program.wait_answered(LOAD_S)
        wait_for(lambda: ChatFile(own_home).last()["state"] == "complete", "the second answer is stored")
        answers = [message["stats"] for message in ChatFile(own_home).messages() if message["role"] == "assistant"]
        first, second = answers
        assert first["new_tokens"] > 0
        whole_blocks = (first["prompt_tokens"] + first["new_tokens"] - 1) // 16 * 16
        assert second["reused_tokens"] == whole_blocks
        worker = program.worker()
        assert "libtorch" in maps_of(worker)
        assert "libllama" not in maps_of(worker)
        assert worker.net_connections(kind="inet") == []
        program.ask("new")
        program.ask("send", LONG_ANSWER)
        program.wait_writing(1, LOAD_S)
        worker.send_signal(signal.SIGKILL)
        program.wait_notice("The system ended the engine", stretched(5.0))
        program.wait_answered()
        wait_for(lambda: ChatFile(own_home).last()["state"] == "interrupted", "what was written is kept")
        program.ask("send", "Go on.")
        program.wait_writing(1, LOAD_S)
        assert program.quit() == 0
    assert not psutil.pid_exists(worker.pid)


def test_the_command_line_answers_from_a_folder(own_home):
    done = run_cutaway(
        *("chat", "--backend", "torch", "--model", str(smol_folder()), "--prompt", "Say hello.", "--temperature", "0"),
        *("--max-tokens", "12", "--context", "512", "--json"),
    )
    assert done.returncode == 0, text_of(done.stderr)
    told = json.loads(done.stdout)
    assert (told["backend"], told["device"], told["new_tokens"]) == ("torch", "CPU", 12)
    assert told["text"]


def test_bench_names_the_path_of_its_run(own_home):
    done = run_cutaway(
        *("bench", "--backend", "torch", "--model", str(smol_folder()), "--prompt-tokens", "32", "--new-tokens", "8"),
        *("--requests", "2", "--repetitions", "1", "--json"),
    )
    assert done.returncode == 0, text_of(done.stderr)
    told = json.loads(done.stdout)
    assert told["attention_path"] == "paged"
    assert "sdpa" in told["attention_kernel"]
    assert told["total_tokens_per_s"] > 0
