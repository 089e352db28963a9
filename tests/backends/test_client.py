"""The client's promises: events in order, death noticed and explained, callers never blocked, nothing leaked."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from backends import client, protocol
from backends.client import EngineDied, WorkerCommand, child_environment
from backends.echo_engine import EchoScript, Fault
from tests.helpers.engine_client import LoggedClient, write_script

PROMPT = protocol.Text("hello")


def request(number: int = 1, **fields: object) -> protocol.Generate:
    return protocol.Generate(request_id=protocol.RequestId(number), prompt=PROMPT, **fields)


def test_hello_is_the_first_event_and_death_the_last(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.client.send(protocol.Shutdown())
        died = worker.wait(EngineDied)
    assert isinstance(worker.events[0], protocol.Hello)
    assert worker.events[0].pid == worker.client.pid
    assert worker.events[0].protocol_version == protocol.PROTOCOL_VERSION
    assert worker.events[-1] is died
    assert (died.exit_code, died.signal, died.cause) == (0, None, "exited")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM])
def test_a_signal_that_ends_the_worker_is_named(tmp_path, number) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load()
        os.kill(worker.client.pid, number)
        died = worker.wait(EngineDied)
    assert (died.exit_code, died.signal, died.cause) == (None, number, "exited")
    assert not psutil.pid_exists(worker.client.pid)


@pytest.mark.parametrize(("how", "code"), [("exit0", 0), ("exit1", 1)])
def test_an_exit_code_is_reported(tmp_path, how, code) -> None:
    script = write_script(tmp_path / "s.json", EchoScript(token_s=0.05, fault=Fault("decode", how, 2)))
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load(script)
        worker.client.send(request())
        died = worker.wait(EngineDied)
    assert (died.exit_code, died.signal) == (code, None)
    said = "".join(p.text for done in worker.of(protocol.StepDone) for p in done.pieces)
    assert said == "he"


def test_our_own_kill_is_told_from_others(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.client.kill()
        assert worker.wait(EngineDied).cause == "killed"


def test_the_last_log_lines_come_with_the_death(tmp_path) -> None:
    script = write_script(tmp_path / "s.json", EchoScript(fault=Fault("prefill", "abort")))
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load(script)
        worker.client.send(request())
        died = worker.wait(EngineDied)
    assert any("Abort" in line for line in died.last_log_lines)  # faulthandler's words


def test_a_worker_that_speaks_nonsense_is_ended(tmp_path) -> None:
    script = tmp_path / "nonsense.py"
    script.write_text(
        "import os, struct, sys, time\n"
        "fd = int(sys.argv[sys.argv.index('--fd') + 1])\n"
        "os.write(fd, struct.pack('!i', 5) + b'xxxxx')\n"
        "time.sleep(60)\n"
    )
    with LoggedClient("echo", tmp_path / "log", WorkerCommand((sys.executable, "-I", str(script)))) as worker:
        died = worker.wait(EngineDied)
    assert died.cause == "protocol"
    assert died.signal == signal.SIGKILL


def test_a_worker_that_cannot_be_started_is_said(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log", WorkerCommand((str(tmp_path / "no python here"),))) as worker:
        died = worker.wait(EngineDied)
    assert died.cause == "not_started"
    assert "no python here" in died.last_log_lines[0]


def test_sending_to_a_stopped_worker_never_blocks(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load()
        os.kill(worker.client.pid, signal.SIGSTOP)
        began_s = time.monotonic()
        for number in range(50):  # 50 MB: far more than any pipe holds
            worker.client.send(protocol.CountTokens(protocol.RequestId(number), protocol.Text("x" * 1_000_000)))
        assert time.monotonic() - began_s < 5.0
        assert not worker.of(EngineDied)


def test_silence_grows_while_the_worker_is_stopped(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load()
        worker.wait(protocol.MemoryRead)
        os.kill(worker.client.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 20
        while worker.client.silence_s < 0.6 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert worker.client.silence_s >= 0.6
        os.kill(worker.client.pid, signal.SIGCONT)
        worker.wait(protocol.MemoryRead, count=len(worker.of(protocol.MemoryRead)) + 2)
        assert worker.client.silence_s < 0.6


def test_a_log_file_that_cannot_be_opened_keeps_no_engine_from_running(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "no" / "such" / "folder") as worker:
        worker.load()


def test_the_child_sees_a_short_list_of_variables_and_no_token() -> None:
    kept = child_environment(
        {"PATH": "/bin", "HF_TOKEN": "secret", "PYTHONPATH": "/evil", "LD_PRELOAD": "x.so", "CUDA_VISIBLE_DEVICES": "0"}
    )
    assert kept["PATH"] == "/bin"
    assert kept["CUDA_VISIBLE_DEVICES"] == "0"
    assert kept["HF_HUB_OFFLINE"] == "1"
    assert not {"HF_TOKEN", "PYTHONPATH", "LD_PRELOAD"} & set(kept)


def test_hostile_modules_in_the_environment_and_the_working_folder_change_nothing(tmp_path, monkeypatch) -> None:
    for name in ("msgspec", "backends", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hostile')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load()


def test_a_worker_has_no_listening_socket_and_no_qt(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load()
        process = psutil.Process(worker.client.pid)
        assert process.net_connections(kind="inet") == []
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert "Qt6" not in maps
        assert "PySide6" not in maps


def test_a_bundled_worker_runs_isolated_by_its_absolute_path() -> None:
    argv = client.bundled_worker().argv
    assert argv[1] == "-I"
    assert Path(argv[2]).is_absolute()
    assert Path(argv[2]).name == "worker.py"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_listener_that_fails_ends_the_worker_and_is_told_of_its_death(tmp_path) -> None:
    died = []

    def listen(_client: client.EngineClient, event: client.ClientEvent) -> None:
        if isinstance(event, EngineDied):
            died.append(event)
        else:
            raise RuntimeError("a listener's own fault")

    worker = client.EngineClient(client.bundled_worker(), "echo", tmp_path / "log", listen)
    worker.start()
    assert worker.join(30)
    assert [event.cause for event in died] == ["unheard"]
    assert not psutil.pid_exists(worker.pid)
