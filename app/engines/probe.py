"""Asks an engine's allocator what a model would take, in a worker of its own that ends with the answer.

The file's header is checked first: a file that cannot be true reaches no engine. A worker that dies, hangs or is not
wanted any more costs its caller nothing but the answer.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from app.engines.model_check import checked_path
from backends import protocol
from backends.client import ClientEvent, EngineClient, EngineDied, WorkerCommand, bundled_worker
from backends.errors import EngineError, ErrorCode

# A probe takes 0.2 to 0.6 s, and the start of Python from a cold disk some seconds more.
LIMIT_S = 20.0
_END_PATIENCE_S = 1.0
# How soon a probe notices that it is not wanted any more.
_CANCEL_INTERVAL_S = 0.05
_REQUEST = protocol.RequestId(1)

_Answer = protocol.Progress | protocol.EngineFailed | EngineDied


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What became of a probe; at most one of the first three is set, and none when it was cancelled or took too long.

    Attributes:
        split: what the load would take.
        failed: why the engine, or the check of the header, says that the load would fail.
        died: how the worker ended without an answer.
        is_late: it did not answer in time and was killed.
    """

    split: protocol.MemorySplit | None = None
    failed: protocol.EngineFailed | None = None
    died: EngineDied | None = None
    is_late: bool = False


def probe_memory(
    path: Path,
    params: protocol.LoadParams,
    backend: str = "llama_cpp",
    *,
    command: WorkerCommand | None = None,
    limit_s: float = LIMIT_S,
    cancelled: threading.Event | None = None,
) -> ProbeOutcome:
    """Return what loading this file with these params would take; blocks for some tenths of a second.

    Args:
        path: the model file; of a split set any.
        params: how it would be loaded.
        backend: a name of the registry.
        command: how the worker is started; None starts our own.
        limit_s: how long it may take, the worker's start included.
        cancelled: set by another thread when the answer is not wanted any more.
    """
    try:
        path = checked_path(path, backend)
    except EngineError as error:
        return ProbeOutcome(failed=protocol.EngineFailed(code=error.code, parameters=dict(error.parameters)))
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()

    def on_event(_client: EngineClient, event: ClientEvent) -> None:
        match event:
            case protocol.Hello() if event.protocol_version != protocol.PROTOCOL_VERSION:
                versions: dict[str, str | int | float] = {
                    "ours": protocol.PROTOCOL_VERSION,
                    "theirs": event.protocol_version,
                }
                answers.put(protocol.EngineFailed(code=ErrorCode.PROTOCOL_MISMATCH, parameters=versions))
            case protocol.Progress(phase="probe") | protocol.EngineFailed() | EngineDied():
                answers.put(event)

    with tempfile.TemporaryDirectory(prefix="cutaway-probe-", ignore_cleanup_errors=True) as folder:
        client = EngineClient(command or bundled_worker(), backend, Path(folder) / "worker.log", on_event)
        client.start()
        client.send(protocol.ProbeMemory(request_id=_REQUEST, model_path=str(path.absolute()), params=params))
        answer = None
        try:
            answer = _wait(answers, time.monotonic() + limit_s, cancelled or threading.Event())
        finally:
            _end(client, in_order=answer is not None)
    return _outcome(answer, is_late=cancelled is None or not cancelled.is_set())


def _wait(answers: queue.SimpleQueue[_Answer], deadline_s: float, cancelled: threading.Event) -> _Answer | None:
    """Return the worker's answer; None when there is none in time, or it is not wanted any more."""
    while not cancelled.is_set() and (left_s := deadline_s - time.monotonic()) > 0:
        try:
            return answers.get(timeout=min(left_s, _CANCEL_INTERVAL_S))
        except queue.Empty:
            continue
    return None


def _end(client: EngineClient, *, in_order: bool) -> None:
    """End the worker, by force where nothing came of it or it takes long; it is gone afterwards."""
    if in_order:
        client.send(protocol.Shutdown())
    if not in_order or not client.join(_END_PATIENCE_S):
        client.kill()
        client.join(2 * _END_PATIENCE_S)


def _outcome(answer: _Answer | None, *, is_late: bool) -> ProbeOutcome:
    match answer:
        case protocol.Progress():
            return ProbeOutcome(split=answer.memory)
        case protocol.EngineFailed():
            return ProbeOutcome(failed=answer)
        case EngineDied():
            return ProbeOutcome(died=answer)
    return ProbeOutcome(is_late=is_late)
