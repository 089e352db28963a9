"""What the compare screen asks of the program: comparisons on disk, a reference, the work, a prediction, a runner.

Everything here may take time and touches no widget: it is called on background threads.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from app.bench.engine_run import EngineRun, StoppedError
from app.compare.duration import Probe, duration_words, fewer_windows, predicted_s
from app.compare.files import FolderError
from app.compare.folder import ComparisonFolder, comparisons_root, list_comparisons, new_comparison_id
from app.compare.plan import ComparisonPlan, RunSpec, TextSpec, WorkloadSpec
from app.compare.probe_speed import probe_speed
from app.compare.reference import candidates_for, propose_reference
from app.compare.results import ComparisonResult
from app.compare.run_worker import RunnerServices
from app.compare.runner import ComparisonRunner
from app.compare.runner_events import OnRunnerEvent
from app.compare.texts import OWN_CHATS, bundled_texts, chats_spec, keep_chats, own_chats, own_text, read_text
from app.compare.workload import FEWEST_WINDOWS, preset, with_windows
from app.context import AppContext
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.log import new_worker_log
from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from backends.protocol import LifeCycle, LoadParams
from backends.renderer_client import RendererClient
from ui.models.compare_choice import SetupChoice, exact_kv, has_smaller_kv, make_plan, single
from ui.models.compare_list_model import ComparisonRow
from ui.models.compare_words import whole_count, workload_text
from ui.models.model_words import quantization_text

_USUAL_CONTEXT_TOKENS = 8192
# A larger model is not loaded only to predict a time: the nearest smaller one is measured, the rest derived.
_MOST_PROBED_BYTES = 6 * 2**30
_PROBE_CONTEXT_TOKENS = 1024
# More of the chats than any amount reads.
_CHAT_WINDOWS = 16


class Runner(Protocol):
    """What works a comparison off."""

    def run(self, on_event: OnRunnerEvent) -> ComparisonResult:
        """Do what is not done yet; blocks."""

    def stop(self) -> None:
        """End soon, from any thread."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """What the setup page offers for a model.

    Attributes:
        entries: the reference and its candidates.
        reference_key: of the reference.
        reason: why this one.
        warnings: what must be known of it.
        references: what else could be it, in words by key.
        with_kv: keys of the entries that can run with a smaller KV cache too.
        fits: whether each fits, by key.
    """

    entries: tuple[ModelEntry, ...]
    reference_key: str
    reason: str
    warnings: tuple[str, ...]
    references: Mapping[str, str]
    with_kv: frozenset[str]
    fits: Mapping[str, Fit]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a choice comes to.

    Attributes:
        work: what every run does, in words.
        time: how long all of it takes, predicted, in words; "" where nobody can tell.
    """

    work: str
    time: str = ""


