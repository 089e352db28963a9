"""The supervisor's promises: one life cycle, header check first, death told, Stop that becomes a kill."""

from __future__ import annotations

import os
import signal
import sys

import psutil
import pytest

from app.engines import supervisor
from app.engines.supervisor import EngineSupervisor, LoadRequest, ResponseChanged, StateChanged
from backends import protocol
from backends.client import EngineDied, WorkerCommand
from backends.echo_engine import EchoScript, Fault
from backends.errors import ErrorCode
from backends.protocol import LifeCycle
from tests.helpers.engine_client import EventLog, write_script
from tests.helpers.gguf_files import TinyGguf


class Watched(EventLog):
    """A supervisor whose events are collected."""

    def __init__(self, folder, command: WorkerCommand | None = None) -> None:
        super().__init__()
        self.folder = folder
        self.engine = EngineSupervisor(lambda: folder / "engine.log", self.add, command)

    def load(self, script: EchoScript | None = None) -> None:
        path = write_script(self.folder / "script.json", script or EchoScript())
        self.engine.load(LoadRequest(str(path), "echo"))

    def wait_for(self, state: LifeCycle, count: int = 1) -> None:
        self.wait(StateChanged, lambda event: event.state is state, count)

    def generate(self, number: int = 1, text: str = "hello") -> bool:
        return self.engine.send(protocol.Generate(request_id=protocol.RequestId(number), prompt=protocol.Text(text)))

    @property
    def states(self) -> list[LifeCycle]:
        return [event.state for event in self.of(StateChanged)]


@pytest.fixture
def watched(tmp_path):
    made = Watched(tmp_path)
    yield made
    made.engine.close()


def test_a_life_from_start_to_end(watched) -> None:
    assert watched.engine.state is LifeCycle.DEAD
    watched.load()
    watched.wait_for(LifeCycle.READY)
    assert watched.engine.loaded.backend == "echo"
    assert watched.generate()
    watched.wait(protocol.RequestFinished)
    watched.wait_for(LifeCycle.READY, count=2)
    watched.engine.unload()
    watched.wait_for(LifeCycle.DEAD)
    assert watched.states == [
        LifeCycle.STARTING,
        LifeCycle.LOADING,
        LifeCycle.READY,
        LifeCycle.BUSY,
        LifeCycle.READY,
        LifeCycle.STOPPING,
        LifeCycle.DEAD,
    ]
    assert watched.engine.died.exit_code == 0
    assert watched.engine.loaded is None


def test_nothing_can_be_sent_before_a_model_is_ready(watched) -> None:
    assert not watched.generate()
    watched.load(EchoScript(load_s=0.5))
    assert not watched.generate()
    watched.wait_for(LifeCycle.READY)
    assert watched.generate()


@pytest.mark.parametrize("phase", ["load", "prefill", "decode"])
@pytest.mark.parametrize("how", ["kill", "segv", "abort", "exit0", "exit1"])
def test_a_death_in_any_phase_is_told_and_a_restart_works(watched, phase, how) -> None:
    watched.load(EchoScript(fault=Fault(phase, how)))
    if phase != "load":
        watched.wait_for(LifeCycle.READY)
        watched.generate()
    died = watched.wait(EngineDied)
    watched.wait_for(LifeCycle.DEAD)
    expected = {"kill": signal.SIGKILL, "segv": signal.SIGSEGV, "abort": signal.SIGABRT}.get(how)
    assert died.signal == expected
    assert (died.exit_code is None) == (expected is not None)
    write_script(watched.folder / "script.json", EchoScript())
    watched.engine.restart()
    watched.wait_for(LifeCycle.READY, count=1 if phase == "load" else 2)


def test_a_file_that_is_no_model_never_reaches_a_worker(watched, tmp_path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 100)
    watched.engine.load(LoadRequest(str(path)))
    failed = watched.wait(protocol.EngineFailed)
    watched.wait_for(LifeCycle.DEAD)
    assert failed.code == ErrorCode.HEADER_INVALID
    assert not watched.of(protocol.Hello)
    assert watched.engine.pid == 0


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("missing.gguf", None, ErrorCode.FILE_MISSING),
        ("text.gguf", b"hello, this is text and no model at all", ErrorCode.NOT_A_MODEL),
        ("empty.gguf", b"", ErrorCode.NOT_A_MODEL),
    ],
)
def test_why_a_file_is_refused_is_a_code(watched, tmp_path, name, content, code) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    watched.engine.load(LoadRequest(str(path)))
    assert watched.wait(protocol.EngineFailed).code == code


