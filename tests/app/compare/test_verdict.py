"""The words of a comparison: bands, checks, and the one sentence, for every way a comparison may come out."""

from __future__ import annotations

import msgspec
import pytest

from app.compare import verdict
from app.compare.results import Choices, Difference, Measure, RunResult, Speed
from tests.helpers.score_values import ladder, memory_of, quality_of


def _ratio(low: float, median: float, high: float) -> Measure:
    return Measure(median=median, low=low, high=high, values=(low, median, high))


def _speed(low: float, median: float, high: float, **fields) -> Speed:
    rate = _ratio(90, 100, 110)
    ratio = _ratio(low, median, high)
    return Speed(prefill_tokens_per_s=rate, decode_tokens_per_s=rate, ttft_s=0.1, decode_ratio=ratio, **fields)


def _with(result, run_id, **fields):
    runs = tuple(msgspec.structs.replace(run, **fields) if run.run_id == run_id else run for run in result.runs)
    return msgspec.structs.replace(result, runs=runs)


# -------------------------------------------------------------------------------------------- bands


@pytest.mark.parametrize(
    ("kl", "code", "words"),
    [
        (0.0, "indistinguishable", "indistinguishable"),
        (-1e-9, "indistinguishable", "indistinguishable"),
        (0.00199, "indistinguishable", "indistinguishable"),
        (0.002, "near_lossless", "near-lossless"),
        (0.00999, "near_lossless", "near-lossless"),
        (0.01, "small_differences", "small differences"),
        (0.0499, "small_differences", "small differences"),
        (0.05, "noticeable", "noticeable"),
        (0.1499, "noticeable", "noticeable"),
        (0.15, "heavy", "heavy"),
        (9.0, "heavy", "heavy"),
    ],
)
def test_the_bands_end_where_they_should(kl, code, words):
    assert verdict.band(kl) == (code, words)


def test_broken_output_is_broken_whatever_its_kl():
    assert verdict.band(0.0, non_finite=1) == ("broken", "broken output")


def test_a_run_without_quality_has_no_verdict():
    assert verdict.run_verdict(RunResult(run_id="F16")) == ("", "")
    assert verdict.run_verdict(RunResult(run_id="A", quality=quality_of(0.02))) == (
        "small_differences",
        "small differences",
    )
    assert verdict.run_verdict(RunResult(run_id="A", quality=quality_of(0.0, non_finite=2))).code == "broken"


# ------------------------------------------------------------------------------------------- ranking


@pytest.mark.parametrize(
    ("first", "second", "floor", "ranked"),
    [
        (0.0014, 0.0099, None, False),
        (0.0014, 0.0101, None, True),
        (0.0014, 0.3, 0.00002, True),
        (0.02, 0.029, 0.01, False),  # within three noise floors
        (0.02, 0.031, 0.01, True),
    ],
)
def test_near_the_reference_nothing_is_ranked(first, second, floor, ranked):
    assert verdict.is_ranked(first, second, floor) is ranked
    assert verdict.is_ranked(second, first, floor) is ranked


def test_differences_in_words():
    def difference(first, second, kl, is_real):
        return Difference(first=first, second=second, kl=kl, interval=(kl - 0.001, kl + 0.001), is_real=is_real)

    _plan, result = ladder({"Q8_0": (530, 0.001), "Q6_K": (410, 0.005), "Q5_1": (380, 0.012), "Q4_0": (290, 0.07)})
    result = msgspec.structs.replace(
        result,
        differences=(
            difference("Q8_0", "Q6_K", -0.004, True),
            difference("Q6_K", "Q5_1", -0.007, False),
            difference("Q5_1", "Q4_0", -0.058, True),
        ),
    )
    assert verdict.difference_words(result, "Q6_K", "Q8_0") == "too little to be ranked on this text"
    assert verdict.difference_words(result, "Q6_K", "Q5_1") == "no measurable difference"
    assert verdict.difference_words(result, "Q4_0", "Q5_1") == "Q5_1 is nearer to the reference than Q4_0"
    assert verdict.difference_words(result, "Q8_0", "Q4_0") == ""


# -------------------------------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.99, 1.01), "within\u00a01\u00a0%"),
        ((0.999, 1.011), "cannot tell"),
        ((1.0101, 1.02), "more than 1\u00a0%"),
    ],
)
def test_loss_of_accuracy_in_three_words(interval, words):
    found = verdict.accuracy_words(quality_of(0.01, perplexity_ratio_interval=interval))
    assert found.replace("\u00a0", " ") == words.replace("\u00a0", " ")


