"""Speed and memory of all runs, in rounds of which each run has a turn: A B C A B C.

So what slows the machine down for a while slows all of them. Where memory allows, every run stays loaded and only its
turn works; else each turn loads its run anew. A round counts when every run had its turn in it. Nothing is measured
while a chat's answer is under way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import psutil

from app.bench.bench import WARM_UP_TOKENS, machine_load
from app.bench.engine_run import StoppedError
from app.bench.workload import Workload, requests_of
from app.compare.files import FolderError
from app.compare.folder import ComparisonFolder
from app.compare.plan import RunSpec
from app.compare.run_files import MachineReading, SpeedRound
from app.compare.run_worker import RunnerServices, RunWorker
from app.errors import AppError
from backends import protocol

SPEED, WAITING = "speed", "waiting"

_CHAT_LOOK_S = 0.5
_RESERVE_BYTES = 2**30  # left free when all runs are loaded together
_WORKER_BYTES = 200 * 2**20  # of a worker beside what its engine sets up
_MOST_TOGETHER = 8
_TURNS_TRIED = 3  # of one round, when chats disturb it

OpenWorker = Callable[[RunSpec], RunWorker]
Tell = Callable[[str, str, int, int], None]


@dataclass(slots=True)
class SpeedPhase:
    """The speed rounds of a comparison.

    Attributes:
        folder: where rounds are kept.
        services: of the program.
        vocabulary_tokens: of the model; the prompts are drawn from it.
        open_worker: starts a run's worker and loads its model.
        failed: takes a run that could not go on, and why; such a run takes no more turns.
        tell: takes run_id, phase, what is done and of how many.
        stopped: set when an end was asked for.
        _workers: the runs that stay loaded, by run_id.
        _live: the runs that take turns.
    """

    folder: ComparisonFolder
    services: RunnerServices
    vocabulary_tokens: int
    open_worker: OpenWorker
    failed: Callable[[RunSpec, AppError], None]
    tell: Tell
    stopped: threading.Event
    _workers: dict[str, RunWorker] = field(default_factory=dict)
    _live: list[RunSpec] = field(default_factory=list)

    def run(self, runs: Sequence[RunSpec]) -> None:
        """Measure all rounds that are still to be measured.

        Raises:
            StoppedError: an end was asked for.
            FolderError: what was measured cannot be kept.
        """
        self._live = list(runs)
        rounds = self.folder.plan.workload.speed.rounds
        whole = self._whole_rounds()
        if not runs or len(whole) >= rounds:
            return
        for run in runs:  # a round that not all had is none
            self.folder.save(
                run.run_id, "speed", tuple(one for one in self.folder.rounds(run.run_id) if one.number in whole)
            )
        self._keep_conditions(keeps_loaded=self._fits_together(runs))
        try:
            for number in range(1, rounds + 1):
                if number not in whole:
                    self._round(number)
        finally:
            for worker in self._workers.values():
                worker.close()
            self._workers.clear()

    def is_done(self, runs: Sequence[RunSpec]) -> bool:
        """Whether every round was measured for these runs."""
        self._live = list(runs)
        return not runs or len(self._whole_rounds()) >= self.folder.plan.workload.speed.rounds

    # ----------------------------------------------------------------------------------------- rounds

    def _whole_rounds(self) -> set[int]:
        """Return the rounds that every run had a turn in."""
        numbers = [{one.number for one in self.folder.rounds(run.run_id)} for run in self._live]
        return set.intersection(*numbers) if numbers else set()

    def _round(self, number: int) -> None:
        for place, run in enumerate(list(self._live)):
            self.tell(run.run_id, SPEED, (number - 1) * len(self._live) + place, self._turns)
            try:
                self._turn(run, number)
            except (FolderError, StoppedError):
                raise
            except AppError as error:
                self._drop(run, error)

    @property
    def _turns(self) -> int:
        return self.folder.plan.workload.speed.rounds * len(self._live)

    def _turn(self, run: RunSpec, number: int) -> None:
        """Measure one run once; a turn that a chat disturbed is repeated, and marked when that does not help."""
        keeps_loaded = bool(self.folder.conditions().keeps_loaded)
        worker = self._workers.get(run.run_id) or self._warm(run)
        if keeps_loaded:
            self._workers[run.run_id] = worker
        try:
            for attempt in range(_TURNS_TRIED):
                self._wait_for_chat(run)
                is_noisy = self._read_machine(f"round {number}, {run.run_id}")
                measured = self._measure(worker, number, attempt)
                was_disturbed = self.services.is_chat_busy()
                if not was_disturbed:
                    break
            found = msgspec.structs.replace(measured, is_noisy=is_noisy or was_disturbed)
            self.folder.save(run.run_id, "speed", (*self.folder.rounds(run.run_id), found))
            self._keep_memory(run, worker)
        finally:
            if not keeps_loaded:
                worker.close()

    def _warm(self, run: RunSpec) -> RunWorker:
        """Load a run and have it read and write once, which does not count."""
        worker = self.open_worker(run)
        try:
            speed = self.folder.plan.workload.speed
            self._ask(worker, Workload(speed.prompt_tokens, min(WARM_UP_TOKENS, speed.new_tokens)), 0)
        except (AppError, StoppedError):
            worker.close()
            raise
        return worker

    def _measure(self, worker: RunWorker, number: int, attempt: int) -> SpeedRound:
        speed = self.folder.plan.workload.speed
        place = number + attempt * (speed.rounds + 1)  # no prompt is asked twice: nothing can be reused
        figures = self._ask(worker, Workload(speed.prompt_tokens, speed.new_tokens), place)
        return SpeedRound(
            number=number,
            prefill_tokens_per_s=figures.prefill_tokens_per_s,
            decode_tokens_per_s=figures.decode_tokens_per_s,
            ttft_s=figures.ttft_s,
        )

    def _ask(self, worker: RunWorker, work: Workload, place: int) -> protocol.RequestFigures:
        request = requests_of(work, self.vocabulary_tokens, place, first_id=1)[0]
        assert isinstance(request.prompt, protocol.TokenIds)
        return worker.answer(request.prompt.token_ids, work.new_tokens, goes_on=True).figures

    def _keep_memory(self, run: RunSpec, worker: RunWorker) -> None:
        """Keep the most that the run took so far."""
        before = self.folder.memory(run.run_id)
        if before is not None:
            predicted = before.predicted_bytes
        else:
            predicted = self.services.predicted_bytes(run, worker.loaded.context_tokens)
        found = worker.memory(predicted)
        if before is None or found.total_bytes > before.total_bytes:
            self.folder.save(run.run_id, "memory", found)

    def _drop(self, run: RunSpec, error: AppError) -> None:
        self._live.remove(run)
        worker = self._workers.pop(run.run_id, None)
        if worker is not None:
            worker.close()
        self.failed(run, error)

    # ------------------------------------------------------------------------------------- conditions

    def _wait_for_chat(self, run: RunSpec) -> None:
        while self.services.is_chat_busy():
            self.tell(run.run_id, WAITING, 0, 0)
            if self.stopped.wait(_CHAT_LOOK_S):
                raise StoppedError

    def _read_machine(self, moment: str) -> bool:
        """Note what else the machine does, no engine being at work; returns whether it is too much."""
        found = machine_load()
        reading = MachineReading(moment=moment, busy_share=round(found.busy_share, 3), load_average=found.load_average)
        conditions = self.folder.conditions()
        machine = (*(one for one in conditions.machine if one.moment != moment), reading)
        self.folder.save_conditions(msgspec.structs.replace(conditions, machine=machine))
        return found.is_busy

    def _keep_conditions(self, *, keeps_loaded: bool) -> None:
        conditions = self.folder.conditions()
        self.folder.save_conditions(msgspec.structs.replace(conditions, keeps_loaded=keeps_loaded))

    def _fits_together(self, runs: Sequence[RunSpec]) -> bool:
        """Whether all runs can stay loaded: what their engines set up, as they said when they were loaded."""
        facts = [self.folder.facts(run.run_id) for run in runs]
        sizes = [one.reserved_bytes if one is not None else 0 for one in facts]
        if not all(sizes) or len(sizes) > _MOST_TOGETHER:
            return False
        needed = sum(sizes) + len(sizes) * _WORKER_BYTES + _RESERVE_BYTES
        return needed <= int(psutil.virtual_memory().available)
