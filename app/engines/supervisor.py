"""Who starts, watches and restarts the one engine of the window or the command line.

Keeps the life cycle (protocol.LifeCycle) and decides policy: check a file's header before any worker sees it, hold
commands to the order the worker expects, notice silence, turn an unanswered Stop into a kill. Knows no chat, no words
and no Qt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.engines.model_check import checked_path
from backends import protocol
from backends.client import ClientEvent, EngineClient, EngineDied, WorkerCommand, bundled_worker
from backends.errors import EngineError, ErrorCode
from backends.protocol import LifeCycle

SILENCE_S = 3.0  # the meter speaks ten times a second; a worker that says nothing for this long is stopped or stuck
START_SILENCE_S = 10.0  # Python and its modules on a cold disk, before the first word
STEP_AGE_S = 30.0  # a step this old is not coming back by itself
STOP_PATIENCE_S = 2.0  # a Stop that was not answered by then becomes a kill
END_PATIENCE_S = 2.0  # what a Shutdown may take before it becomes a kill
_WATCH_INTERVAL_S = 0.25


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What is to be loaded; kept for a restart.

    Attributes:
        path: the model file; "" for an engine that needs none.
        backend: a name of the registry.
        params: how.
    """

    path: str
    backend: str = "llama_cpp"
    params: protocol.LoadParams = field(default_factory=protocol.LoadParams)


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The life cycle moved on."""

    state: LifeCycle


@dataclass(frozen=True, slots=True)
class ResponseChanged:
    """The engine stopped answering, or answers again.

    Attributes:
        is_responding: whether it does.
        silence_s: for how long it said nothing.
    """

    is_responding: bool
    silence_s: float


EngineEvent = protocol.Event | EngineDied | StateChanged | ResponseChanged
OnEngineEvent = Callable[[EngineEvent], None]
OpenLog = Callable[[], Path]


class EngineSupervisor:
    """Keeps at most one engine alive.

    Every event is handed to `on_event` on one of this object's threads or the caller's, in the order of the pipe.

    Attributes:
        loaded: what the engine said when it was ready; None before and after.
        died: how the last engine ended; None while none has.
        request: what was last asked to load; what restart() repeats.
    """

    def __init__(self, open_log: OpenLog, on_event: OnEngineEvent, command: WorkerCommand | None = None) -> None:
        self.loaded: protocol.ModelLoaded | None = None
        self.died: EngineDied | None = None
        self.request: LoadRequest | None = None
        self._open_log = open_log
        self._on_event = on_event
        self._command = command or bundled_worker()
        self._lock = threading.RLock()
        self._client: EngineClient | None = None
        self._state = LifeCycle.DEAD
        self._unfinished: set[protocol.RequestId] = set()
        self._kill_at_s = 0.0
        self._is_responding = True
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    # ---------------------------------------------------------------------------------------- callers

    @property
    def state(self) -> LifeCycle:
        """Where the engine stands."""
        return self._state

    @property
    def pid(self) -> int:
        """The worker's process id, 0 when there is none."""
        client = self._client
        return client.pid if client is not None and self._state is not LifeCycle.DEAD else 0

    @property
    def is_responding(self) -> bool:
        """Whether the engine was heard of lately."""
        return self._is_responding

    def load(self, request: LoadRequest) -> None:
        """Start a fresh worker with this model, ending the present one; returns at once."""
        with self._lock:
            self.request = request
            previous, self._client = self._client, None
            self.loaded = self.died = None
            if self._unfinished:
                self._on_event(EngineDied(None, None, (), "replaced"))
            self._unfinished.clear()
            self._kill_at_s = 0.0
            self._set_state(LifeCycle.STARTING)
            self._watch()
        threading.Thread(target=self._start, args=(request, previous), name="engine-start", daemon=True).start()

    def restart(self) -> None:
        """Load again what was loaded last; nothing happens when nothing was."""
        if self.request is not None:
            self.load(self.request)

    def send(self, command: protocol.Command) -> bool:
        """Queue a command for a loaded engine; returns False when there is none."""
        with self._lock:
            client = self._client
            if client is None or self._state not in (LifeCycle.READY, LifeCycle.BUSY):
                return False
            if isinstance(command, protocol.Generate):
                self._unfinished.add(command.request_id)
                self._set_state(LifeCycle.BUSY)
            client.send(command)
            return True

    def stop_request(self, request_id: protocol.RequestId) -> None:
        """Abort a request; when that is not answered in STOP_PATIENCE_S, the engine is killed."""
        with self._lock:
            if request_id in self._unfinished and self.send(protocol.Abort(request_id)):
                self._kill_at_s = self._kill_at_s or time.monotonic() + STOP_PATIENCE_S

    def kill(self) -> None:
        """End the engine now; EngineDied follows."""
        with self._lock:
            if self._client is not None:
                self._client.kill()

    def unload(self) -> None:
        """End the engine in order, by force when it takes long; EngineDied follows."""
        with self._lock:
            client = self._client
            if client is None or self._state is LifeCycle.DEAD:
                return
            self._set_state(LifeCycle.STOPPING)
            client.send(protocol.Shutdown())
            self._kill_at_s = time.monotonic() + END_PATIENCE_S

    def close(self) -> None:
        """End the engine and every thread; blocks until the process is gone."""
        with self._lock:
            client, self._client = self._client, None
            self._state = LifeCycle.DEAD
        self._ended.set()
        _end_client(client)
        if self._watcher is not None:
            self._watcher.join(END_PATIENCE_S)

    # ----------------------------------------------------------------------------------- start thread

    def _start(self, request: LoadRequest, previous: EngineClient | None) -> None:
        """End the previous worker (two models at once may not fit), check the file, start the new one."""
        _end_client(previous)
        path, failure = _checked_path(request)
        with self._lock:
            if self.request is not request or self._ended.is_set():
                return
            if failure is not None:
                self._set_state(LifeCycle.DEAD)
                self._on_event(failure)
                return
            client = EngineClient(self._command, request.backend, self._open_log(), self._on_client_event)
            self._client = client
            client.start()
            client.send(protocol.LoadModel(path, request.params))

    # ---------------------------------------------------------------------------------- reader thread

    def _on_client_event(self, client: EngineClient, event: ClientEvent) -> None:
        with self._lock:
            if client is not self._client:
                return  # an engine that was replaced; its end interests nobody
            self._note(event)
            self._on_event(event)
            self._move_on(event)

    def _note(self, event: ClientEvent) -> None:
        """Remember what the event tells, before anybody hears of it."""
        match event:
            case protocol.ModelLoaded():
                self.loaded = event
            case protocol.RequestFinished() | protocol.EngineFailed():
                if event.request_id in self._unfinished or not event.request_id:
                    self._kill_at_s = 0.0  # a refused question of another kind is no answer to Stop
                self._unfinished.discard(event.request_id)
            case EngineDied():
                self.died, self.loaded = event, None
                self._unfinished.clear()
                self._kill_at_s = 0.0
                self._set_responding(True)

    def _move_on(self, event: ClientEvent) -> None:
        """Change the state as the event demands."""
        match event:
            case protocol.Hello() if event.protocol_version != protocol.PROTOCOL_VERSION:
                parameters: dict[str, str | int | float] = {
                    "ours": protocol.PROTOCOL_VERSION,
                    "theirs": event.protocol_version,
                }
                self._on_event(protocol.EngineFailed(code=ErrorCode.PROTOCOL_MISMATCH, parameters=parameters))
                self.kill()
            case protocol.Hello():
                self._set_state(LifeCycle.LOADING)
            case protocol.ModelLoaded():
                self._set_state(LifeCycle.READY)
            case protocol.EngineFailed() if self._state is LifeCycle.LOADING and not event.request_id:
                self.unload()  # a load that failed leaves an empty worker behind
            case protocol.RequestFinished() | protocol.EngineFailed():
                if self._state is LifeCycle.BUSY and not self._unfinished:
                    self._set_state(LifeCycle.READY)
            case EngineDied():
                self._set_state(LifeCycle.DEAD)

    # --------------------------------------------------------------------------------- watcher thread

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch_engine, name="engine-watcher", daemon=True)
            self._watcher.start()

    def _watch_engine(self) -> None:
        while not self._ended.wait(_WATCH_INTERVAL_S):
            with self._lock:
                self._look(time.monotonic())

    def _look(self, now_s: float) -> None:
        """Notice silence and run out of patience."""
        client = self._client
        if client is None or self._state is LifeCycle.DEAD:
            return
        if 0 < self._kill_at_s < now_s:
            self._kill_at_s = 0.0
            client.kill()
            return
        if self._state in (LifeCycle.READY, LifeCycle.BUSY):
            self._set_responding(client.silence_s < SILENCE_S and client.step_age_s < STEP_AGE_S)
        elif self._state is LifeCycle.STARTING:
            self._set_responding(client.silence_s < START_SILENCE_S)
        elif self._state is LifeCycle.LOADING:  # a load may take its time, but its meter must speak
            self._set_responding(client.silence_s < SILENCE_S)

    def _set_responding(self, is_responding: bool) -> None:
        if is_responding != self._is_responding:
            self._is_responding = is_responding
            silence_s = self._client.silence_s if self._client is not None else 0.0
            self._on_event(ResponseChanged(is_responding, silence_s))

    def _set_state(self, state: LifeCycle) -> None:
        if state is not self._state:
            self._state = state
            self._on_event(StateChanged(state))


def _end_client(client: EngineClient | None) -> None:
    """End a worker in order, by force when it takes long."""
    if client is None:
        return
    client.send(protocol.Shutdown())
    if not client.join(END_PATIENCE_S):
        client.kill()
        client.join(END_PATIENCE_S)


def _checked_path(request: LoadRequest) -> tuple[str, protocol.EngineFailed | None]:
    """Return the file or folder an engine is to open, or why none may see it."""
    if not request.path:
        return "", None
    try:
        return str(checked_path(Path(request.path), request.backend)), None
    except EngineError as error:
        return request.path, protocol.EngineFailed(code=error.code, parameters=dict(error.parameters))
