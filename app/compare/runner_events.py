"""What a running comparison says of itself. The runner is in app/compare/runner.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.compare.results import ComparisonResult


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """A piece of work begins.

    Attributes:
        run_id: of the run; NOISE_FLOOR_RUN for the reference's second pass.
        phase: "loading", "windows", "answers", "choices", "speed", or "waiting" while a chat is busy.
        done: pieces of the phase that are done.
        total: how many there are; 0 when that has no meaning.
        remaining_s: of the whole comparison; None before anything was measured.
    """

    run_id: str
    phase: str
    done: int
    total: int
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has done all but its speed rounds, or failed; then in words."""

    run_id: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ResultChanged:
    """More is known; the file comparison.json says so too."""

    result: ComparisonResult


RunnerEvent = PhaseChanged | RunEnded | ResultChanged
OnRunnerEvent = Callable[[RunnerEvent], None]
