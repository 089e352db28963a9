"""A probe's worker answers, fails, dies or hangs, and is gone afterwards with its log; hostile files reach none."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

import pytest

from app.engines import probe as module
from app.engines.probe import ProbeOutcome, probe_memory
from backends import protocol
from backends.client import WorkerCommand
from backends.echo_engine import EchoScript, Fault
from backends.errors import ErrorCode
from tests.helpers.engine_client import write_script
from tests.helpers.gguf_files import ModelCopy, TinyGguf, header_of, write_header_only

MIB = 2**20
PARAMS = protocol.LoadParams(context_tokens=4096)
NUM_MUTATIONS, NUM_MUTATIONS_FULL = 10, 300


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    """Every temporary file of a probe lies here, and none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def echo(folder: Path, script: EchoScript, **fields: object) -> ProbeOutcome:
    return probe_memory(write_script(folder / "s.json", script), PARAMS, "echo", **fields)


def test_the_starter_is_told_to_the_byte_it_takes(starter_model) -> None:
    split = probe_memory(starter_model, PARAMS).split
    assert split is not None
    assert split.kv_reserved_bytes == 90 * MIB
    assert split.weights_bytes == pytest.approx(96_576_768, abs=0.01 * MIB)
    assert split.compute_bytes > 16 * MIB
    assert split.output_bytes == pytest.approx(49_152 * 4, abs=0.01 * MIB)
    # 49,152 tokens at some 300 bytes, the graph, and what the first steps add
    assert 8 * MIB < split.tables_bytes < 64 * MIB


def test_a_header_in_front_of_forty_gigabytes_of_nothing_is_told(starter_model, tmp_path) -> None:
    path = write_header_only(header_of(starter_model), 40 * 2**30, tmp_path / "hole.gguf")
    assert path.stat().st_blocks * 512 < 16 * MIB
    split = probe_memory(path, PARAMS).split
    assert split is not None
    assert split.kv_reserved_bytes == 90 * MIB


def test_what_the_engine_says_comes_back(tmp_path) -> None:
    split = protocol.MemorySplit(weights_bytes=5, kv_reserved_bytes=7)
    assert echo(tmp_path, EchoScript(memory=split)) == ProbeOutcome(split=split)


def test_a_file_that_cannot_be_true_reaches_no_worker(tmp_path) -> None:
    no_worker = WorkerCommand(("/nowhere",))
    for path, code in (
        (tmp_path / "none.gguf", ErrorCode.FILE_MISSING),
        (TinyGguf(num_tensors=2**60).write(tmp_path / "huge.gguf"), ErrorCode.HEADER_INVALID),
        (TinyGguf(magic=b"ZZZZ").write(tmp_path / "other.gguf"), ErrorCode.NOT_A_MODEL),
    ):
        outcome = probe_memory(path, PARAMS, command=no_worker)
        assert outcome.failed is not None
        assert (outcome.failed.code, outcome.failed.parameters["path"]) == (code, str(path))
        assert (outcome.split, outcome.died, outcome.is_late) == (None, None, False)


def test_a_load_that_would_fail_is_told_with_its_reason(tmp_path) -> None:
    outcome = probe_memory(TinyGguf().write(tmp_path / "tiny.gguf"), PARAMS)
    assert outcome.failed is not None
    assert outcome.failed.code == ErrorCode.LOAD_FAILED


def test_a_worker_that_dies_is_told_with_its_last_words(tmp_path) -> None:
    for how, signal in (("abort", 6), ("segv", 11)):
        outcome = echo(tmp_path, EchoScript(fault=Fault("probe", how)))
        assert outcome.died is not None
        assert outcome.died.signal == signal
        assert any("Fatal Python error" in line for line in outcome.died.last_log_lines)


def test_an_unforeseen_error_is_told(tmp_path) -> None:
    outcome = echo(tmp_path, EchoScript(fault=Fault("probe", "raise")))
    assert outcome.failed is not None
    assert outcome.failed.code == ErrorCode.ENGINE_FAULT


def test_a_worker_that_does_not_start_is_told(tmp_path) -> None:
    outcome = echo(tmp_path, EchoScript(), command=WorkerCommand(("/nowhere/python",)))
    assert outcome.died is not None
    assert outcome.died.cause == "not_started"


