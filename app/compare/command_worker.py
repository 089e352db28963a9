"""A worker that does one command after the other and is ended the moment it is not wanted any more.

For commands that need no loaded model, or one of their own: quantizing cannot be interrupted, so that its worker's end
is the only way to stop it. Knows no file and no terminal.
"""

from __future__ import annotations

import queue
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from app.bench.engine_run import EngineEndedError, EngineRefusedError, StoppedError
from app.deaths import words_for_death
from app.errors import app_error
from backends import protocol
from backends.client import ClientEvent, EngineClient, EngineDied, WorkerCommand, bundled_worker
from backends.errors import ErrorCode

_END_PATIENCE_S = 2.0
_CANCEL_INTERVAL_S = 0.05  # how soon it is noticed that nobody wants it any more
_SILENCE_LIMIT_S = 30.0  # the meter speaks ten times a second, whatever the engine does

_EventT = TypeVar("_EventT", bound=protocol.Event)

OnProgress = Callable[[protocol.Progress], None]


class CommandWorker:
    """One worker; use it as a context manager, which ends it.

    Attributes:
        _is_cancelled: whether whoever waits wants an end.
        _events: what the worker said and nobody looked at yet.
        _folder: of its log.
    """

    def __init__(self, is_cancelled: Callable[[], bool], command: WorkerCommand | None = None) -> None:
        self._is_cancelled = is_cancelled
        self._command = command or bundled_worker()
        self._events: queue.SimpleQueue[ClientEvent] = queue.SimpleQueue()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._client: EngineClient | None = None

    def __enter__(self) -> CommandWorker:
        """Start the process."""
        self._folder = tempfile.TemporaryDirectory(prefix="cutaway-worker-", ignore_cleanup_errors=True)
        log = Path(self._folder.name) / "worker.log"
        self._client = EngineClient(self._command, "llama_cpp", log, lambda _client, event: self._events.put(event))
        self._client.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End the process, by force where something went wrong; it is gone afterwards."""
        client, folder = self._client, self._folder
        assert client is not None
        assert folder is not None
        if kind is None:
            client.send(protocol.Shutdown())
        if kind is not None or not client.join(_END_PATIENCE_S):
            client.kill()
            client.join(2 * _END_PATIENCE_S)
        folder.cleanup()

    @property
    def pid(self) -> int:
        """The worker's process id; 0 before it started."""
        return self._client.pid if self._client is not None else 0

    def ask(self, command: protocol.Command, kind: type[_EventT], on_progress: OnProgress | None = None) -> _EventT:
        """Send a command and return its one answer.

        Args:
            command: what is to be done.
            kind: of event that answers it.
            on_progress: told how far it is, on this thread.

        Raises:
            EngineRefusedError: the engine cannot do it, and lives on.
            EngineEndedError: the worker died over it.
            StoppedError: it is not wanted any more.
        """
        assert self._client is not None
        self._client.send(command)
        while True:
            event = self._next()
            if isinstance(event, kind):
                return event
            if isinstance(event, protocol.Progress) and on_progress is not None:
                on_progress(event)

    def answer(self, request: protocol.Generate) -> tuple[str, protocol.RequestFigures]:
        """Have one request answered and return its text and figures; raises as ask() does."""
        assert self._client is not None
        self._client.send(request)
        text = ""
        while True:
            match self._next():
                case protocol.StepDone() as step:
                    text += "".join(piece.text for piece in step.pieces)
                case protocol.RequestFinished() as finished:
                    return text, finished.figures

    def finish(self, command: protocol.Command, phase: str, on_progress: OnProgress) -> None:
        """Send a command that is answered by its progress alone, and wait until it is done; raises as ask() does."""
        assert self._client is not None
        self._client.send(command)
        while True:
            event = self._next()
            if isinstance(event, protocol.Progress) and event.phase == phase:
                on_progress(event)
                if event.done >= event.total:
                    return

    def _next(self) -> ClientEvent:
        """Return the next event that matters; a failure is raised."""
        assert self._client is not None
        while True:
            if self._is_cancelled():
                raise StoppedError
            try:
                event = self._events.get(timeout=_CANCEL_INTERVAL_S)
            except queue.Empty:
                if self._client.silence_s > _SILENCE_LIMIT_S:
                    self._client.kill()  # its death is the next event, and is told in words
                continue
            match event:
                case protocol.MemoryRead() | protocol.LogRecorded():
                    continue
                case protocol.Hello() if event.protocol_version != protocol.PROTOCOL_VERSION:
                    versions: dict[str, str | int | float] = {
                        "ours": protocol.PROTOCOL_VERSION,
                        "theirs": event.protocol_version,
                    }
                    raise app_error(ErrorCode.PROTOCOL_MISMATCH, versions)
                case protocol.EngineFailed():
                    raise EngineRefusedError(event)
                case EngineDied():
                    raise EngineEndedError(
                        words_for_death(event.exit_code, event.signal, "", event.cause, log_lines=event.last_log_lines)
                    )
            return event
