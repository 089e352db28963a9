"""One load of an engine for measurements: a worker of its own, rounds of requests, and the memory it takes.

Leads the worker through the supervisor, as a chat does, on the thread that calls. Knows no terminal.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from app.deaths import words_for_death
from app.engines.supervisor import (
    SILENCE_S,
    EngineEvent,
    EngineSupervisor,
    LoadRequest,
    ResponseChanged,
    StateChanged,
)
from app.errors import AppError, words_for
from app.telemetry.owners import Owned, attribute, is_on_device, measured_bytes
from backends import protocol
from backends.client import EngineDied, WorkerCommand
from backends.protocol import LifeCycle

_LOOK_UP_S = 0.2  # how soon a Ctrl+C or a stop is noticed where nothing else lets it in
_SILENCE_LIMIT_S = 30.0  # a worker whose meter said nothing for this long is not coming back

_USED, _SHARED = 2, 3  # states of a block that holds tokens of a request: protocol.BlockMap
BLOCK_TOKENS = 16  # places of a KV block, where no map of them came

_EventT = TypeVar("_EventT", bound=protocol.Event)


class EngineRefusedError(AppError):
    """The engine could not do a command and lives on.

    Attributes:
        code: a value of backends.errors.ErrorCode.
    """

    def __init__(self, failed: protocol.EngineFailed) -> None:
        super().__init__(words_for(failed.code, failed.parameters))
        self.code = failed.code


class EngineEndedError(AppError):
    """The worker is gone; the words say how."""


class StoppedError(Exception):
    """The person asked for an end; what was under way is lost, what was measured is kept."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer: its text, the ids of its tokens, and what it took."""

    text: str
    token_ids: tuple[int, ...]
    figures: protocol.RequestFigures


@dataclass(slots=True)
class Round:
    """Some requests and what became of them.

    Attributes:
        figures: of each request, in the order in which they ended.
        wall_s: from the first request's sending to the last one's end, by the program's clock.
        first_tokens_s: from the first request's sending to the first token of each; in no order.
        running: the most requests that one step worked on.
        preemptions: how often a request's blocks were taken away and computed again.
        kv_used_bytes: the most that the engine counted as used of its KV cache.
        held_tokens: the most tokens, prompts and answers, that begun requests had at once; shared ones count for each.
        held_places: the places of the whole blocks that hold them.
        mapped_places: the places of all blocks in use, on the engine's map with most of them; 0 without a map.
        mapped_empty: how many of these places had no token.
    """

    figures: list[protocol.RequestFigures] = field(default_factory=list)
    wall_s: float = 0.0
    first_tokens_s: list[float] = field(default_factory=list)
    running: int = 0
    preemptions: int = 0
    kv_used_bytes: int = 0
    held_tokens: int = 0
    held_places: int = 0
    mapped_places: int = 0
    mapped_empty: int = 0

    @property
    def new_tokens(self) -> int:
        """Tokens of all answers together."""
        return sum(figures.new_tokens for figures in self.figures)

    @property
    def total_tokens_per_s(self) -> float:
        """Tokens written for all requests together, per second of the whole round, reading included."""
        return self.new_tokens / self.wall_s if self.wall_s > 0 else 0.0