def test_without_an_interval_two_standard_errors_are_one():
    assert (
        verdict.accuracy_words(quality_of(0.01, perplexity_ratio=1.005, perplexity_ratio_error=0.002)) != "cannot tell"
    )
    assert (
        verdict.accuracy_words(quality_of(0.01, perplexity_ratio=1.005, perplexity_ratio_error=0.003)) == "cannot tell"
    )


def test_every_check_of_a_run():
    run = RunResult(
        run_id="A",
        quality=quality_of(0.02, cosine_mean=0.97, cosine_worst=0.4, perplexity_ratio_interval=(1.002, 1.02)),
        speed=_speed(1.62, 1.7, 1.79, is_noisy=True),
        memory=memory_of(501, predicted_mib=535),
        choices=Choices(
            picked=(0,) * 50,
            right=30,
            accuracy=0.6,
            accuracy_interval=(0.46, 0.72),
            right_to_wrong=14,
            wrong_to_right=0,
        ),
    )
    found = {check.code: check for check in verdict.checks(run)}
    assert {code: check.state for code, check in found.items()} == {
        "finite": "pass",
        "accuracy": "warn",
        "cosine": "warn",
        "choices": "fail",
        "speed": "pass",
        "quiet": "warn",
        "memory": "warn",
    }
    assert found["speed"].words == "1.7× as fast (1.6 to 1.8)"
    assert found["memory"].words.replace("\u00a0", " ") == "predicted 535 MiB, used 501 MiB"
    assert "cannot tell (+0.2 % to +2.0 %)" in found["accuracy"].words.replace("\u00a0", " ")
    assert "14 changed answers" in found["choices"].words


def test_broken_output_says_how_much():
    run = RunResult(run_id="A", quality=quality_of(0.02, non_finite=3))
    check = verdict.checks(run)[0]
    assert (check.state, check.words) == ("fail", "broken output: 3 of 1,023 positions are not finite")


def test_a_run_that_says_no_number_at_all_is_broken():
    run = RunResult(run_id="A", non_finite=1020)
    assert verdict.run_verdict(run).code == "broken"
    assert verdict.checks(run) == (("finite", "fail", "broken output: 1,020 of 1,020 positions are not finite"),)
    plan, result = ladder(POINTS)
    result = msgspec.structs.replace(result, runs=(RunResult(run_id="F16"), RunResult(run_id="Q8_0", non_finite=9)))
    assert _said(plan, result) == "No candidate could be measured; broken output: Q8_0."


def test_a_single_round_proves_nothing():
    speed = _speed(1.7, 1.7, 1.7)
    speed = msgspec.structs.replace(speed, decode_ratio=Measure(median=1.7, low=1.7, high=1.7, values=(1.7,)))
    (check,) = verdict.checks(RunResult(run_id="A", speed=speed))
    assert (check.state, check.words) == ("warn", "1.7× as fast in a single round")


def test_what_was_not_measured_is_no_check():
    assert verdict.checks(RunResult(run_id="A")) == ()
    codes = {check.code for check in verdict.checks(RunResult(run_id="A", quality=quality_of(0.1, cosine_mean=None)))}
    assert codes == {"finite", "accuracy"}


@pytest.mark.parametrize(
    ("ratio", "state", "words"),
    [
        ((0.9, 1.1, 1.2), "warn", "not measurably faster on this machine"),
        ((0.6, 0.65, 0.7), "fail", "slower here: 0.65× (0.60 to 0.70)"),
        ((11.0, 12.4, 13.0), "pass", "12× as fast (11 to 13)"),
    ],
)
def test_speed_is_what_the_interval_allows(ratio, state, words):
    found = {check.code: check for check in verdict.checks(RunResult(run_id="A", speed=_speed(*ratio)))}["speed"]
    assert (found.state, found.words) == (state, words)


def test_the_reference_must_come_out_as_itself():
    _plan, result = ladder({})
    states = {}
    for value in (None, 0.0, 0.00004, -0.00004, 0.0002):
        states[value] = verdict.self_check(msgspec.structs.replace(result, self_check=value)).state
    assert states == {None: "unknown", 0.0: "pass", 0.00004: "pass", -0.00004: "pass", 0.0002: "fail"}


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1.0, "100 of 100"),
        (0.999, "more than 99 of 100"),
        (0.994, "99 of 100"),
        (0.955, "96 of 100"),
        (0.0, "0 of 100"),
    ],
)
def test_a_hundred_words_are_unchanged_only_where_all_are(share, words):
    assert verdict.same_top_text(share) == words


def test_how_the_interval_was_made_is_said():
    assert "only window" in verdict.interval_words(quality_of(0.1, is_one_window=True))
    assert "only window" not in verdict.interval_words(quality_of(0.1))


