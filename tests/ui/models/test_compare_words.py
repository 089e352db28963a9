"""The compare screen's words: units, intervals, plurals; what was not measured is a dash."""

from __future__ import annotations

import pytest

from app.compare.results import Difference
from tests.helpers import compare_values as values
from ui.models import compare_words as words

NBSP = "\u00a0"


def plain(text):
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("kl", "interval", "text"),
    [
        (0.0313, (0.0282, 0.0344), "0.0313 (0.028 to 0.034)"),
        (0.00136, (0.0012, 0.0015), "0.0014 (0.0012 to 0.0015)"),
        (0.445, (0.4, 0.4895), "0.4450 (0.40 to 0.49)"),
        (2.21, (1.9, 2.6), "2.2100 (1.9 to 2.6)"),
        (0.0, (0.0, 0.00004), "0.0000 (0 to 0.0000)"),
    ],
)
def test_a_divergence_is_told_with_its_interval(kl, interval, text):
    assert plain(words.kl_interval_text(values.quality(kl, 0.9, kl_interval=interval))) == text


def test_what_was_not_measured_is_a_dash():
    assert words.kl_interval_text(None) == words.ratio_text(None) == words.measure_text(None) == words.NOT_KNOWN
    assert words.kl_text(None) == words.share_text(None) == words.size_text(None) == words.size_text(0) == "–"


def test_speeds_have_units_and_intervals():
    assert plain(words.ratio_text(values.measure(2.4))) == "2.4 × (2.3 to 2.5)"
    assert plain(words.measure_text(values.measure(150.0))) == "150 tokens/s (144 to 156)"


def test_a_comparison_says_what_is_compared_with_what():
    plan = values.plan()
    assert words.candidates_text(plan) == "6 quantizations against F16"
    one = values.plan(candidates=plan.candidates[:1])
    assert words.candidates_text(one) == "1 quantization against F16"
    kv = values.spec("F16", 16.0, 14.96, run_id="F16-kv-q8_0", kv_type="q8_0")
    assert words.candidates_text(values.plan(candidates=(kv,))) == "1 run against F16"
    told = words.facts_text(plan, values.result(plan))
    assert plain(told) == "6 quantizations against F16 · 1,020 scored tokens · finished in 9 min 01 s"


@pytest.mark.parametrize(
    ("state", "done", "text"),
    [
        ("done", 7, "finished"),
        ("done", 6, "finished, 6 of 7 runs whole"),
        ("running", 2, "running: 2 of 7 runs done"),
        ("stopped", 3, "stopped: 3 of 7 runs done"),
        ("planned", 0, "not started"),
    ],
)
def test_a_comparison_says_how_far_it_is(state, done, text):
    assert words.state_words(state, done, 7) == text


def test_a_run_says_what_it_came_to():
    plan = values.plan()
    assert words.run_state_words(plan.candidates[0], None, False) == ""
    told = words.run_state_words(plan.candidates[3], values.run("Q4_K_M"), False)
    assert told == "small differences · KL 0.0313 · 92 of 100 next tokens unchanged"
    failed = values.run("Q8_0", failure="The engine ended.")
    assert words.run_state_words(plan.candidates[0], failed, False) == "failed: The engine ended."
    assert words.run_state_words(plan.reference, values.run("F16"), True) == "the reference is measured"


def test_neighbours_that_cannot_be_told_apart_are_named():
    plan = values.plan()
    assert words.neighbours_text(plan, values.result(plan)) == "No measurable difference on this text: Q8_0 and Q6_K."
    real = Difference(first="Q8_0", second="Q6_K", kl=-0.1, interval=(-0.2, -0.05), is_real=True)
    assert words.neighbours_text(plan, values.result(plan, differences=(real,))) == ""


def test_the_work_of_a_run_is_told_in_a_line():
    work = values.plan().workload
    assert words.workload_text(work) == (
        "1,020 scored tokens of 3 texts · 1 answer of up to 64 tokens · 3 speed rounds"
    )


def test_each_limit_and_amount_has_words():
    assert [words.limit_words(limit) for limit in words.LIMITS] == [
        *("0.01 · near-lossless", "0.05 · small differences", "0.15 · noticeable"),
    ]
    assert all(words.limit_sentence(limit).count(".") >= 2 for limit in words.LIMITS)
    assert [words.amount_words(amount) for amount in words.AMOUNTS] == ["Quick", "Normal", "Thorough"]


def test_only_whole_runs_are_counted():
    plan = values.plan()
    runs = (values.run("F16"), values.run("Q8_0", failure="It ended."), values.run("Q6_K"))
    assert words.whole_count(plan, runs) == 2
