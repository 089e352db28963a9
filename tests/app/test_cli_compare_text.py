"""What `cutaway compare` says: the table, the conditions, the progress."""

from __future__ import annotations

import msgspec
import pytest

from app.cli_compare_text import condition_lines, kl_text, progress_text, table_rows
from app.compare.folder import NOISE_FLOOR_RUN
from app.compare.results import ComparisonResult, RunResult
from app.compare.runner import PhaseChanged
from tests.helpers.comparison_values import QUALITY, RESULT
from tests.helpers.scoring_worker import FakeModel, make_plan


@pytest.fixture
def plan(tmp_path):
    return make_plan(tmp_path, q4=FakeModel(), q2=FakeModel())


def test_each_measured_run_is_a_row_and_the_reference_says_what_it_is(plan) -> None:
    head, reference, q4 = table_rows(plan, RESULT)
    assert len(head) == len(reference) == len(q4)
    assert (reference[0], reference[-1]) == ("F16", "reference")
    assert q4[0] == "q4"
    assert "0.0400 (0.0300 to 0.0500)" in q4
    assert "90.0\xa0%" in q4
    assert q4[-1] == "small differences · on the front"


def test_a_figure_nobody_measured_is_a_dash(plan) -> None:
    one = RunResult(run_id="q4", quality=QUALITY, perplexity=10.5, verdict="noticeable")
    row = table_rows(plan, ComparisonResult(comparison_id="t", runs=(one,)))[1]
    assert row[3] == row[8] == row[9] == "-"
    assert kl_text(QUALITY) == "0.0400 (0.0300 to 0.0500)"


def test_a_run_of_which_nothing_is_known_has_no_row(plan) -> None:
    failed = RunResult(run_id="q4", failure="It ended.")
    assert len(table_rows(plan, ComparisonResult(comparison_id="t", runs=(failed,)))) == 1


def test_the_conditions_name_machine_work_and_noise(plan) -> None:
    said = " ".join(condition_lines(plan, RESULT, "Processor", 2))
    for words in (
        "765 tokens scored in 3 windows",
        "Processor, 2 threads",
        "fresh worker",
        "0.000100 nats",
        "0.0000 nats",
    ):
        assert words in said
    bare = msgspec.structs.replace(RESULT, noise_floor=None, self_check=None)
    assert len(condition_lines(plan, bare, "P", 1)) == 2


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (PhaseChanged("q4", "windows", 1, 4, 100.0), "q4: scoring · 2 of 4 · about 2 minutes left"),
        (PhaseChanged(NOISE_FLOOR_RUN, "loading", 0, 1, None), "Noise floor: loading the model"),
        (PhaseChanged("F16", "waiting", 0, 0, None), "F16: waiting for the chat to end"),
        (PhaseChanged("q4", "choices", 4, 4, None), "q4: choosing · 4 of 4"),
    ],
)
def test_progress_is_one_line(plan, event, words) -> None:
    assert progress_text(plan, event).replace("\xa0", " ") == words
