"""Mutated copies of the starter model: each loads and talks, or ends in words; nothing hangs, nothing else dies (C-05).

Most are refused by the program's own check of the header; the others go to a real worker.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from app.deaths import words_for_death
from app.engines.supervisor import EngineEvent, EngineSupervisor, LoadRequest
from app.errors import words_for
from backends import protocol
from backends.client import EngineDied
from backends.protocol import LifeCycle, RequestId
from tests.helpers.gguf_files import ModelCopy
from tests.helpers.program import DrivenProgram, report, stretched, wait_for

pytestmark = pytest.mark.drill

LIMIT_S = 15.0
NUM_MUTATIONS, NUM_MUTATIONS_FULL, NUM_IN_WINDOW = 100, 1_000, 10
SHARE_REFUSED = 0.6
NUM_TOKENS = 3


class Opener:
    """Opens one model after the other with one supervisor, as the program does, and says how each ended.

    Attributes:
        engine: the supervisor; close it.
    """

    def __init__(self, log_path: Path) -> None:
        self._events: list[EngineEvent] = []
        self._changed = threading.Condition()
        self.engine = EngineSupervisor(lambda: log_path, self._on_event)

    def outcome(self, path: Path) -> tuple[str, str]:
        """Return "refused", "failed", "died", "answered" or "hangs", and the words a person is shown."""
        with self._changed:
            self._events.clear()
        self.engine.load(LoadRequest(str(path), params=protocol.LoadParams(context_tokens=256)))
        event = self._wait(protocol.ModelLoaded, protocol.EngineFailed, EngineDied)
        if isinstance(event, protocol.ModelLoaded):
            params = protocol.SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS)
            self.engine.send(
                protocol.Generate(request_id=RequestId(1), prompt=protocol.Text("Once upon"), params=params)
            )
            event = self._wait(protocol.RequestFinished, protocol.EngineFailed, EngineDied)
        was_started = self.engine.pid != 0 or isinstance(event, EngineDied)
        self._end()
        match event:
            case protocol.RequestFinished():
                return "answered", event.stop_reason.value
            case protocol.EngineFailed():
                return "failed" if was_started else "refused", words_for(event.code, event.parameters).message
            case EngineDied():
                return "died", words_for_death(event.exit_code, event.signal, "loading", event.cause).message
        return "hangs", ""

    def _end(self) -> None:
        """Have no process hold the file."""
        self.engine.unload()
        wait_for(lambda: self.engine.state is LifeCycle.DEAD, "the engine has ended", stretched(LIMIT_S))

    def _on_event(self, event: EngineEvent) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def _wait(self, *kinds: type) -> EngineEvent | None:
        deadline_s = time.monotonic() + stretched(LIMIT_S)
        with self._changed:
            while True:
                found = next((event for event in self._events if isinstance(event, kinds)), None)
                if found is not None or not self._changed.wait(max(0.0, deadline_s - time.monotonic())):
                    return found


def open_all(starter_model: Path, folder: Path, count: int) -> Counter[str]:
    """Open this many mutations, then the sound model; return how they ended."""
    copy = ModelCopy(starter_model, folder / "mutated.gguf")
    opener = Opener(folder / "engine.log")
    outcomes: Counter[str] = Counter()
    try:
        for seed in range(count):
            changed = copy.mutate(seed)
            kind, words = opener.outcome(copy.path)
            assert words, f"seed {seed}: {kind} without words; {changed}"
            assert kind != "hangs", f"seed {seed}: no end within {LIMIT_S} s; {changed}"
            outcomes[kind] += 1
        assert opener.outcome(starter_model)[0] == "answered"
    finally:
        opener.engine.close()
    report(f"{count} mutated models: {dict(outcomes)}")
    return outcomes


def test_a_hundred_mutated_models_load_or_end_in_words(starter_model, tmp_path):
    outcomes = open_all(starter_model, tmp_path, NUM_MUTATIONS)
    assert outcomes["refused"] >= SHARE_REFUSED * NUM_MUTATIONS


@pytest.mark.full
@pytest.mark.timeout(3_600)
def test_a_thousand_mutated_models_load_or_end_in_words(starter_model, tmp_path):
    outcomes = open_all(starter_model, tmp_path, NUM_MUTATIONS_FULL)
    assert outcomes["refused"] >= SHARE_REFUSED * NUM_MUTATIONS_FULL


def test_mutated_models_opened_in_the_window_leave_it_alive(own_home, starter_model, tmp_path):
    """Truth about the file is a notice that names it, or an engine; then the sound model loads again."""
    copy = ModelCopy(starter_model, tmp_path / "mutated.gguf")
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        for seed in range(NUM_IN_WINDOW):
            copy.mutate(seed)
            program.ask("load", str(copy.path), limit_s=LIMIT_S)
            program.wait(
                lambda s: s["life_cycle"] in ("ready", "dead") and (s["life_cycle"] == "ready" or s["notices"]),
                f"seed {seed} loads or is told of",
                stretched(LIMIT_S),
            )
            program.ask("load", str(starter_model))
            program.wait_ready()
            wait_for(
                lambda: not any(str(copy.path) in _maps(worker.pid) for worker in program.workers()),
                f"seed {seed}: its worker is gone",
            )
        assert program.quit() == 0


def _maps(pid: int) -> str:
    try:
        return Path(os.sep, "proc", str(pid), "maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
