"""A compare screen's services without an engine: comparisons in memory, and a runner that is told what to say."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.reference import candidates_for, propose_reference
from app.compare.results import ComparisonResult
from app.compare.runner_events import OnRunnerEvent, RunnerEvent
from app.compare.texts import bundled_texts
from app.compare.workload import preset
from app.errors import AppError, Words
from app.models.entry import ModelEntry
from ui.compare_services import Outline, Proposed, row_of
from ui.models.compare_choice import SetupChoice, make_plan, single
from ui.models.compare_list_model import ComparisonRow

PATIENCE_S = 60.0


class FakeRunner:
    """Says what it is told until it is told to end; a stop ends it at once.

    Attributes:
        is_stopped: whether an end was asked for.
        thread: on which it ran.
    """

    def __init__(self) -> None:
        self.is_stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self._said: queue.Queue[RunnerEvent | ComparisonResult | AppError] = queue.Queue()

    def say(self, what: RunnerEvent | ComparisonResult | AppError) -> None:
        """Let it say an event, end with a result, or break with an error."""
        self._said.put(what)

    def run(self, on_event: OnRunnerEvent) -> ComparisonResult:
        """Say what it is told."""
        self.thread = threading.current_thread()
        last = ComparisonResult(comparison_id="", state="stopped")
        while True:
            what = self._said.get(timeout=PATIENCE_S)
            if isinstance(what, AppError):
                raise what
            if isinstance(what, ComparisonResult):
                return what if not self.is_stopped.is_set() else msgspec.structs.replace(last, state="stopped")
            on_event(what)

    def stop(self) -> None:
        """End soon."""
        self.is_stopped.set()
        self._said.put(ComparisonResult(comparison_id="", state="stopped"))


class FakeServices:
    """What the compare screen asks for, from memory.

    Attributes:
        kept: plans and results by comparison_id.
        runner_made: the last runner.
        predictions: how often a time was predicted.
        kv_types: of the runs that were used.
        refusal: raised instead of making a comparison; None for none.
    """

    def __init__(self, folder: Path, kept: Sequence[tuple[ComparisonPlan, ComparisonResult]] = ()) -> None:
        self.folder = folder
        self.kept = {plan.comparison_id: (plan, result) for plan, result in kept}
        self.runner_made = FakeRunner()
        self.predictions = 0
        self.kv_types: list[str] = []
        self.refusal: Words | None = None

    def rows(self) -> list[ComparisonRow]:
        return [row_of(plan, result) for plan, result in self.kept.values()]

    def open(self, comparison_id: str) -> tuple[ComparisonPlan, ComparisonResult]:
        if comparison_id not in self.kept:
            raise AppError(Words("There is no such comparison.", "Begin a new one."))
        return self.kept[comparison_id]

    def result_path(self, comparison_id: str) -> Path:
        return self.folder / f"{comparison_id}.json"

    def delete(self, comparison_id: str) -> None:
        del self.kept[comparison_id]

    def propose(self, entries: Sequence[ModelEntry], reference_key: str = "") -> Proposed | None:
        usable = single(entries)
        chosen = [entry for entry in usable if entry.key == reference_key] or usable
        proposal = propose_reference(chosen, None, lambda _path: NO_PROVENANCE)
        assert proposal is not None
        shown = (proposal.entry, *candidates_for(proposal.entry, usable))
        keys = {entry.key: entry.quantization for entry in usable}
        kv = frozenset(keys)
        return Proposed(shown, proposal.entry.key, proposal.reason, proposal.warnings, keys, kv, {})

    def outline(self, choice: SetupChoice) -> Outline:
        if choice.text == "own":
            raise AppError(Words("“notes.txt” is too short to score.", ""))
        return Outline(f"what {choice.amount} does")

    def predict(self, choice: SetupChoice, entries, cancel: threading.Event) -> Outline | None:
        self.predictions += 1
        return Outline(f"what {choice.amount} does", "about 9 minutes")

    def create(self, choice: SetupChoice, entries) -> ComparisonPlan:
        if self.refusal is not None:
            raise AppError(self.refusal)
        plan = make_plan(choice, entries, preset(choice.amount, bundled_texts()), lambda _entry: "llama_cpp", "made")
        self.kept["made"] = (plan, ComparisonResult(comparison_id="made"))
        return plan

    def keep_kv_type(self, entry: ModelEntry, spec: RunSpec) -> ModelEntry:
        self.kv_types.append(spec.kv_type)
        return entry

    def runner(self, comparison_id: str) -> FakeRunner:
        return self.runner_made


class _NoProvenance:
    is_requantized = False
    detail = ""


NO_PROVENANCE = _NoProvenance()
