"""Runs a comparison: the reference first, then each candidate, each in a fresh worker, then speed, taking turns.

Resumable: what is done stands in the folder, and run() goes on behind it, whatever ended the last one. A run that
fails is told in words and does not end the rest; the reference failing does, since nothing could be compared.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import platform
import threading
import time

import msgspec
import psutil

from app.bench.bench import machine_load
from app.bench.engine_run import EngineEndedError, EngineRefusedError, StoppedError
from app.compare.assembling import assemble
from app.compare.files import FolderError
from app.compare.folder import NOISE_FLOOR_RUN, ComparisonFolder
from app.compare.material import check_same_model, longest_tokens, make_material
from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.progress import Progress, work_left
from app.compare.reference_space import check_space, kept_tokens_for, window_bytes
from app.compare.results import ComparisonResult
from app.compare.run_files import MachineReading, Material, RunFailure
from app.compare.run_phases import RunPhases
from app.compare.run_worker import RunnerServices, RunWorker
from app.compare.runner_events import OnRunnerEvent, PhaseChanged, ResultChanged, RunEnded
from app.compare.speed_phase import SpeedPhase
from app.errors import AppError, Words, words_for_exception
from app.i18n import _
from app.models.bandwidth import processor_name
from backends.errors import ErrorCode

__all__ = ["ComparisonRunner", "PhaseChanged", "ResultChanged", "RunEnded", "RunnerServices"]

LOADING = "loading"

# Of the reference's second pass. Engines compute small batches another way than large ones; 128 would change nothing.
_OTHER_BATCHES_TOKENS = (32, 512)

_log = logging.getLogger(__name__)

# What another attempt may mend: a death, a full disk, memory that others held.
_PASSING = {ErrorCode.OUT_OF_MEMORY, ErrorCode.WRITE_FAILED, ErrorCode.REFERENCE_UNREADABLE, ErrorCode.ENGINE_FAULT}


class _ReferenceFailedError(AppError):
    """The reference could not go on: the comparison ends here."""


class ComparisonRunner:
    """Runs one comparison; run() blocks, stop() may be called from any thread.

    Attributes:
        folder: what is to be done, and what is done.
        _services: of the program.
        _stopped: set when an end was asked for.
        _progress: how long it still takes.
        _began_s: when this attempt began; _before_s: what the earlier ones took.
    """

    def __init__(self, folder: ComparisonFolder, services: RunnerServices) -> None:
        self.folder = folder
        self._services = services
        self._stopped = threading.Event()
        self._progress = Progress()
        self._began_s = 0.0
        self._before_s = 0.0
        self._on_event: OnRunnerEvent = lambda _event: None

    def stop(self) -> None:
        """End soon; everything measured is kept, and another run() goes on."""
        self._stopped.set()

    def run(self, on_event: OnRunnerEvent) -> ComparisonResult:
        """Do what is not done yet and return what was found; blocks until then.

        A run's failure is in its result. A stop, a failure of the reference, or a disk that takes no more end the
        attempt: the result's state is "stopped", and its first warning says why.

        Args:
            on_event: told of every step, on the calling thread.

        Raises:
            FolderError: the folder cannot be used at all, or another process works in it.
        """
        self._on_event = on_event
        self.folder.take()
        try:
            self._begin()
            state, warnings = self._all()
            return self._finish(state, warnings)
        finally:
            self.folder.release()

    # ------------------------------------------------------------------------------------- the whole

    def _all(self) -> tuple[str, list[str]]:
        """Do everything; returns the state it ends in, and why it did not end well."""
        try:
            material = self._reference()
            self._noise_floor(material)
            for run in self.folder.plan.candidates:
                self._candidate(run, material)
            self._speed(material)
            self._read_machine("after")
        except StoppedError:
            return "stopped", []
        except (_ReferenceFailedError, FolderError) as error:
            words = error.words
            return "stopped", [" ".join(filter(None, (words.message, words.hint)))]
        return "done", []

    def _begin(self) -> None:
        """Note the conditions, and let runs that failed begin again."""
        plan = self.folder.plan
        self._began_s = time.monotonic()
        conditions = self.folder.conditions()
        self._before_s = conditions.took_s
        self.folder.save_conditions(
            msgspec.structs.replace(
                conditions,
                processor=processor_name(),
                cores=psutil.cpu_count() or 1,
                memory_bytes=int(psutil.virtual_memory().total),
                system=platform.platform(terse=True),
                program_version=_version(),
            )
        )
        for run in plan.runs:
            self.folder.forget_failure(run.run_id)
        self._progress = Progress(work_left(self.folder))
        self._read_machine("before")

    def _finish(self, state: str, warnings: list[str]) -> ComparisonResult:
        """Write the result; where even that is impossible it is returned, and says so."""
        try:
            self._note_time()
            result = self._assembled(state, warnings)
            self.folder.save_result(result)
        except FolderError as error:
            warnings = [*warnings, " ".join(filter(None, (error.words.message, error.words.hint)))]
            result = self._assembled("stopped", warnings)
            self._on_event(ResultChanged(result))
            return result
        failures = [self.folder.failure(run.run_id) for run in self.folder.plan.runs]
        can_go_on = state != "done" or any(one is not None and not one.is_lasting for one in failures)
        is_kept = self._services.keeps_reference or bool(self.folder.plan.reference_import)
        if not can_go_on and not is_kept:
            self.folder.free_reference()
        self._on_event(ResultChanged(result))
        return result

    def _tell_result(self) -> None:
        self._note_time()
        result = self._assembled("running", [])
        self.folder.save_result(result)
        self._on_event(ResultChanged(result))

    def _assembled(self, state: str, warnings: list[str]) -> ComparisonResult:
        return assemble(self.folder, state, warnings, _free_bytes())

    # ------------------------------------------------------------------------------------- the runs

    def _reference(self) -> Material:
        """Do the reference's part: the tokens, its windows, its answers; raises _ReferenceFailedError."""
        plan = self.folder.plan
        try:
            material = self.folder.material()
            if material is None or not self._is_reference_done(material):
                _check_not_imported(plan)
                material = self._do_reference(plan.reference, material)
                self._on_event(RunEnded(plan.reference.run_id))
                self._tell_result()
        except (FolderError, StoppedError):
            raise
        except AppError as error:
            self._note_failure(plan.reference, error)
            raise _ReferenceFailedError(error.words) from error
        return material

    def _do_reference(self, run: RunSpec, material: Material | None) -> Material:
        plan = self.folder.plan
        with self._loaded(run) as worker:
            self.folder.save(run.run_id, "facts", worker.facts())
            if material is None:
                material = make_material(worker, plan, self._services)
                self.folder.save_material(material)
            check_same_model(material, worker.loaded, longest_tokens(material, plan))
            self._keep_conditions(material, worker)
            phases = self._phases(run.run_id, material, worker)
            needed = self._needed_windows(material)
            kept_tokens = self.folder.conditions().kept_tokens
            missing = [number for number in needed if not self.folder.has_reference(number)]
            check_space(len(missing) * window_bytes(material.vocabulary_tokens, kept_tokens), self.folder.free_bytes)
            phases.write_windows(kept_tokens, needed)
            if self.folder.conditions().self_check is None and self.folder.has_reference(0):
                found = phases.check_self()
                self.folder.save_conditions(msgspec.structs.replace(self.folder.conditions(), self_check=found))
            phases.write_answers(plan.workload.prompts, ())
            phases.choose()
        return material

    def _noise_floor(self, material: Material) -> None:
        """Compare the reference with itself at another batch size; its failing leaves the floor unknown."""
        plan = self.folder.plan
        if not plan.with_noise_floor or plan.reference_import or self._has_windows(NOISE_FLOOR_RUN, material):
            return
        tokens = next(one for one in _OTHER_BATCHES_TOKENS if one != plan.reference.micro_batch_tokens)
        run = msgspec.structs.replace(plan.reference, run_id=NOISE_FLOOR_RUN, micro_batch_tokens=tokens)
        try:
            with self._loaded(run) as worker:
                self._phases(run.run_id, material, worker).score_windows()
        except (FolderError, StoppedError):
            raise
        except AppError as error:
            _log.info("the noise floor could not be measured: %s", type(error).__name__)
        self._tell_result()

    def _candidate(self, run: RunSpec, material: Material) -> None:
        """Do one candidate's part; its failing is kept in words."""
        plan = self.folder.plan
        if self._is_candidate_done(run, material):
            return
        try:
            with self._loaded(run) as worker:
                check_same_model(material, worker.loaded, longest_tokens(material, plan))
                self.folder.save(run.run_id, "facts", worker.facts())
                phases = self._phases(run.run_id, material, worker)
                phases.score_windows()
                phases.write_answers(plan.workload.prompts, self.folder.answers(plan.reference.run_id))
                phases.choose()
        except (FolderError, StoppedError):
            raise
        except AppError as error:
            self._note_failure(run, error)
        else:
            self._on_event(RunEnded(run.run_id))
        self._tell_result()

    def _speed(self, material: Material) -> None:
        """Measure speed and memory of every run that did not fail."""
        plan = self.folder.plan
        runs = plan.candidates if plan.reference_import else plan.runs
        runs = tuple(run for run in runs if self.folder.failure(run.run_id) is None)
        phase = SpeedPhase(
            folder=self.folder,
            services=self._services,
            vocabulary_tokens=material.vocabulary_tokens,
            open_worker=self._open,
            failed=self._speed_failed,
            tell=self._tell,
            stopped=self._stopped,
        )
        if not phase.is_done(runs):
            phase.run(runs)
            self._tell_result()

    def _speed_failed(self, run: RunSpec, error: AppError) -> None:
        self._note_failure(run, error)
        if run.run_id == self.folder.plan.reference.run_id:
            raise _ReferenceFailedError(error.words)

    # ------------------------------------------------------------------------------------- what is done

    def _needed_windows(self, material: Material) -> list[int]:
        """Return the windows that a run is still to be compared with."""
        plan = self.folder.plan
        others = [run.run_id for run in plan.candidates]
        others += [NOISE_FLOOR_RUN] if plan.with_noise_floor and not plan.reference_import else []
        done = [set(self.folder.windows_done(run_id)) for run_id in others]
        is_checked = self.folder.conditions().self_check is not None or bool(plan.reference_import)
        first = [] if is_checked else [0]
        missing = (n for n in range(len(material.windows)) if any(n not in one for one in done))
        return sorted({*first, *missing}) if material.windows else []

    def _is_reference_done(self, material: Material) -> bool:
        run_id = self.folder.plan.reference.run_id
        return (
            self._has_windows(run_id, material)
            and all(self.folder.has_reference(number) for number in self._needed_windows(material))
            and self._has_said_all(run_id, material)
        )

    def _is_candidate_done(self, run: RunSpec, material: Material) -> bool:
        return self._has_windows(run.run_id, material) and self._has_said_all(run.run_id, material)

    def _has_windows(self, run_id: str, material: Material) -> bool:
        return set(range(len(material.windows))) <= set(self.folder.windows_done(run_id))

    def _has_said_all(self, run_id: str, material: Material) -> bool:
        return len(self.folder.answers(run_id)) >= len(material.prompts) and len(self.folder.picks(run_id)) >= len(
            material.choices
        )

    # ------------------------------------------------------------------------------------- helpers

    def _open(self, run: RunSpec) -> RunWorker:
        """Start a worker for a run and load its model, as equal to all others as it can be."""
        self._tell(run.run_id, LOADING, 0, 1)
        worker = RunWorker(run, self._services, self._stopped.is_set)
        threads = self.folder.conditions().threads or self.folder.plan.threads
        try:
            worker.load(self.folder.plan.workload.context_tokens, threads, lambda _fraction: None)
        except (AppError, StoppedError):
            worker.close()
            raise
        self._tell(run.run_id, LOADING, 1, 1)
        return worker

    _loaded = _open  # as a context manager, for runs that are closed with their part

    def _phases(self, run_id: str, material: Material, worker: RunWorker) -> RunPhases:
        return RunPhases(
            self.folder, material, worker, run_id, lambda phase, done, total: self._tell(run_id, phase, done, total)
        )

    def _keep_conditions(self, material: Material, worker: RunWorker) -> None:
        conditions = self.folder.conditions()
        kept_tokens = conditions.kept_tokens
        if not conditions.tokens_sha256:  # decided once: a comparison has one kind of reference
            kept_tokens = kept_tokens_for(len(material.windows), material.vocabulary_tokens)
        changed = msgspec.structs.replace(
            conditions, tokens_sha256=material.sha256, threads=worker.loaded.threads, kept_tokens=kept_tokens
        )
        self.folder.save_conditions(changed)

    def _note_failure(self, run: RunSpec, error: AppError) -> None:
        words = words_for_exception(error)
        _log.info("run %s failed: %s", run.run_id, type(error).__name__)
        is_passing = isinstance(error, EngineEndedError) or (
            isinstance(error, EngineRefusedError) and error.code in _PASSING
        )
        self.folder.save(
            run.run_id, "failure", RunFailure(message=words.message, hint=words.hint, is_lasting=not is_passing)
        )
        self._on_event(RunEnded(run.run_id, words.message))

    def _read_machine(self, moment: str) -> None:
        found = machine_load()
        reading = MachineReading(moment=moment, busy_share=round(found.busy_share, 3), load_average=found.load_average)
        conditions = self.folder.conditions()
        machine = (*(one for one in conditions.machine if one.moment != moment), reading)
        self.folder.save_conditions(msgspec.structs.replace(conditions, machine=machine))

    def _note_time(self) -> None:
        took_s = round(self._before_s + time.monotonic() - self._began_s, 3)
        self.folder.save_conditions(msgspec.structs.replace(self.folder.conditions(), took_s=took_s))

    def _tell(self, run_id: str, phase: str, done: int, total: int) -> None:
        remaining_s = self._progress.moved(run_id, phase, done)
        self._on_event(PhaseChanged(run_id, phase, done, total, remaining_s))


def _check_not_imported(plan: ComparisonPlan) -> None:
    """Refuse to load a reference that is not here: its windows come from elsewhere."""
    if plan.reference_import:
        message = _("The imported reference is not complete: some of its windows are missing.")
        raise AppError(Words(message, _("Begin a new comparison and import them again.")))


def _version() -> str:
    """Return the program's version; "" where it runs without being installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("cutaway")
    return ""


def _free_bytes() -> int:
    return int(psutil.virtual_memory().available)