class CompareServices:
    """Answers the compare screen.

    Attributes:
        _context: the program's parts.
        _root: where the comparisons lie.
        _probes: what was measured of models, by path and KV type.
    """

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._root = comparisons_root(context.paths.data)
        self._probes: dict[tuple[str, str], Probe] = {}
        self._lock = threading.Lock()

    # ------------------------------------------------------------------------------------- on disk

    def rows(self) -> list[ComparisonRow]:
        """Return the comparisons there are; one that nobody finished counts as stopped."""
        found = []
        for listed in list_comparisons(self._root):
            plan, result = listed.plan, listed.result
            if plan is None:
                fault = listed.fault or _("its plan cannot be read")
                found.append(
                    ComparisonRow(listed.path.name, listed.path.name, _changed_s(listed.path), "", 0, 0, fault)
                )
                continue
            found.append(row_of(plan, result or ComparisonResult(comparison_id=plan.comparison_id), listed.fault))
        return found

    def open(self, comparison_id: str) -> tuple[ComparisonPlan, ComparisonResult]:
        """Return a comparison's plan and what was found so far; raises AppError."""
        folder = ComparisonFolder.open(self._root / comparison_id)
        result = folder.result() or ComparisonResult(comparison_id=comparison_id)
        if result.state == "running":  # whoever ran it is gone
            result = msgspec.structs.replace(result, state="stopped")
        return folder.plan, result

    def result_path(self, comparison_id: str) -> Path:
        """Return the file of a comparison's result."""
        return self._root / comparison_id / "comparison.json"

    def delete(self, comparison_id: str) -> None:
        """Delete a comparison with all it measured; raises AppError."""
        path = self._root / comparison_id
        try:
            folder = ComparisonFolder.open(path)
        except FolderError:
            _remove(path)
            return
        folder.delete()

    # ------------------------------------------------------------------------------------- setup

    def propose(self, entries: Sequence[ModelEntry], reference_key: str = "") -> Proposed | None:
        """Return what can be compared of a model's entries.

        Args:
            entries: all of one name.
            reference_key: the person's choice of a reference; "" for the best.
        """
        usable = single(entries)
        fits = {entry.key: self._fit(entry) for entry in usable}
        chosen = [entry for entry in usable if entry.key == reference_key]
        proposal = propose_reference(chosen or usable, fits)
        if proposal is None:
            return None
        candidates = candidates_for(proposal.entry, usable)
        shown = (proposal.entry, *candidates)
        return Proposed(
            entries=shown,
            reference_key=proposal.entry.key,
            reason=_("Your choice.") if chosen else proposal.reason,
            warnings=proposal.warnings,
            references={entry.key: quantization_text(entry) for entry in usable},
            with_kv=frozenset(entry.key for entry in shown if has_smaller_kv(self._context.backend_of(entry))),
            fits=fits,
        )

    def outline(self, choice: SetupChoice) -> Outline:
        """Return what every run would do; raises AppError for a text that cannot be used."""
        return Outline(workload_text(self._workload(choice, None)))

    def predict(
        self, choice: SetupChoice, entries: Mapping[str, ModelEntry], cancel: threading.Event
    ) -> Outline | None:
        """Measure a model for two seconds where none was, and return how long it takes; None where that was ended."""
        plan = self._plan(choice, entries, "planned", self._workload(choice, None))
        for run in _worth_probing(plan):
            if not self._probe(run, cancel):
                return None
        plan, why = self._within_reason(plan)
        probes = self._known_probes(plan)
        if not probes:
            return Outline(workload_text(plan.workload))
        work = f"{workload_text(plan.workload)}. {why}" if why else workload_text(plan.workload)
        took = predicted_s(plan, probes, psutil.virtual_memory().available)
        return Outline(work, duration_words(took.total_s))

    def create(self, choice: SetupChoice, entries: Mapping[str, ModelEntry]) -> ComparisonPlan:
        """Make the folder of a comparison and return its plan; raises AppError."""
        comparison_id = new_comparison_id(choice.title, self._root)
        chats = own_chats(self._context.store, _CHAT_WINDOWS) if choice.text == "chats" else ""
        spec = chats_spec(chats, self._root / comparison_id) if chats else None
        plan, _why = self._within_reason(self._plan(choice, entries, comparison_id, self._workload(choice, spec)))
        folder = ComparisonFolder.create(self._root, plan)
        if spec is not None:
            try:
                keep_chats(spec, chats)
            except AppError:
                folder.delete()
                raise
        return plan

    # ------------------------------------------------------------------------------------- the work

    def runner(self, comparison_id: str) -> Runner:
        """Return what works a comparison off; raises AppError."""
        renderer = RendererClient()
        services = RunnerServices(
            open_log=self._open_log,
            renderer=renderer,
            read_text=read_text,
            is_chat_busy=lambda: self._context.engine.state is LifeCycle.BUSY,
            predicted_bytes=self._predicted_bytes,
        )
        return _OwnRunner(ComparisonRunner(ComparisonFolder.open(self._root / comparison_id), services), renderer)

    def keep_kv_type(self, entry: ModelEntry, spec: RunSpec) -> ModelEntry:
        """Have the chat keep a model's KV cache as a run did, where that is not the exact one; raises AppError.

        Returns:
            The entry as the library has it then.
        """
        is_kept = spec.kv_type in (exact_kv(spec.backend), self._context.load_params(entry).kv_type)
        if is_kept:
            return entry
        defaults = msgspec.structs.replace(entry.defaults, kv_type=spec.kv_type)
        self._context.library.set_defaults(entry.key, defaults)
        return self._context.library.find(entry.key)

    # ------------------------------------------------------------------------------------- helpers

    def _workload(self, choice: SetupChoice, chats: TextSpec | None) -> WorkloadSpec:
        context_tokens = self._context.settings.get().context_tokens or _USUAL_CONTEXT_TOKENS
        return preset(choice.amount, _texts(choice, chats), context_tokens)

    def _plan(
        self, choice: SetupChoice, entries: Mapping[str, ModelEntry], comparison_id: str, workload: WorkloadSpec
    ) -> ComparisonPlan:
        return make_plan(choice, entries, workload, self._context.backend_of, comparison_id)

    def _within_reason(self, plan: ComparisonPlan) -> tuple[ComparisonPlan, str]:
        """Return the plan with fewer windows where a run would take too long, and the words for it."""
        windows, why = fewer_windows(plan, self._known_probes(plan), FEWEST_WINDOWS)
        if not why:
            return plan, ""
        return msgspec.structs.replace(plan, workload=with_windows(plan.workload, windows)), why

    def _known_probes(self, plan: ComparisonPlan) -> dict[str, Probe]:
        with self._lock:
            known = {run.run_id: self._probes.get((run.path, run.kv_type)) for run in plan.runs}
        return {run_id: probe for run_id, probe in known.items() if probe is not None}

    def _probe(self, run: RunSpec, cancel: threading.Event) -> bool:
        """Measure a run's model where it was not yet; returns False where that was ended or cannot be done."""
        key = (run.path, run.kv_type)
        with self._lock:
            if key in self._probes:
                return True
        engine = EngineRun(self._open_log, is_stopped=cancel.is_set)
        try:
            params = LoadParams(context_tokens=_PROBE_CONTEXT_TOKENS, kv_type=run.kv_type, kv_mode="streams")
            probe = probe_speed(engine, LoadRequest(run.path, run.backend, params))
        except (AppError, StoppedError):  # it will be said when the run itself fails
            return False
        finally:
            engine.close()
        with self._lock:
            self._probes[key] = probe
        return True

    def _fit(self, entry: ModelEntry) -> Fit:
        return self._context.advisor.fit(entry, self._context.load_params(entry), self._context.backend_of(entry))

    def _predicted_bytes(self, run: RunSpec, context_tokens: int) -> int | None:
        entry = next((one for one in self._context.library.entries() if one.key == run.key), None)
        if entry is None:
            return None
        params = LoadParams(context_tokens=context_tokens, kv_type=run.kv_type)
        estimate = self._context.advisor.fit(entry, params, run.backend).estimate
        return estimate.needed_bytes if estimate is not None else None

    def _open_log(self) -> Path:
        try:
            return new_worker_log(self._context.paths.logs)
        except OSError:  # a full or read-only folder must not keep a comparison from running
            return Path(os.devnull)


