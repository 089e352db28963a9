"""A worker for single commands: answers, refusals, its death and its end when nobody wants it any more."""

from __future__ import annotations

import threading

import psutil
import pytest

from app.bench.engine_run import EngineEndedError, EngineRefusedError, StoppedError
from app.compare.command_worker import CommandWorker
from app.errors import AppError
from backends import protocol
from backends.client import WorkerCommand
from backends.errors import ErrorCode
from tests.helpers.small_llama import write_small_llama

ID = protocol.RequestId(1)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_small_llama(tmp_path_factory.mktemp("models") / "small.gguf")


def quantize(source, target="", quantization="Q8_0", **fields):
    return protocol.Quantize(
        request_id=ID, source_path=str(source), target_path=str(target), quantization=quantization, **fields
    )


def test_one_worker_answers_one_command_after_the_other_and_is_gone_afterwards(model) -> None:
    with CommandWorker(lambda: False) as worker:
        sizes = [
            worker.ask(quantize(model, quantization=name, dry_run=True), protocol.Quantized).size_bytes
            for name in ("Q8_0", "Q4_0")
        ]
        with pytest.raises(EngineRefusedError) as caught:
            worker.ask(quantize("/none.gguf"), protocol.Quantized)
        assert caught.value.code == ErrorCode.FILE_MISSING
        done: list[float] = []
        params = protocol.LoadParams(context_tokens=64)
        loaded = worker.ask(
            protocol.LoadModel(str(model), params), protocol.ModelLoaded, lambda event: done.append(event.done)
        )
        assert loaded.architecture == "llama"
        assert done[-1] == 1.0
        sampling = protocol.SamplingParams(temperature=0.0, max_tokens=4, ignore_eos=True)
        _text, figures = worker.answer(
            protocol.Generate(request_id=ID, prompt=protocol.TokenIds((1, 5)), params=sampling)
        )
        assert figures.new_tokens == 4
        process = psutil.Process(worker.pid)
    assert sizes[0] > sizes[1] > 0
    assert not process.is_running()


def test_a_command_of_progress_alone_ends_when_it_is_done(model, tmp_path) -> None:
    with CommandWorker(lambda: False) as worker:
        worker.ask(protocol.LoadModel(str(model), protocol.LoadParams(context_tokens=64)), protocol.ModelLoaded)
        done: list[float] = []
        command = protocol.CollectImportance(
            request_id=ID, token_ids=tuple(range(3, 67)), target_path=str(tmp_path / "i.gguf"), window_tokens=32
        )
        worker.finish(command, "importance", lambda event: done.append(event.done))
    assert done == [0.0, 1.0, 2.0]
    assert (tmp_path / "i.gguf").is_file()


def test_a_worker_that_dies_is_told_in_words(model) -> None:
    with CommandWorker(lambda: False) as worker:
        worker.ask(quantize(model, dry_run=True), protocol.Quantized)
        psutil.Process(worker.pid).kill()
        with pytest.raises(EngineEndedError) as caught:
            worker.ask(quantize(model, dry_run=True), protocol.Quantized)
    assert "ended the engine" in caught.value.words.message


def test_a_worker_that_cannot_start_is_told_in_words(model) -> None:
    command = WorkerCommand(("/no/such/program",))
    with CommandWorker(lambda: False, command) as worker, pytest.raises(AppError) as caught:
        worker.ask(quantize(model, dry_run=True), protocol.Quantized)
    assert "could not be started" in caught.value.words.message


def test_what_is_not_wanted_any_more_ends_at_once(model) -> None:
    cancelled = threading.Event()
    with CommandWorker(cancelled.is_set) as worker:
        worker.ask(quantize(model, dry_run=True), protocol.Quantized)
        process = psutil.Process(worker.pid)
        cancelled.set()
        with pytest.raises(StoppedError):
            worker.ask(protocol.Tokenize(ID, protocol.Text("never answered")), protocol.Tokenized)
    assert not process.is_running()
