"""Speed rounds: runs take turns, a round counts when all had one, chats are waited for."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest

from app.bench.bench import MachineLoad
from app.bench.engine_run import StoppedError, Written
from app.compare import speed_phase
from app.compare.files import FolderError
from app.compare.folder import ComparisonFolder
from app.compare.results import Memory
from app.compare.run_files import RunFacts, SpeedRound
from app.compare.speed_phase import SpeedPhase
from app.errors import AppError, Words
from backends import protocol
from tests.helpers.scoring_worker import FakeModel, make_plan, make_services


class Worker:
    """A worker with a speed of its own; remembers what all of them did, in order."""

    log: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, run_id: str, fails_at: int = -1) -> None:
        self.run_id = run_id
        self.loaded = protocol.ModelLoaded(backend="echo", model_path="x", context_tokens=2048)
        self._fails_at = fails_at
        self._answers = 0
        self.log.append((run_id, "load"))

    def answer(self, prompt_ids, max_tokens, *, goes_on) -> Written:
        assert goes_on
        kind = "warm up" if self._answers == 0 else "measure"
        self._answers += 1
        if self._answers - 1 == self._fails_at:
            raise AppError(Words("The engine crashed."))
        self.log.append((self.run_id, kind))
        figures = protocol.RequestFigures(
            prompt_tokens=len(prompt_ids), new_tokens=max_tokens, prefill_s=0.1, decode_s=0.1, ttft_s=0.1
        )
        return Written("", (), figures)

    def memory(self, predicted_bytes) -> Memory:
        return Memory(
            weights_bytes=1,
            kv_reserved_bytes=1,
            kv_used_bytes=1,
            compute_bytes=1,
            rest_bytes=1,
            total_bytes=100 + self._answers,
            predicted_bytes=predicted_bytes,
        )

    def close(self) -> None:
        self.log.append((self.run_id, "close"))


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch):
    Worker.log.clear()
    monkeypatch.setattr(speed_phase, "machine_load", lambda: MachineLoad(0.0, None, 2))
    monkeypatch.setattr(speed_phase, "_CHAT_LOOK_S", 0.001)


@pytest.fixture
def folder(tmp_path) -> ComparisonFolder:
    return ComparisonFolder.create(tmp_path / "c", make_plan(tmp_path, q8=FakeModel(), q4=FakeModel()))


def make_phase(folder, tmp_path, fails=None, **changes):
    failed: list[str] = []
    fails = fails or {}
    phase = SpeedPhase(
        folder=folder,
        services=make_services(tmp_path, **changes),
        vocabulary_tokens=256,
        open_worker=lambda run: Worker(run.run_id, fails.get(run.run_id, -1)),
        failed=lambda run, _error: failed.append(run.run_id),
        tell=lambda *_what: None,
        stopped=threading.Event(),
    )
    return phase, failed


def measured() -> list[str]:
    return [run_id for run_id, what in Worker.log if what == "measure"]


def keep_facts(folder, reserved_bytes: int) -> None:
    for run in folder.plan.runs:
        folder.save(run.run_id, "facts", RunFacts(reserved_bytes=reserved_bytes))


def test_where_memory_allows_runs_stay_loaded_and_take_turns(folder, tmp_path) -> None:
    keep_facts(folder, 1000)
    make_phase(folder, tmp_path)[0].run(folder.plan.runs)
    assert measured() == ["F16", "q8", "q4", "F16", "q8", "q4"]
    assert [one for one in Worker.log if one[1] in ("load", "warm up")] == [
        (name, what) for name in ("F16", "q8", "q4") for what in ("load", "warm up")
    ]
    assert Worker.log[-3:] == [("F16", "close"), ("q8", "close"), ("q4", "close")]
    assert folder.conditions().keeps_loaded is True
    assert [one.number for one in folder.rounds("q4")] == [1, 2]
    assert folder.rounds("q4")[0].decode_tokens_per_s == pytest.approx(30)
    memory = folder.memory("q4")
    assert memory is not None
    assert memory.total_bytes == 103  # the most, after the last round
    assert [one.moment for one in folder.conditions().machine[:2]] == ["round 1, F16", "round 1, q8"]


def test_where_memory_is_short_each_turn_loads_its_run_anew(folder, tmp_path) -> None:
    keep_facts(folder, 2**60)
    make_phase(folder, tmp_path)[0].run(folder.plan.runs)
    assert [name for name, what in Worker.log if what == "load"] == ["F16", "q8", "q4"] * 2
    turn = ["load", "warm up", "measure", "close"]
    assert [what for _name, what in Worker.log] == turn * 6
    assert folder.conditions().keeps_loaded is False


def test_a_round_that_not_all_had_is_measured_again_by_all(folder, tmp_path) -> None:
    one = SpeedRound(number=1, prefill_tokens_per_s=1.0, decode_tokens_per_s=1.0, ttft_s=1.0)
    for run_id in ("F16", "q8"):
        folder.save(
            run_id, "speed", (one, SpeedRound(number=2, prefill_tokens_per_s=9, decode_tokens_per_s=9, ttft_s=1))
        )
    folder.save("q4", "speed", (one,))
    phase, _failed = make_phase(folder, tmp_path)
    assert not phase.is_done(folder.plan.runs)
    phase.run(folder.plan.runs)
    assert measured() == ["F16", "q8", "q4"]
    assert [found.decode_tokens_per_s for found in folder.rounds("F16")] == [1.0, pytest.approx(30)]
    assert phase.is_done(folder.plan.runs)
    Worker.log.clear()
    phase.run(folder.plan.runs)
    assert Worker.log == []


def test_a_run_that_fails_takes_no_more_turns_and_the_others_go_on(folder, tmp_path) -> None:
    keep_facts(folder, 1000)
    phase, failed = make_phase(folder, tmp_path, fails={"q8": 2})
    phase.run(folder.plan.runs)
    assert failed == ["q8"]
    assert measured() == ["F16", "q8", "q4", "F16", "q4"]
    assert ("q8", "close") in Worker.log
    assert len(folder.rounds("q4")) == 2


def test_a_run_that_cannot_even_warm_up_is_closed(folder, tmp_path) -> None:
    phase, failed = make_phase(folder, tmp_path, fails={"q4": 0})
    phase.run(folder.plan.runs)
    assert failed == ["q4"]
    assert Worker.log[-1][1] == "close"
    assert Worker.log.count(("q4", "load")) == Worker.log.count(("q4", "close")) == 1


def test_nothing_is_measured_while_a_chat_is_busy(folder, tmp_path) -> None:
    looks: list[int] = []

    def is_busy() -> bool:
        looks.append(len(measured()))
        return len(looks) <= 3

    make_phase(folder, tmp_path, is_chat_busy=is_busy)[0].run(folder.plan.runs)
    assert looks[:4] == [0, 0, 0, 0]
    assert len(measured()) == 6
    assert not any(one.is_noisy for one in folder.rounds("F16"))


def test_a_turn_that_a_chat_disturbed_is_repeated_and_marked_when_that_does_not_help(folder, tmp_path) -> None:
    states = iter([False, True, False, True, False, True] + [False] * 100)  # before and after each try
    make_phase(folder, tmp_path, is_chat_busy=lambda: next(states))[0].run(folder.plan.runs)
    assert measured()[:4] == ["F16", "F16", "F16", "q8"]
    assert [one.is_noisy for one in folder.rounds("F16")] == [True, False]


def test_a_busy_machine_marks_the_round(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(speed_phase, "machine_load", lambda: MachineLoad(0.9, 4.0, 2))
    make_phase(folder, tmp_path)[0].run(folder.plan.runs)
    assert all(one.is_noisy for one in folder.rounds("q4"))
    assert folder.conditions().machine[0].busy_share == 0.9


def test_a_stop_while_a_chat_is_waited_for_ends_the_wait(folder, tmp_path) -> None:
    phase, _failed = make_phase(folder, tmp_path, is_chat_busy=lambda: True)
    phase.stopped.set()
    with pytest.raises(StoppedError):
        phase.run(folder.plan.runs)
    assert Worker.log[-1][1] == "close"


def test_a_disk_that_takes_no_more_ends_the_phase_and_closes_the_workers(folder, tmp_path, monkeypatch) -> None:
    keep_facts(folder, 1000)
    phase, failed = make_phase(folder, tmp_path)
    keep = folder.save

    def save(run_id, name, value) -> None:
        if name == "speed" and run_id == "q8" and value:
            raise FolderError(Words("The disk is full."))
        keep(run_id, name, value)

    monkeypatch.setattr(folder, "save", save)
    with pytest.raises(FolderError):
        phase.run(folder.plan.runs)
    assert failed == []
    assert {name for name, what in Worker.log if what == "close"} == {"F16", "q8"}