# ------------------------------------------------------------------------------------------- sentence

POINTS = {"Q8_0": (530, 0.0014), "Q6_K": (410, 0.0056), "Q4_K_M": (305, 0.031), "Q2_K": (197, 0.44)}


def _said(plan, result) -> str:
    return verdict.sentence(result, plan).replace("\u00a0", " ")


def test_the_sentence_says_what_to_take_and_what_it_gives():
    plan, result = ladder(POINTS, recommended="Q4_K_M")
    result = _with(result, "Q4_K_M", speed=_speed(2.1, 2.3, 2.5), quality=quality_of(0.031, same_top=0.919))
    for name, mib in [("F16", 1400), ("Q8_0", 800), ("Q6_K", 700), ("Q4_K_M", 600), ("Q2_K", 500)]:
        result = _with(result, name, memory=memory_of(mib))
    assert _said(plan, result) == (
        "Q4_K_M: 600 MiB instead of 1.37 GiB of memory, 2.3× as fast (2.1 to 2.5), 92 of 100 next words unchanged; "
        "KL 0.031 against 0.006 of Q6_K."
    )


def test_a_difference_that_is_none_is_no_loss():
    plan, result = ladder(POINTS, recommended="Q4_K_M")
    none = Difference(first="Q6_K", second="Q4_K_M", kl=-0.02, interval=(-0.05, 0.01), is_real=False)
    result = msgspec.structs.replace(result, differences=(none,))
    assert _said(plan, result).endswith("95 of 100 next words unchanged; no measurable loss against Q6_K.")


def test_near_the_reference_the_sentence_ranks_nothing():
    plan, result = ladder(POINTS, recommended="Q6_K", limit_kl=0.01)
    real = Difference(first="Q8_0", second="Q6_K", kl=-0.004, interval=(-0.005, -0.003), is_real=True)
    result = msgspec.structs.replace(result, differences=(real,))
    assert _said(plan, result) == (
        "Q6_K: 410 MiB instead of 0.977 GiB, 95 of 100 next words unchanged; "
        "against Q8_0: too little to be ranked on this text."
    )


def test_the_largest_candidate_is_held_against_the_reference():
    plan, result = ladder(POINTS, recommended="Q8_0", limit_kl=0.002)
    assert _said(plan, result).endswith("; against F16: indistinguishable.")


def test_broken_runs_are_named_and_serve_no_comparison():
    plan, result = ladder(POINTS, recommended="Q4_K_M")
    result = _with(result, "Q6_K", quality=quality_of(0.0055, non_finite=4))
    said = _said(plan, result)
    assert said.endswith("; broken output: Q6_K.")
    assert "of Q8_0" in said


def test_nothing_below_the_limit_names_the_nearest():
    plan, result = ladder({"Q4_K_M": (305, 0.062), "Q2_K": (197, 0.44)})
    assert _said(plan, result) == (
        "No candidate is surely below the limit of 0.05 on this text; nearest is Q4_K_M with 0.062."
    )


def test_want_of_memory_is_the_reason_where_it_is_the_only_one():
    plan, result = ladder(POINTS)
    assert _said(plan, result) == (
        "Below the limit of 0.05, but without enough memory to spare here: Q8_0, Q6_K, Q4_K_M."
    )


def test_few_bits_are_the_reason_where_they_are_the_only_one():
    plan, result = ladder({"IQ2_M": (190, 0.02), "Q2_K": (197, 0.44)}, bits={"IQ2_M": 2.9})
    assert _said(plan, result) == "Below the limit of 0.05, but with less than 3 bits per weight: IQ2_M."


def test_a_comparison_under_way_says_so():
    plan, result = ladder(POINTS, recommended="Q4_K_M", state="running")
    assert _said(plan, result).startswith("So far: Q4_K_M: ")


def test_nothing_measured_is_said_only_at_the_end():
    plan, result = ladder(POINTS)
    empty = msgspec.structs.replace(result, runs=(RunResult(run_id="F16"),))
    assert _said(plan, empty) == "No candidate could be measured."
    assert _said(plan, msgspec.structs.replace(empty, state="running")) == ""
    assert _said(plan, msgspec.structs.replace(empty, state="planned")) == ""


def test_a_recommendation_of_another_plan_is_not_taken_up():
    plan, result = ladder(POINTS, recommended="Q3_K_M")
    assert _said(plan, result).startswith("Below the limit")


def test_sizes_are_those_of_files_where_memory_is_not_known():
    plan, result = ladder(POINTS, recommended="Q4_K_M")
    assert "305 MiB instead of 0.977 GiB," in _said(plan, result)