class _OwnRunner:
    """A runner with a renderer of its own, which ends with it."""

    def __init__(self, runner: ComparisonRunner, renderer: RendererClient) -> None:
        self._runner = runner
        self._renderer = renderer

    def run(self, on_event: OnRunnerEvent) -> ComparisonResult:
        """Do what is not done yet; blocks."""
        try:
            return self._runner.run(on_event)
        finally:
            self._renderer.close()

    def stop(self) -> None:
        """End soon."""
        self._runner.stop()


def row_of(plan: ComparisonPlan, result: ComparisonResult, fault: str = "") -> ComparisonRow:
    """Return how a comparison is listed."""
    state = "stopped" if result.state == "running" else result.state
    done, total = whole_count(plan, result.runs), len(plan.runs)
    return ComparisonRow(plan.comparison_id, plan.title, plan.created_s, state, done, total, fault)


def _worth_probing(plan: ComparisonPlan) -> list[RunSpec]:
    """Return the runs that a prediction is made from: the smallest, and the reference where it is no giant."""
    small = min(plan.runs, key=lambda run: run.size_bytes)
    wanted = [small, plan.reference] if plan.reference.run_id != small.run_id else [small]
    return [run for run in wanted if run.size_bytes <= _MOST_PROBED_BYTES]


def _texts(choice: SetupChoice, chats: TextSpec | None) -> Sequence[TextSpec]:
    if choice.text == "own" and choice.own_path:
        return (own_text(Path(choice.own_path)),)
    if choice.text == "chats":
        return (chats or TextSpec(text_id=OWN_CHATS, title=_("Your chats")),)
    return bundled_texts()


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove(path: Path) -> None:
    """Delete a folder whose plan cannot be read; raises FolderError."""
    try:
        shutil.rmtree(path)
    except OSError as error:
        message = _("The comparison could not be deleted: {reason}.").format(
            reason=one_line(error.strerror or str(error))
        )
        raise FolderError(Words(message, _("Delete its folder yourself: {path}").format(path=path))) from error
