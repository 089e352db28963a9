"""A client whose events a test can wait for, and scripts for the echo engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from backends import client, protocol
from backends.echo_engine import EchoScript

PATIENCE_S = 30.0
Kind = TypeVar("Kind")


class EventLog:
    """Collects events from any thread; waits for the one a test needs."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self._changed = threading.Condition()

    def add(self, event: object) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def of(self, kind: type[Kind]) -> list[Kind]:
        with self._changed:
            return [event for event in self.events if isinstance(event, kind)]

    def wait(self, kind: type[Kind], matches: Callable[[Kind], bool] = lambda _event: True, count: int = 1) -> Kind:
        """Return the count-th event of this kind that matches; fails the test when it does not come."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while True:
                found = [event for event in self.events if isinstance(event, kind) and matches(event)]
                if len(found) >= count:
                    return found[count - 1]
                if not self._changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no {kind.__name__} in {PATIENCE_S} s; got {self.events[-5:]}")


class LoggedClient(EventLog):
    """A worker whose events are collected."""

    def __init__(self, backend: str, log_path: Path, command: client.WorkerCommand | None = None) -> None:
        super().__init__()
        self.client = client.EngineClient(
            command or client.bundled_worker(), backend, log_path, lambda _client, event: self.add(event)
        )

    def __enter__(self) -> LoggedClient:
        self.client.start()
        self.wait((protocol.Hello, client.EngineDied))  # type: ignore[arg-type]
        return self

    def __exit__(self, *_exception: object) -> None:
        self.client.kill()
        assert self.client.join(PATIENCE_S)

    def load(self, path: Path | str = "", params: protocol.LoadParams | None = None) -> protocol.ModelLoaded:
        self.client.send(protocol.LoadModel(str(path), params or protocol.LoadParams()))
        return self.wait(protocol.ModelLoaded)

    def answer(self, request: protocol.Generate) -> tuple[str, tuple[int, ...], protocol.RequestFinished]:
        """Send a request and return the joined text, the ids and the end of it."""
        self.client.send(request)
        finished = self.wait(protocol.RequestFinished, lambda event: event.request_id == request.request_id)
        pieces = [p for done in self.of(protocol.StepDone) for p in done.pieces if p.request_id == request.request_id]
        return "".join(p.text for p in pieces), tuple(i for p in pieces for i in p.token_ids), finished


def write_script(path: Path, script: EchoScript) -> Path:
    path.write_bytes(msgspec.json.encode(script))
    return path