class EngineRun:
    """A worker with one model; close it.

    Attributes:
        loaded: what the engine said when the model was ready.
        engine_version: of the library that computes; "" before the worker spoke.
        peak_bytes: the most memory that was measured.
        _is_stopped: whether whoever waits wants an end.
        _silent_since_s: since when the worker says nothing at all; 0 while it speaks.
        _readings: how many came.
        _floor_bytes: the first reading, before the model.
        _events: what the worker said and nobody looked at yet.
        _peak: the reading of peak_bytes.
        _kv_used_bytes: the most that the KV cache held.
        _next_id: the id of the next request.
    """

    def __init__(
        self,
        open_log: Callable[[], Path],
        command: WorkerCommand | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.loaded: protocol.ModelLoaded | None = None
        self.engine_version = ""
        self.peak_bytes = 0
        self._is_stopped = is_stopped
        self._silent_since_s = 0.0
        self._readings = 0
        self._floor_bytes = 0
        self._kv_used_bytes = 0
        self._next_id = 1
        self._events: queue.SimpleQueue[EngineEvent] = queue.SimpleQueue()
        self._engine = EngineSupervisor(open_log, self._events.put, command)

    def load(self, request: LoadRequest, on_progress: Callable[[float], None]) -> protocol.ModelLoaded:
        """Load a model and return what the engine says of it.

        Raises:
            AppError: it cannot be loaded; the words say why.
        """
        self._engine.load(request)
        while True:
            match self._next("loading"):
                case protocol.Progress() as event:
                    on_progress(event.done / event.total if event.total > 0 else 0.0)
                case protocol.ModelLoaded() as loaded:
                    self.loaded = loaded
                case StateChanged(state=LifeCycle.READY) if self.loaded is not None:  # only now are requests taken
                    on_progress(1.0)
                    return self.loaded

    def run(self, requests: Sequence[protocol.Generate], at_once: int = 0) -> Round:
        """Have requests answered and return what they took.

        Args:
            requests: what is asked; their ids are given anew.
            at_once: how many are sent together, the next ones when all of these have ended; 0 sends all at once.

        Raises:
            AppError: the engine refused one, or ended.
        """
        done = Round()
        began_s = time.monotonic()
        size = at_once or len(requests)
        for first in range(0, len(requests), size):
            self._run_group(requests[first : first + size], done, began_s)
        done.wall_s = time.monotonic() - began_s
        self._kv_used_bytes = max(self._kv_used_bytes, done.kv_used_bytes)
        return done

    def ask(self, command: protocol.Command, kind: type[_EventT]) -> _EventT:
        """Send a command and return its one answer.

        Raises:
            EngineRefusedError: the engine cannot do it.
            EngineEndedError: the worker died over it.
            StoppedError: an end was asked for meanwhile.
        """
        if not self._engine.send(command):
            self._raise_end("writing")
        while True:
            event = self._next("working")
            if isinstance(event, kind):
                return event

    def answer(self, request: protocol.Generate) -> Written:
        """Have one request answered and return what was written; raises as ask() does."""
        texts: list[str] = []
        ids: list[int] = []
        if not self._engine.send(request):
            self._raise_end("writing")
        while True:
            match self._next("writing"):
                case protocol.StepDone() as step:
                    for piece in step.pieces:
                        if piece.request_id == request.request_id:
                            texts.append(piece.text)
                            ids.extend(piece.token_ids)
                    self._kv_used_bytes = max(self._kv_used_bytes, step.stats.kv_used_bytes)
                case protocol.RequestFinished(request_id=request.request_id) as finished:
                    return Written("".join(texts), tuple(ids), finished.figures)

    def read_memory(self) -> Owned:
        """Wait for a reading that was taken after this call, and return the most that was measured."""
        wanted = self._readings + 2  # one may be on its way already
        while self._readings < wanted:
            self._take("working")
        return self.memory()

    def memory(self) -> Owned:
        """Return the most memory that was measured, by owner."""
        split = self.loaded.memory if self.loaded is not None else None
        return attribute(self.peak_bytes, self._floor_bytes, split, self._kv_used_bytes)

    def close(self) -> None:
        """End the worker."""
        self._engine.close()

    # ------------------------------------------------------------------------------------------- events

    def _run_group(self, requests: Sequence[protocol.Generate], done: Round, began_s: float) -> None:
        ids = {request.request_id for request in requests}
        lengths = {request.request_id: _prompt_tokens(request) for request in requests}
        held: dict[protocol.RequestId, int] = {}
        for request in requests:
            if not self._engine.send(request):
                self._raise_end("writing")
        while ids:
            match self._next("writing"):
                case protocol.StepDone() as step:
                    for piece in step.pieces:
                        if piece.request_id not in held:
                            done.first_tokens_s.append(time.monotonic() - began_s)
                            held[piece.request_id] = lengths[piece.request_id]
                        held[piece.request_id] += len(piece.token_ids)
                    _note_step(step, done)
                    _note_held(held, done)
                case protocol.RequestFinished() as finished:
                    ids.discard(finished.request_id)
                    held.pop(finished.request_id, None)
                    done.figures.append(finished.figures)

    def _next(self, phase: str) -> EngineEvent:
        """Return the next event that matters; a reading is noted, and a failure is raised."""
        while (event := self._take(phase)) is None:
            pass
        return event

    def _take(self, phase: str) -> EngineEvent | None:
        """Take one event, or wait a moment for it; None for one that is dealt with here."""
        if self._is_stopped():
            raise StoppedError
        self._end_silence()
        try:
            event = self._events.get(timeout=_LOOK_UP_S)
        except queue.Empty:
            return None
        match event:
            case protocol.MemoryRead():
                self._read(event)
            case protocol.Hello():
                self.engine_version = event.engine_version
            case protocol.EngineFailed():
                raise EngineRefusedError(event)
            case EngineDied():
                self._raise_death(event, phase)
            case ResponseChanged():
                self._note_response(event)
            case _:
                return event
        return None

    def _read(self, event: protocol.MemoryRead) -> None:
        self._readings += 1
        split = self.loaded.memory if self.loaded is not None else None
        on_device = is_on_device(split, event)
        total = measured_bytes(event, on_device)
        if self.loaded is None and not self._floor_bytes:
            self._floor_bytes = measured_bytes(event, on_device=False)
        if self.loaded is not None:
            self.peak_bytes = max(self.peak_bytes, total)

    def _note_response(self, event: ResponseChanged) -> None:
        """Note a worker that says nothing; one whose step takes long still speaks, and may."""
        is_silent = not event.is_responding and event.silence_s >= SILENCE_S
        self._silent_since_s = time.monotonic() - event.silence_s if is_silent else 0.0

    def _end_silence(self) -> None:
        if self._silent_since_s and time.monotonic() - self._silent_since_s > _SILENCE_LIMIT_S:
            self._silent_since_s = 0.0
            self._engine.kill()  # its death is the next event, and is told in words

    def _raise_end(self, phase: str) -> None:
        while True:
            self._next(phase)

    def _raise_death(self, died: EngineDied, phase: str) -> None:
        lines = died.last_log_lines
        raise EngineEndedError(words_for_death(died.exit_code, died.signal, phase, died.cause, log_lines=lines))


def _note_step(step: protocol.StepDone, done: Round) -> None:
    stats = step.stats
    done.running = max(done.running, stats.running)
    done.preemptions += stats.preempted
    done.kv_used_bytes = max(done.kv_used_bytes, stats.kv_used_bytes)
    if (found := step.block_map) is not None:
        places = found.block_tokens * sum(state in (_USED, _SHARED) for state in found.states)
        if places >= done.mapped_places:
            done.mapped_places = places
            empty = sum(len(owner.blocks) * found.block_tokens - owner.tokens for owner in found.owners)
            done.mapped_empty = max(0, min(empty, places))


def _note_held(held: Mapping[protocol.RequestId, int], done: Round) -> None:
    tokens = sum(held.values())
    if tokens >= done.held_tokens:
        done.held_tokens = tokens
        done.held_places = sum(-(-count // BLOCK_TOKENS) for count in held.values()) * BLOCK_TOKENS


def _prompt_tokens(request: protocol.Generate) -> int:
    return len(request.prompt.token_ids) if isinstance(request.prompt, protocol.TokenIds) else 0
