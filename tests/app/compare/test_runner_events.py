"""What a running comparison says of itself."""

from __future__ import annotations

from app.compare import runner, runner_events
from app.compare.results import ComparisonResult
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded


def test_events_are_values_that_the_runner_hands_on_under_its_own_name_too() -> None:
    assert RunEnded("q4") == RunEnded("q4", failure="")
    assert PhaseChanged("q4", "windows", 1, 4, None) != PhaseChanged("q4", "windows", 2, 4, None)
    assert ResultChanged(ComparisonResult(comparison_id="a")).result.state == "planned"
    for name in ("PhaseChanged", "RunEnded", "ResultChanged"):
        assert getattr(runner, name) is getattr(runner_events, name)
