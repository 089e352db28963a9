"""The worker's loop: order, Stop in the middle of a step, faults that end no process, orphans that do not exist."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from backends import protocol, registry
from backends import worker as worker_module
from backends.client import EngineDied
from backends.echo_engine import EchoScript, Fault
from backends.errors import EngineError, ErrorCode
from tests.conftest import ROOT
from tests.helpers.engine_client import LoggedClient, write_script


@pytest.fixture
def worker(tmp_path):
    with LoggedClient("echo", tmp_path / "log") as started:
        yield started


def request(number: int, text: str = "hello", **fields: object) -> protocol.Generate:
    return protocol.Generate(request_id=protocol.RequestId(number), prompt=protocol.Text(text), **fields)


def test_ten_tokens_are_echoed(worker) -> None:
    worker.load()
    text, ids, finished = worker.answer(request(1, "ten tokens"))
    assert text == "ten tokens"
    assert ids == tuple(b"ten tokens")
    assert finished.stop_reason is protocol.StopReason.END_OF_TEXT
    assert finished.figures.new_tokens == 10


def test_requests_are_answered_in_the_order_they_came(worker) -> None:
    worker.load()
    for number in (1, 2, 3):
        worker.client.send(request(number, f"text {number}"))
    worker.wait(protocol.RequestFinished, count=3)
    assert [event.request_id for event in worker.of(protocol.RequestFinished)] == [1, 2, 3]


def test_a_command_without_a_model_is_refused_in_a_code(worker) -> None:
    worker.client.send(request(5))
    failed = worker.wait(protocol.EngineFailed)
    assert (failed.code, failed.request_id) == (ErrorCode.NO_MODEL, 5)


def test_a_second_load_is_refused_and_the_first_stays(worker) -> None:
    worker.load()
    worker.client.send(protocol.LoadModel(""))
    assert worker.wait(protocol.EngineFailed).code == ErrorCode.ALREADY_LOADED
    assert worker.answer(request(1, "still here"))[0] == "still here"


def test_unload_makes_room_for_another_load(worker) -> None:
    worker.load()
    worker.client.send(protocol.UnloadModel())
    worker.client.send(protocol.LoadModel(""))
    worker.wait(protocol.ModelLoaded, count=2)


@pytest.mark.parametrize(
    "command",
    [
        protocol.CollectImportance(request_id=protocol.RequestId(4), token_ids=(1,), target_path="a"),
        protocol.Quantize(request_id=protocol.RequestId(4), source_path="a", target_path="b", quantization="Q4_0"),
    ],
)
def test_what_an_engine_cannot_do_is_said(worker, command) -> None:
    worker.load()
    worker.client.send(command)
    failed = worker.wait(protocol.EngineFailed)
    assert (failed.code, failed.request_id) == (ErrorCode.UNSUPPORTED_COMMAND, 4)


def probe(number: int, path: object = "") -> protocol.ProbeMemory:
    return protocol.ProbeMemory(request_id=protocol.RequestId(number), model_path=str(path))


def test_a_probe_needs_no_model_and_loads_none(tmp_path, worker) -> None:
    split = protocol.MemorySplit(weights_bytes=5, kv_reserved_bytes=7)
    worker.client.send(probe(7, write_script(tmp_path / "s.json", EchoScript(memory=split))))
    answer = worker.wait(protocol.Progress)
    assert (answer.request_id, answer.phase, answer.done, answer.total, answer.memory) == (7, "probe", 1, 1, split)
    worker.client.send(request(8))
    assert worker.wait(protocol.EngineFailed).code == ErrorCode.NO_MODEL


def test_a_probe_leaves_a_loaded_model_alone(tmp_path, worker) -> None:
    worker.load()
    other = write_script(tmp_path / "s.json", EchoScript(answer="another model"))
    worker.client.send(probe(7, other))
    worker.wait(protocol.Progress, lambda event: event.phase == "probe")
    assert worker.answer(request(8, "the first one"))[0] == "the first one"


def test_a_probe_that_cannot_be_done_is_told_under_its_id(tmp_path, worker) -> None:
    worker.client.send(probe(7, tmp_path / "none.json"))
    failed = worker.wait(protocol.EngineFailed)
    assert (failed.code, failed.request_id) == (ErrorCode.FILE_MISSING, 7)


def test_the_first_reading_comes_before_any_load(worker) -> None:
    worker.load()
    kinds = [type(event) for event in worker.events]
    assert kinds.index(protocol.MemoryRead) < kinds.index(protocol.Progress)
    assert worker.of(protocol.MemoryRead)[0].state is protocol.LifeCycle.READY


def test_a_library_that_cannot_be_loaded_is_said_when_it_is_needed(monkeypatch) -> None:
    def fail(_name: str) -> None:
        raise ImportError("no library here")

    monkeypatch.setattr(registry, "create_engine", fail)
    loop = worker_module.Worker(None, registry.BACKENDS["echo"])  # type: ignore[arg-type]
    loop._import_engine()
    for ask in (lambda: loop._probe(probe(1)), lambda: loop._load(protocol.LoadModel(""))):
        with pytest.raises(EngineError) as caught:
            ask()
        assert caught.value.code is ErrorCode.ENGINE_MISSING
        assert caught.value.parameters["detail"] == "no library here"


def test_an_unforeseen_error_fails_the_request_and_the_worker_lives(tmp_path, worker) -> None:
    worker.load(write_script(tmp_path / "s.json", EchoScript(fault=Fault("decode", "raise", 3))))
    worker.client.send(request(1))
    failed = worker.wait(protocol.EngineFailed)
    assert (failed.code, failed.request_id) == (ErrorCode.ENGINE_FAULT, 1)
    worker.client.send(protocol.CountTokens(protocol.RequestId(2), protocol.Text("abc")))
    assert worker.wait(protocol.TokensCounted).tokens == 3


def test_a_script_that_is_none_is_not_a_model(tmp_path, worker) -> None:
    (tmp_path / "bad.json").write_text('{"answer": 5}')
    worker.client.send(protocol.LoadModel(str(tmp_path / "bad.json")))
    assert worker.wait(protocol.EngineFailed).code == ErrorCode.NOT_A_MODEL


def test_stop_cuts_a_step_short_and_keeps_what_was_said(tmp_path, worker) -> None:
    # Each token takes a minute but the first three, which the stop string check releases at once.
    worker.load(write_script(tmp_path / "s.json", EchoScript(answer="abc", token_s=60)))
    worker.client.send(request(1))
    worker.client.send(protocol.Abort(protocol.RequestId(1)))
    finished = worker.wait(protocol.RequestFinished)
    assert finished.stop_reason is protocol.StopReason.ABORTED


def test_stop_while_reading_ends_the_reading(tmp_path, worker) -> None:
    worker.load(write_script(tmp_path / "s.json", EchoScript(prefill_s=60)))
    worker.client.send(request(1))
    worker.client.send(protocol.Abort(protocol.RequestId(1)))
    assert worker.wait(protocol.RequestFinished).figures.new_tokens == 0


def test_stopping_one_request_leaves_the_others(tmp_path, worker) -> None:
    worker.load(write_script(tmp_path / "s.json", EchoScript(answer="word", token_s=0.05)))
    for number in (1, 2):
        worker.client.send(request(number))
    worker.client.send(protocol.Abort(protocol.RequestId(1)))
    worker.wait(protocol.RequestFinished, count=2)
    reasons = {event.request_id: event.stop_reason for event in worker.of(protocol.RequestFinished)}
    assert reasons == {1: protocol.StopReason.ABORTED, 2: protocol.StopReason.END_OF_TEXT}


def test_stopping_what_is_over_changes_nothing(worker) -> None:
    worker.load()
    worker.answer(request(1))
    worker.client.send(protocol.Abort(protocol.RequestId(1)))
    assert worker.answer(request(2, "next"))[0] == "next"
    assert len(worker.of(protocol.RequestFinished)) == 2


def test_tokens_are_counted_while_a_step_runs(tmp_path, worker) -> None:
    worker.load(write_script(tmp_path / "s.json", EchoScript(fault=Fault("decode", "hang", 1))))
    worker.client.send(request(1))
    worker.wait(protocol.StepDone)
    worker.client.send(protocol.CountTokens(protocol.RequestId(2), protocol.Text("four")))
    assert worker.wait(protocol.TokensCounted).tokens == 4


def test_a_hanging_step_grows_old_in_the_readings(tmp_path, worker) -> None:
    worker.load(write_script(tmp_path / "s.json", EchoScript(fault=Fault("decode", "hang", 1))))
    worker.client.send(request(1))
    reading = worker.wait(protocol.MemoryRead, lambda event: event.step_age_s > 0.3)
    assert reading.state is protocol.LifeCycle.BUSY


def test_the_state_of_a_load_is_in_the_readings(tmp_path, worker) -> None:
    worker.client.send(protocol.LoadModel(str(write_script(tmp_path / "s.json", EchoScript(load_s=1.0)))))
    worker.wait(protocol.MemoryRead, lambda event: event.state is protocol.LifeCycle.LOADING)
    worker.wait(protocol.ModelLoaded)
    worker.wait(protocol.MemoryRead, lambda event: event.state is protocol.LifeCycle.READY)


def test_nonsense_from_the_program_ends_the_worker_with_words_in_its_log(tmp_path) -> None:
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.client._pipe._connection.send_bytes(b"\xc1nonsense")
        died = worker.wait(EngineDied)
    assert died.exit_code == 3
    assert any("MessageError" in line for line in died.last_log_lines)


PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from backends import client, protocol
log = Path({log!r})
worker = client.EngineClient(client.bundled_worker(), "echo", log, lambda c, e: None)
worker.start()
worker.send(protocol.LoadModel({script!r}))
worker.send(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("x" * 1000)))
while not worker.pid:
    time.sleep(0.01)
time.sleep(0.5)
print(worker.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("state", ["writing", "stopped", "hanging", "idle"])
def test_no_worker_outlives_a_program_that_was_killed(tmp_path, state) -> None:
    fault = Fault("decode", "hang", 1) if state == "hanging" else None
    answer = "x" if state == "idle" else "y" * 10_000
    script = write_script(tmp_path / "s.json", EchoScript(answer=answer, token_s=0.01, fault=fault))
    source = textwrap.dedent(PARENT).format(root=str(ROOT), log=str(tmp_path / "log"), script=str(script))
    parent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    if state == "stopped":
        os.kill(worker.pid, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 2.0
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