def test_a_load_that_fails_in_the_worker_leaves_no_process(watched, tmp_path) -> None:
    path = tmp_path / "tiny.gguf"  # a header that holds, and weights that make no model
    TinyGguf().write(path)
    watched.engine.load(LoadRequest(str(path)))
    watched.wait(protocol.EngineFailed)
    watched.wait(EngineDied)
    watched.wait_for(LifeCycle.DEAD)


def test_stop_is_answered_and_the_engine_lives(watched) -> None:
    watched.load(EchoScript(answer="x" * 1000, token_s=0.02))
    watched.wait_for(LifeCycle.READY)
    watched.generate()
    watched.wait(protocol.StepDone)
    watched.engine.stop_request(protocol.RequestId(1))
    finished = watched.wait(protocol.RequestFinished)
    assert finished.stop_reason is protocol.StopReason.ABORTED
    watched.wait_for(LifeCycle.READY, count=2)
    assert not watched.of(EngineDied)


def test_a_stop_that_is_not_answered_becomes_a_kill(watched, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_PATIENCE_S", 0.3)
    watched.load(EchoScript(fault=Fault("decode", "hang", 1)))
    watched.wait_for(LifeCycle.READY)
    watched.generate()
    watched.wait(protocol.StepDone)
    watched.engine.stop_request(protocol.RequestId(1))
    assert watched.wait(EngineDied).cause == "killed"


def test_a_refused_question_of_another_kind_is_no_answer_to_stop(watched, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_PATIENCE_S", 0.5)
    watched.load(EchoScript(fault=Fault("decode", "hang", 1)))
    watched.wait_for(LifeCycle.READY)
    watched.generate()
    watched.wait(protocol.StepDone)
    watched.engine.stop_request(protocol.RequestId(1))
    refused = protocol.EngineFailed(code=ErrorCode.BAD_PARAMS, request_id=protocol.RequestId(-1))
    watched.engine._note(refused)
    watched.engine._move_on(refused)
    assert watched.wait(EngineDied).cause == "killed"


def test_a_stopped_process_is_noticed_and_its_return_too(watched, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "SILENCE_S", 0.5)
    watched.load()
    watched.wait_for(LifeCycle.READY)
    os.kill(watched.engine.pid, signal.SIGSTOP)
    assert not watched.wait(ResponseChanged).is_responding
    os.kill(watched.engine.pid, signal.SIGCONT)
    assert watched.wait(ResponseChanged, count=2).is_responding
    assert not watched.of(EngineDied)


def test_a_step_that_never_ends_is_noticed_though_the_meter_speaks(watched, monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "STEP_AGE_S", 0.5)
    watched.load(EchoScript(fault=Fault("decode", "hang", 1)))
    watched.wait_for(LifeCycle.READY)
    watched.generate()
    assert not watched.wait(ResponseChanged).is_responding
    watched.engine.kill()
    assert watched.wait(EngineDied).cause == "killed"


def test_another_model_replaces_the_engine_and_its_requests_are_told(watched) -> None:
    watched.load(EchoScript(answer="x" * 1000, token_s=0.05))
    watched.wait_for(LifeCycle.READY)
    first = watched.engine.pid
    watched.generate()
    watched.wait(protocol.StepDone)
    watched.load()
    assert watched.wait(EngineDied).cause == "replaced"
    watched.wait_for(LifeCycle.READY, count=2)
    assert watched.engine.pid != first
    assert not psutil.pid_exists(first)


def test_an_engine_of_another_protocol_is_said_and_ended(tmp_path) -> None:
    script = tmp_path / "other.py"
    script.write_text(
        "import os, struct, sys, time\n"
        "fd = int(sys.argv[sys.argv.index('--fd') + 1])\n"
        "name = b'\\x84\\xa4type\\xa5Hello\\xb0protocol_version\\x63\\xaeengine_version\\xa1x\\xa3pid\\x01'\n"
        "os.write(fd, struct.pack('!i', len(name)) + name)\n"
        "time.sleep(60)\n"
    )
    watched = Watched(tmp_path, WorkerCommand((sys.executable, "-I", str(script))))
    watched.load()
    failed = watched.wait(protocol.EngineFailed)
    assert failed.code == ErrorCode.PROTOCOL_MISMATCH
    assert failed.parameters == {"ours": protocol.PROTOCOL_VERSION, "theirs": 99}
    watched.wait(EngineDied)
    watched.engine.close()


def test_closing_while_loading_leaves_nothing(tmp_path) -> None:
    watched = Watched(tmp_path)
    watched.load(EchoScript(load_s=5))
    watched.wait(protocol.Hello)
    pid = watched.engine.pid
    watched.engine.close()
    assert not psutil.pid_exists(pid)


def test_restart_without_a_model_does_nothing(watched) -> None:
    watched.engine.restart()
    assert watched.states == []
