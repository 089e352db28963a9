"""A worker with a real model, for benchmarks of the engine: events are counted, timed and thrown away."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from backends import client, protocol
from backends.client import EngineDied
from tests.benchmarks.measure import starter_model

_PATIENCE_S = 120.0


@dataclass
class Timed:
    """When the events of one request arrived here, by our monotonic clock.

    Attributes:
        sent_s: when it was sent.
        first_s: when its first token arrived; 0 before it.
        ended_s: when its end arrived.
        finished: its end.
        has_begun: set by its first token.
        is_over: set by its end.
    """

    sent_s: float
    first_s: float = 0.0
    ended_s: float = 0.0
    finished: protocol.RequestFinished | None = None
    has_begun: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def figures(self) -> protocol.RequestFigures:
        """The engine's own figures."""
        assert self.finished is not None
        return self.finished.figures


class NullSink:
    """A loaded worker whose events go nowhere; use it as a context manager.

    Attributes:
        loaded: what the engine said when it was ready.
        first_read: its first reading of its memory, before the model; None before it.
    """

    def __init__(
        self,
        log: Path,
        threads: int,
        context_tokens: int = 0,
        *,
        model: Path | None = None,
        params: protocol.LoadParams | None = None,
    ) -> None:
        self.loaded: protocol.ModelLoaded | None = None
        self.first_read: protocol.MemoryRead | None = None
        self._model = model or starter_model()
        self._params = params or protocol.LoadParams(threads=threads, context_tokens=context_tokens)
        self._readings: queue.SimpleQueue[protocol.MemoryRead] = queue.SimpleQueue()
        self._requests: dict[int, Timed] = {}
        self._is_ready = threading.Event()
        self._client = client.EngineClient(client.bundled_worker(), "llama_cpp", log, self._on_event)

    def __enter__(self) -> NullSink:
        self._client.start()
        self.first_read = self._readings.get(timeout=_PATIENCE_S)
        self._client.send(protocol.LoadModel(str(self._model), self._params))
        if not self._is_ready.wait(_PATIENCE_S) or self.loaded is None:
            raise RuntimeError(f"{self._model.name} could not be loaded")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.kill()
        self._client.join(_PATIENCE_S)

    @property
    def vocabulary_tokens(self) -> int:
        """How many tokens the model knows."""
        assert self.loaded is not None
        return self.loaded.vocabulary_tokens

    def start(self, prompt: protocol.Prompt, max_tokens: int) -> tuple[protocol.RequestId, Timed]:
        """Send a greedy request and return at once."""
        request_id = protocol.RequestId(len(self._requests) + 1)
        params = protocol.SamplingParams(temperature=0.0, max_tokens=max_tokens)
        timed = self._requests[request_id] = Timed(time.monotonic())
        self._client.send(protocol.Generate(request_id=request_id, prompt=prompt, params=params))
        return request_id, timed

    def abort(self, request_id: protocol.RequestId) -> None:
        """Stop a request."""
        self._client.send(protocol.Abort(request_id))

    def run(self, prompt: protocol.Prompt, max_tokens: int) -> Timed:
        """Send a greedy request and wait for its end."""
        _request_id, timed = self.start(prompt, max_tokens)
        if not timed.is_over.wait(_PATIENCE_S):
            raise TimeoutError("the worker does not answer")
        return timed

    def read_memory(self) -> protocol.MemoryRead:
        """Return a reading that began after this call."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._readings.get_nowait()
        for _number in range(2):  # the first may have been on its way
            reading = self._readings.get(timeout=_PATIENCE_S)
        return reading

    def _on_event(self, _client: client.EngineClient, event: client.ClientEvent) -> None:
        now_s = time.monotonic()
        match event:
            case protocol.StepDone() if event.pieces:
                timed = self._requests[event.pieces[0].request_id]
                if not timed.first_s:
                    timed.first_s = now_s
                    timed.has_begun.set()
            case protocol.RequestFinished():
                timed = self._requests[event.request_id]
                timed.ended_s, timed.finished = now_s, event
                timed.is_over.set()
            case protocol.MemoryRead():
                self._readings.put(event)
            case protocol.ModelLoaded():
                self.loaded = event
                self._is_ready.set()
            case EngineDied() | protocol.EngineFailed():
                self._is_ready.set()
                for timed in self._requests.values():
                    timed.is_over.set()


def repeating_prompt(vocabulary_tokens: int, seed: int = 1) -> protocol.TokenIds:
    """Return sixteen token ids that a greedy model goes on repeating: the starter model's answer does not end early."""
    return protocol.TokenIds(random_prompt(seed, 4, vocabulary_tokens).token_ids * 4)


def random_prompt(seed: int, tokens: int, vocabulary_tokens: int) -> protocol.TokenIds:
    """Return random token ids, as llama-bench reads: nothing of an earlier prompt can be reused."""
    rng = random.Random(seed)
    return protocol.TokenIds(tuple(rng.randrange(vocabulary_tokens // 2, vocabulary_tokens) for _ in range(tokens)))