def test_a_worker_that_hangs_is_killed_at_the_limit(tmp_path) -> None:
    assert echo(tmp_path, EchoScript(fault=Fault("probe", "hang")), limit_s=0.5) == ProbeOutcome(is_late=True)


def test_a_worker_that_is_stopped_by_the_system_is_killed_at_the_limit(tmp_path) -> None:
    assert echo(tmp_path, EchoScript(fault=Fault("probe", "stop")), limit_s=0.5) == ProbeOutcome(is_late=True)


def test_a_worker_that_does_not_end_in_order_is_killed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_END_PATIENCE_S", 0.2)
    stubborn = (
        f"import sys, threading; sys.path.insert(0, {str(Path(module.__file__).parents[2])!r})\n"
        "from backends import protocol, wire\n"
        "from multiprocessing.connection import Connection\n"
        "pipe = wire.command_pipe(Connection(int(sys.argv[sys.argv.index('--fd') + 1])))\n"
        "command = pipe.receive()\n"
        "pipe.send(protocol.Progress(request_id=command.request_id, phase='probe', done=1, total=1,"
        " memory=protocol.MemorySplit(weights_bytes=3)))\n"
        "threading.Event().wait()\n"
    )
    command = WorkerCommand((sys.executable, "-c", stubborn))
    assert echo(tmp_path, EchoScript(), command=command) == ProbeOutcome(split=protocol.MemorySplit(weights_bytes=3))


def test_a_worker_of_another_version_is_told(tmp_path) -> None:
    foreign = (
        f"import sys; sys.path.insert(0, {str(Path(module.__file__).parents[2])!r})\n"
        "from backends import protocol, wire\n"
        "from multiprocessing.connection import Connection\n"
        "pipe = wire.command_pipe(Connection(int(sys.argv[sys.argv.index('--fd') + 1])))\n"
        "pipe.send(protocol.Hello(99, '0', 1))\n"
        "pipe.receive(); pipe.receive()\n"
    )
    outcome = echo(tmp_path, EchoScript(), command=WorkerCommand((sys.executable, "-c", foreign)))
    assert outcome.failed is not None
    assert (outcome.failed.code, outcome.failed.parameters) == (
        ErrorCode.PROTOCOL_MISMATCH,
        {"ours": protocol.PROTOCOL_VERSION, "theirs": 99},
    )


def test_a_probe_that_nobody_wants_any_more_ends_at_once_and_says_nothing(tmp_path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    script = EchoScript(fault=Fault("probe", "hang"))
    assert echo(tmp_path, script, cancelled=cancelled, limit_s=60.0) == ProbeOutcome()


def test_a_probe_can_be_cancelled_while_it_runs(tmp_path) -> None:
    cancelled = threading.Event()
    timer = threading.Timer(0.3, cancelled.set)
    timer.start()
    script = EchoScript(fault=Fault("probe", "hang"))
    assert echo(tmp_path, script, cancelled=cancelled, limit_s=60.0) == ProbeOutcome()
    timer.join()


def probe_mutations(starter_model: Path, folder: Path, count: int) -> None:
    """Each ends in an answer or in a reason, and the sound model is told as before afterwards."""
    copy = ModelCopy(starter_model, folder / "mutated.gguf")
    for seed in range(count):
        changed = copy.mutate(seed)
        outcome = probe_memory(copy.path, PARAMS)
        assert outcome.split or outcome.failed or outcome.died, f"seed {seed}: {outcome}; {changed}"
    copy.restore()
    told = probe_memory(copy.path, PARAMS).split
    assert told is not None
    assert told.kv_reserved_bytes == 90 * MIB


def test_mutated_models_are_answered_refused_or_end_their_worker_only(starter_model, tmp_path) -> None:
    probe_mutations(starter_model, tmp_path, NUM_MUTATIONS)


@pytest.mark.full
@pytest.mark.timeout(3_600)
def test_hundreds_of_mutated_models_are_answered_refused_or_end_their_worker_only(starter_model, tmp_path) -> None:
    probe_mutations(starter_model, tmp_path, NUM_MUTATIONS_FULL)


def test_a_path_is_meant_from_where_the_program_stands(starter_model, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(starter_model.parent)
    split = probe_memory(Path(starter_model.name), PARAMS).split
    assert split is not None
    assert split.kv_reserved_bytes == 90 * MIB
