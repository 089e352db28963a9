"""How far a comparison is: a line for each run, one sentence for what is done now, a share, and the time left.

Takes the runner's events; knows no widget. The time left is predicted from what the pieces took so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from app.compare.duration import duration_words
from app.compare.folder import NOISE_FLOOR_RUN
from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, RunResult
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded, RunnerEvent
from app.i18n import _
from app.units import count_text
from ui.models.compare_words import kl_text, run_state_words

LineState = Literal["waiting", "active", "done", "failed"]

_LOADING, _WINDOWS, _ANSWERS, _CHOICES, _SPEED, _WAITING = (
    *("loading", "windows", "answers", "choices", "speed", "waiting"),
)
# How much of the bar a phase of a run is, as a rule.
_SHARES: Final = {_WINDOWS: 3.0, _ANSWERS: 2.0, _CHOICES: 1.0, _SPEED: 2.0}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run while the comparison goes on.

    Attributes:
        run_id: of the plan, or the noise floor's.
        label: for people.
        state: whether it waits, works, is done or failed.
        words: what it does or came to.
    """

    run_id: str
    label: str
    state: LineState
    words: str


class CompareProgress:
    """What the runner has said so far.

    Attributes:
        plan: what is done.
        result: what is known so far; None before anything is.
        _done: how much of a phase of a run is done, 0 to 1.
        _failures: in words, by run_id.
        _now: the piece under way.
    """

    def __init__(self, plan: ComparisonPlan, result: ComparisonResult | None = None) -> None:
        self.plan = plan
        self.result = result
        self._done: dict[tuple[str, str], float] = {}
        self._failures: dict[str, str] = {}
        self._now: PhaseChanged | None = None
        self._fraction = 0.0
        self._is_stopping = False
        if result is not None:
            self._take_result(result)

    def take(self, event: RunnerEvent) -> None:
        """Take over what the runner said."""
        match event:
            case PhaseChanged(phase=phase) if phase in _SHARES and not event.total:
                pass  # there is nothing to do in it
            case PhaseChanged():
                self._now = event
                self._note(event)
            case RunEnded(run_id=run_id, failure=failure):
                if failure:
                    self._failures[run_id] = failure
                for phase in (_WINDOWS, _ANSWERS, _CHOICES):
                    self._done[(run_id, phase)] = 1.0
            case ResultChanged(result=result):
                self._take_result(result)

    def stopping(self) -> None:
        """Note that an end was asked for."""
        self._is_stopping = True

    @property
    def headline(self) -> str:
        """What is done now, in a sentence."""
        if self._is_stopping:
            return _("Stopping. What was measured is kept.")
        if self._now is None:
            return _("Getting ready.")
        if self._now.phase == _WAITING:
            return _("Waiting until the chat's answer is written: speed is measured on a quiet machine.")
        return _("{run}: {work}").format(run=self._label(self._now.run_id), work=phase_words(self._now))

    @property
    def left_words(self) -> str:
        """How long it still takes, predicted; "" before anybody can tell."""
        remaining_s = self._now.remaining_s if self._now is not None else None
        if remaining_s is None or self._is_stopping:
            return ""
        return _("{time} left").format(time=duration_words(remaining_s))

    @property
    def fraction(self) -> float:
        """How much is done, 0 to 1; never less than before."""
        pieces = self._pieces()
        total = sum(pieces.values())
        done = sum(share * self._done.get(piece, 0.0) for piece, share in pieces.items())
        self._fraction = max(self._fraction, done / total if total else 0.0)
        return self._fraction

    @property
    def lines(self) -> list[RunLine]:
        """A line for each run, in the order in which they are done."""
        lines = [self._line(run) for run in self.plan.runs]
        if self.plan.with_noise_floor:
            lines.insert(1, self._noise_floor_line())
        return lines

    # ------------------------------------------------------------------------------------- helpers

    def _note(self, event: PhaseChanged) -> None:
        """Note how much of a phase is done; the turns of the speed phase are counted over all runs."""
        if not event.total:
            return
        runs = [run.run_id for run in self.plan.runs] if event.phase == _SPEED else [event.run_id]
        for run_id in runs:
            self._done[(run_id, event.phase)] = min(1.0, event.done / event.total)

    def _line(self, spec: RunSpec) -> RunLine:
        run = self.result.run(spec.run_id) if self.result is not None else None
        failure = self._failures.get(spec.run_id, "")
        if failure:
            return RunLine(spec.run_id, spec.label, "failed", failure)
        if self._is_now(spec.run_id):
            return RunLine(spec.run_id, spec.label, "active", phase_words(self._now) if self._now else "")
        is_reference = spec.run_id == self.plan.reference.run_id
        words = run_state_words(spec, run, is_reference) if self._is_through(spec.run_id) else ""
        if words:
            return RunLine(spec.run_id, spec.label, "done", words)
        return RunLine(spec.run_id, spec.label, "waiting", _("waits for its turn"))

    def _noise_floor_line(self) -> RunLine:
        label = _("{reference}, once more").format(reference=self.plan.reference.label)
        floor = self.result.noise_floor if self.result is not None else None
        if self._is_now(NOISE_FLOOR_RUN):
            return RunLine(NOISE_FLOOR_RUN, label, "active", phase_words(self._now) if self._now else "")
        if floor is not None:
            words = _("noise floor KL {kl}: smaller differences mean nothing").format(kl=kl_text(floor))
            return RunLine(NOISE_FLOOR_RUN, label, "done", words)
        return RunLine(NOISE_FLOOR_RUN, label, "waiting", _("for the noise floor: with another batch size"))

    def _is_now(self, run_id: str) -> bool:
        return self._now is not None and self._now.run_id == run_id and not self._is_stopping

    def _is_through(self, run_id: str) -> bool:
        """Return whether a run has done all but its speed rounds."""
        return self._done.get((run_id, _WINDOWS), 0.0) >= 1.0

    def _label(self, run_id: str) -> str:
        if run_id == NOISE_FLOOR_RUN:
            return _("{reference}, once more").format(reference=self.plan.reference.label)
        run = self.plan.run(run_id)
        return run.label if run is not None else run_id

    def _take_result(self, result: ComparisonResult) -> None:
        self.result = result
        windows = self.plan.workload.scored_tokens
        for run in result.runs:
            if run.failure:
                self._failures[run.run_id] = run.failure
            if _has_scored_all(run, windows):
                self._done[(run.run_id, _WINDOWS)] = 1.0
                self._done[(run.run_id, _ANSWERS)] = len(run.answers) / max(1, len(self.plan.workload.prompts))
            if run.choices is not None:
                self._done[(run.run_id, _CHOICES)] = 1.0
            if run.speed is not None:
                self._done[(run.run_id, _SPEED)] = 1.0
        if result.noise_floor is not None:
            self._done[(NOISE_FLOOR_RUN, _WINDOWS)] = 1.0

    def _pieces(self) -> Mapping[tuple[str, str], float]:
        work = self.plan.workload
        amounts = {_WINDOWS: work.windows, _ANSWERS: len(work.prompts), _CHOICES: len(work.choices)}
        amounts[_SPEED] = work.speed.rounds
        pieces = {
            (run.run_id, phase): _SHARES[phase] for run in self.plan.runs for phase, amount in amounts.items() if amount
        }
        if self.plan.with_noise_floor:
            pieces[(NOISE_FLOOR_RUN, _WINDOWS)] = _SHARES[_WINDOWS]
        return pieces


def phase_words(event: PhaseChanged) -> str:
    """Return what a run does now: "scoring the text, window 3 of 4"."""
    words = {
        _LOADING: _("loading the model"),
        _WINDOWS: _("scoring the text, window {number} of {total}"),
        _ANSWERS: _("writing answers, {number} of {total}"),
        _CHOICES: _("answering questions, {number} of {total}"),
        _SPEED: _("measuring speed, turn {number} of {total}"),
        _WAITING: _("waits until the chat is quiet"),
    }
    number = min(event.done + 1, event.total)
    return words.get(event.phase, event.phase).format(number=count_text(number), total=count_text(event.total))


def _has_scored_all(run: RunResult, tokens: int) -> bool:
    if run.quality is not None:
        return run.quality.tokens + run.quality.non_finite >= tokens
    return run.perplexity is not None
