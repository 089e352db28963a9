"""Results find their runs, count flips and survive their file."""

from __future__ import annotations

import msgspec

from app.compare.results import Choices, ComparisonResult, RunResult
from tests.helpers.score_values import quality_of


def test_flips_are_changes_in_both_directions():
    choices = Choices(
        picked=(0, 1), right=1, accuracy=0.5, accuracy_interval=(0.1, 0.9), right_to_wrong=2, wrong_to_right=3
    )
    assert choices.flips == 5


def test_a_run_is_found_by_its_id_and_one_not_begun_is_none():
    result = ComparisonResult(comparison_id="one", runs=(RunResult(run_id="F16"), RunResult(run_id="Q4_0")))
    assert result.run("Q4_0") is result.runs[1]
    assert result.run("Q2_K") is None


def test_broken_tokens_are_counted_with_and_without_a_quality():
    assert RunResult(run_id="A").broken_tokens == 0
    assert RunResult(run_id="A", non_finite=7).broken_tokens == 7
    assert RunResult(run_id="A", quality=quality_of(0.1, non_finite=3)).broken_tokens == 3


def test_a_figure_that_was_not_measured_stays_none_in_the_file():
    result = ComparisonResult(comparison_id="one", runs=(RunResult(run_id="F16", failure="The engine ended."),))
    read = msgspec.json.decode(msgspec.json.encode(result), type=ComparisonResult)
    assert read == result
    assert read.runs[0].quality is None
    assert read.noise_floor is None
