"""Ctrl+C, and the dialogue in a terminal, as a person sees them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.chat.messages import MessageState
from backends.echo_engine import Fault
from tests.helpers.command_line import ROOT, children_of, stored_chats, text_of, typing, write_script


@pytest.fixture
def echo(tmp_path: Path):
    """Return the flags for an echo engine that gives this answer."""

    def flags(answer: str = "A short answer.", **script: object) -> list[str]:
        return ["--backend", "echo", "--model", write_script(tmp_path, answer, **script)]

    return flags


# ------------------------------------------------------------------------------------------------ Ctrl+C


def test_ctrl_c_while_writing_stops_the_answer_and_keeps_the_text(echo, own_home):
    command = [sys.executable, "-m", "app", "chat", "--prompt", "x", *echo("word " * 400, token_s=0.02)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(9) == b"word word"
    children = children_of(process.pid)
    assert any("worker.py" in " ".join(child.cmdline()) for child in children)
    process.send_signal(signal.SIGINT)
    rest, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped" in text_of(told)
    [[_, answered]] = stored_chats(own_home)
    assert (answered.state, answered.text + "\n") == (MessageState.STOPPED, "word word" + text_of(rest))
    assert psutil.wait_procs(children, timeout=5)[1] == []


def test_ctrl_c_while_loading_ends_the_program_at_once(echo, own_home):
    command = [sys.executable, "-m", "app", "chat", "--prompt", "x", *echo(load_s=30.0)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not any("worker.py" in " ".join(child.cmdline()) for child in children_of(process.pid)):
            assert process.poll() is None
        children = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        output, told = process.communicate(timeout=30)
    assert (process.returncode, output, told) == (130, b"", b"")
    assert stored_chats(own_home) == []
    assert psutil.wait_procs(children, timeout=5)[1] == []


# ------------------------------------------------------------------------------------------- the dialogue


def test_a_dialogue_answers_line_by_line_in_one_chat(echo, own_home):
    with typing("chat", *echo("I say \x1b[31mno\x07.")) as person:
        at = person.see("> ", person.see("ends."))
        person.keys("first\r")
        at = person.see("ended by itself", at)
        assert "I say ␛[31mno␇.".encode() in person.screen
        person.keys("second\r")
        at = person.see("ended by itself", at)
        person.keys("/new\r")
        at = person.see("A new chat begins", at)
        person.keys("third\r")
        at = person.see("ended by itself", at)
        person.keys("/quit\r")
        assert person.end() == 0
    texts = [[message.text for message in branch] for branch in stored_chats(own_home)]
    answer = "I say \x1b[31mno\x07."
    assert texts == [["third", answer], ["first", answer, "second", answer]]


def test_ctrl_c_in_a_dialogue_stops_the_answer_and_ctrl_d_ends(echo, own_home):
    with typing("chat", *echo("word " * 400, token_s=0.02)) as person:
        at = person.see("> ", person.see("ends."))
        person.keys("go on\r")
        at = person.see("word word", at)
        at = person.interrupt("stopped", at)
        at = person.see("> ", at)
        person.keys("not to be sent")
        at = person.see("not to be sent", at)
        at = person.interrupt("/quit or Ctrl+D ends.", at)
        at = person.see("> ", at)
        assert person.leave() == 0
    [[asked, answered]] = stored_chats(own_home)
    assert (asked.text, answered.state) == ("go on", MessageState.STOPPED)
    assert answered.text.startswith("word word")


def test_a_dialogue_goes_on_after_the_engine_died(echo):
    with typing("chat", *echo(token_s=0.02, fault=Fault("decode", "kill", after_tokens=7))) as person:
        at = person.see("> ", person.see("ends."))
        for _ in range(2):
            person.keys("hello\r")
            at = person.see("A short", at)
            at = person.see("probably out of memory", at)
            at = person.see("> ", at)
        assert person.leave() == 0


def test_json_and_out_are_for_one_answer(echo):
    with typing("chat", "--json", *echo()) as person:
        person.see("Add --prompt TEXT, or leave --json out.")
        assert person.end() == 2
