"""The statistics: against a plain implementation in Python's own floats, against cases worked out by hand, and laws."""

from __future__ import annotations

import dataclasses
import itertools
import math

import msgspec
import numpy as np
import pytest

from app.compare import statistics
from app.compare.results import Quality
from app.compare.token_scores import TokenScores
from tests.helpers.score_values import random_scores, scores

# ----------------------------------------------------------------------------------- the plain twin


def _plain_percentile(values, share):
    """Return it as llama.cpp's tool does: linear between the neighbours of share * (n-1)."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    part = place - below
    return (1 - part) * ordered[below] + part * ordered[min(below + 1, len(ordered) - 1)]


def _plain_error(values):
    mean = sum(values) / len(values)
    return math.sqrt((sum(one * one for one in values) / len(values) - mean * mean) / (len(values) - 1))


def _plain(one: TokenScores) -> dict[str, float]:
    """Return what the tool prints, by its sums over the rows that count, in Python's floats."""
    rows = [
        (-float(own), -float(other), float(kl), int(best) == int(its_best))
        for own, other, kl, best, its_best, bad in zip(
            one.logprobs,
            one.reference_logprobs,
            one.kl,
            one.best_ids,
            one.reference_best_ids,
            one.non_finite,
            strict=True,
        )
        if not bad
    ]
    count = len(rows)
    nll, base, kl = ([row[column] for row in rows] for column in range(3))
    mean_nll, mean_base = sum(nll) / count, sum(base) / count
    covariance = (sum(a * b for a, b in zip(nll, base, strict=True)) / count - mean_nll * mean_base) / (count - 1)
    log_error = math.sqrt(_plain_error(nll) ** 2 + _plain_error(base) ** 2 - 2 * covariance)
    ratio = math.exp(mean_nll - mean_base)
    change = [math.exp(-a) - math.exp(-b) for a, b in zip(nll, base, strict=True)]
    same = sum(row[3] for row in rows) / count
    return {
        "tokens": count,
        "perplexity": math.exp(mean_nll),
        "perplexity_error": math.exp(mean_nll) * _plain_error(nll),
        "reference_perplexity": math.exp(mean_base),
        "perplexity_ratio": ratio,
        "perplexity_ratio_error": ratio * log_error,
        "log_perplexity_correlation": covariance / (_plain_error(nll) * _plain_error(base)),
        "kl_mean": sum(kl) / count,
        "kl_error": _plain_error(kl),
        "kl_median": _plain_percentile(kl, 0.5),
        "kl_p90": _plain_percentile(kl, 0.9),
        "kl_p95": _plain_percentile(kl, 0.95),
        "kl_p99": _plain_percentile(kl, 0.99),
        "kl_max": max(kl),
        "delta_p_mean": sum(change) / count,
        "delta_p_rms": math.sqrt(sum(one * one for one in change) / count),
        "same_top": same,
        "same_top_error": math.sqrt(same * (1 - same) / (count - 1)),
    }


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_is_that_of_the_plain_twin(seed):
    one = random_scores(windows=3, tokens=101, seed=seed)
    found = msgspec.structs.asdict(statistics.quality(one))
    for name, right in _plain(one).items():
        assert found[name] == pytest.approx(right, rel=1e-9, abs=1e-12), name


def test_rows_that_are_not_finite_are_counted_and_left_out_on_both_sides():
    one = random_scores(windows=2, tokens=120, seed=9)
    broken = one.non_finite.copy()
    broken[[3, 130, 131]] = True
    zeroed = [np.where(broken, 0, row).astype(np.float32) for row in (one.logprobs, one.kl, one.cosine)]
    one = dataclasses.replace(one, non_finite=broken, logprobs=zeroed[0], kl=zeroed[1], cosine=zeroed[2])
    found = msgspec.structs.asdict(statistics.quality(one))
    assert (found["tokens"], found["non_finite"]) == (237, 3)
    for name, right in _plain(one).items():
        assert found[name] == pytest.approx(right, rel=1e-9, abs=1e-12), name
    assert found["cosine_worst"] > 0  # not the 0 of a broken row


# ------------------------------------------------------------------------------------------ by hand


def test_a_case_worked_out_by_hand():
    """Probabilities of the right token: here 1/2, 1/4, 1/8, there 1/2, 1/2, 1/2."""
    one = scores(
        [0.0, 0.1, 0.5],
        logprobs=np.log([0.5, 0.25, 0.125]),
        reference=np.log([0.5, 0.5, 0.5]),
        best=[1, 2, 3],
        reference_best=[1, 2, 4],
    )
    found = statistics.quality(one)
    assert found.perplexity == pytest.approx(4, rel=1e-6)  # exp of (ln 2 + ln 4 + ln 8) / 3
    assert found.reference_perplexity == pytest.approx(2, rel=1e-6)
    assert found.perplexity_ratio == pytest.approx(2, rel=1e-6)
    # the logarithms of both differ by 0, ln 2, 2 ln 2: sd ln 2 sqrt(2/3), over sqrt(2)
    assert found.perplexity_ratio_error == pytest.approx(2 * math.log(2) / math.sqrt(3), rel=1e-6)
    assert found.kl_mean == pytest.approx(0.2, rel=1e-6)
    assert found.kl_max == 0.5
    assert found.delta_p_mean == pytest.approx((0 - 0.25 - 0.375) / 3, rel=1e-6)
    assert found.delta_p_rms == pytest.approx(math.sqrt((0.25**2 + 0.375**2) / 3), rel=1e-6)
    assert found.same_top == pytest.approx(2 / 3)
    assert found.same_top_error == pytest.approx(1 / 3)
    assert found.kl_median is None
    assert found.is_one_window


def test_percentiles_lie_between_neighbours():
    found = statistics.quality(scores(np.arange(101)))
    assert (found.kl_median, found.kl_p90, found.kl_p95, found.kl_p99) == (50, 90, 95, 99)
    found = statistics.quality(scores(np.arange(102)))
    assert (found.kl_median, found.kl_p99) == (50.5, pytest.approx(99.99))


def test_few_tokens_have_no_percentiles():
    assert statistics.quality(scores(np.arange(99))).kl_median is None
    assert statistics.quality(scores(np.arange(100))).kl_median == 49.5
    assert statistics.quality(scores(np.arange(3999))).kl_p999 is None
    assert statistics.quality(scores(np.arange(4000))).kl_p999 == pytest.approx(3995.001)


# --------------------------------------------------------------------------------------------- laws


def test_a_run_against_itself_is_exactly_equal():
    one = random_scores(windows=4, seed=2)
    itself = dataclasses.replace(
        one, reference_logprobs=one.logprobs, reference_best_ids=one.best_ids, kl=np.zeros_like(one.kl)
    )
    found = statistics.quality(itself)
    assert (found.kl_mean, found.kl_max, found.kl_interval) == (0.0, 0.0, (0.0, 0.0))
    assert (found.perplexity_ratio, found.perplexity_ratio_error) == (1.0, 0.0)
    assert found.perplexity_ratio_interval == (1.0, 1.0)
    assert (found.delta_p_mean, found.delta_p_rms) == (0.0, 0.0)
    assert (found.same_top, found.same_top_error) == (1.0, 0.0)
    assert found.log_perplexity_correlation == pytest.approx(1.0)


def test_the_intervals_lie_around_the_means_and_above_0():
    for seed in range(20):
        found = statistics.quality(random_scores(windows=2, tokens=60, seed=seed, noise=0.02))
        assert 0 <= found.kl_interval[0] <= found.kl_mean <= found.kl_interval[1]
        assert found.perplexity_ratio_interval[0] <= found.perplexity_ratio <= found.perplexity_ratio_interval[1]


def test_kl_is_not_below_0_and_grows_with_the_noise():
    means = [statistics.quality(random_scores(seed=1, noise=noise)).kl_mean for noise in (0.01, 0.1, 0.5, 1.0)]
    assert means == sorted(means)
    assert means[0] > 0


def test_figures_fit_into_a_file_even_for_nonsense():
    """Finite logits may be absurd; JSON holds no infinite number."""
    one = scores(np.full(200, 3e4), logprobs=np.full(200, -3e4), reference=np.full(200, -1.0))
    found = statistics.quality(one)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Quality) == found
    assert found.perplexity > 1e200


def test_what_says_nothing_has_no_quality():
    assert statistics.quality(scores([])) is None
    assert statistics.quality(scores([0.1])) is None
    assert statistics.quality(scores([0.1, 0.2, 0.3], non_finite=[1, 1, 0])) is None
    one = random_scores(windows=1)
    alone = TokenScores(
        one.logprobs, *(np.empty(0, np.float32),) * 3, one.best_ids, np.empty(0, np.int32), one.non_finite, one.window
    )
    assert statistics.quality(alone) is None
    assert statistics.perplexity(alone) == statistics.quality(one).perplexity
    assert statistics.perplexity(scores([])) is None
    assert statistics.non_finite(scores([0.1, 0.2, 0.3], non_finite=[1, 1, 0])) == 2
    assert statistics.non_finite(scores([])) == 0


def test_a_cosine_nobody_measured_is_none():
    one = dataclasses.replace(random_scores(), cosine=np.empty(0, np.float32))
    found = statistics.quality(one)
    assert (found.cosine_mean, found.cosine_worst) == (None, None)


# ----------------------------------------------------------------------------------------- differences


def test_a_difference_is_paired_and_so_far_finer_than_both_intervals():
    """The same hard tokens in both: the second is a twentieth worse everywhere."""
    window = np.repeat(np.arange(4), 255)
    hard = np.random.default_rng(3).gamma(0.3, 0.2, 1020)
    first, second = scores(hard, window), scores(hard * 1.05 + 0.001, window)
    found = statistics.difference("A", first, "B", second, noise_floor=0.0001)
    assert found.kl == pytest.approx(float((first.kl.astype(float) - second.kl).mean()))
    assert found.interval[0] <= found.kl <= found.interval[1] < 0
    assert found.is_real
    one, two = statistics.quality(first), statistics.quality(second)
    assert one.kl_interval[1] > two.kl_interval[0]  # unpaired, nothing could be said
    swapped = statistics.difference("B", second, "A", first, noise_floor=0.0001)
    assert swapped.kl == -found.kl
    assert swapped.interval == pytest.approx((-found.interval[1], -found.interval[0]), rel=0.05)


def test_equal_runs_do_not_differ():
    one = random_scores(seed=4)
    found = statistics.difference("A", one, "B", one)
    assert (found.kl, found.interval, found.is_real) == (0.0, (0.0, 0.0), False)


def test_chance_makes_no_difference():
    """Two runs of equal noise; 20 pairs, each wrong in at most some 8 of 100: more than 6 wrong happen once in 10^4."""
    real = sum(
        statistics.difference(
            "A", random_scores(tokens=60, seed=seed), "B", random_scores(tokens=60, seed=seed + 100)
        ).is_real
        for seed in range(20)
    )
    assert real <= 6


def test_below_the_noise_nothing_is_real():
    window = np.repeat(np.arange(4), 255)
    first, second = scores(np.full(1020, 0.001), window), scores(np.full(1020, 0.002), window)
    assert statistics.difference("A", first, "B", second, noise_floor=0.0001).is_real
    assert not statistics.difference("A", first, "B", second, noise_floor=0.001).is_real


def test_only_common_windows_and_rows_count():
    first, second = random_scores(windows=4, seed=5), random_scores(windows=4, seed=5, noise=0.6)
    broken = second.non_finite.copy()
    broken[7] = True
    second = dataclasses.replace(second, non_finite=broken).windows([0, 1, 3])
    found = statistics.difference("A", first, "B", second)
    kept = np.flatnonzero(np.isin(first.window, [0, 1, 3]))
    kept = kept[kept != 7]
    right = first.kl[kept].astype(float) - random_scores(windows=4, seed=5, noise=0.6).kl[kept]
    assert found.kl == pytest.approx(float(right.mean()))


def test_nothing_in_common_is_no_difference():
    one, two = random_scores(windows=1), random_scores(windows=2).windows([1])
    assert statistics.difference("A", one, "B", two) is None


def test_windows_of_other_length_are_refused():
    with pytest.raises(ValueError, match="windows"):
        statistics.difference("A", random_scores(tokens=60), "B", random_scores(tokens=61))


# ------------------------------------------------------------------------------------------- speeds


def test_a_measure_is_students_interval_on_logarithms():
    found = statistics.measure([100.0, 110.0, 121.0])
    assert found.median == 110
    assert found.values == (100.0, 110.0, 121.0)
    half = 4.302653 * math.log(1.1) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((110 / math.exp(half), 110 * math.exp(half)), rel=1e-6)


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_the_interval_of_few_rounds_holds_the_truth(rounds):
    """400 repetitions at 95 %: one standard error is 1.1 %, so below 90 % has a chance of 10^-5."""
    generator = np.random.default_rng(11)
    hits = 0
    for _ in range(400):
        found = statistics.measure(list(50 * np.exp(0.03 * generator.standard_normal(rounds))))
        hits += found.low <= 50 <= found.high
    assert hits / 400 > 0.9


def test_the_median_lies_in_its_interval():
    for values in itertools.product([1.0, 1.1, 9.0], repeat=5):
        found = statistics.measure(values)
        assert 0 < found.low <= found.median <= found.high


def test_one_round_has_no_spread():
    found = statistics.measure([42.0])
    assert (found.median, found.low, found.high, found.values) == (42.0, 42.0, 42.0, (42.0,))


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [float("nan")], [float("inf")]])
def test_what_is_no_speed_is_refused(values):
    with pytest.raises(ValueError, match="speed"):
        statistics.measure(values)


def test_a_ratio_is_taken_round_by_round():
    """The machine was busy in the second round: both were slow, and the ratio does not show it."""
    found = statistics.ratio([20.0, 10.0, 20.0], [10.0, 5.0, 10.0])
    assert (found.median, found.low, found.high) == (2.0, pytest.approx(2.0), pytest.approx(2.0))
    assert statistics.ratio([20.0, 10.0], [10.0]).values == (2.0,)
    assert statistics.ratio([], [10.0]) is None


# ------------------------------------------------------------------------------------------ choices


def test_flips_are_counted_in_both_directions():
    right = [0, 1, 2, 0, 1]
    found = statistics.choices([0, 1, 2, 1, 0], right, reference_picked=[0, 0, 2, 0, 1])
    assert (found.right, found.accuracy) == (3, 0.6)
    assert (found.right_to_wrong, found.wrong_to_right, found.flips) == (2, 1, 3)
    change, (low, high) = statistics.accuracy_change(found)
    assert change == pytest.approx(-0.2)
    assert low < change < high


def test_the_reference_has_no_flips():
    found = statistics.choices([0, 1], [0, 0])
    assert (found.right, found.flips) == (1, 0)
    assert found.accuracy_interval[0] < 0.5 < found.accuracy_interval[1]


def test_choices_need_questions():
    with pytest.raises(ValueError, match="no share"):
        statistics.choices([], [])
    with pytest.raises(ValueError):
        statistics.choices([0], [0, 1])


def test_fifty_questions_never_prove_one_percent():
    """Even without a single flip, the loss may be more than one percent."""
    picked = [0] * 40 + [1] * 10
    found = statistics.choices(picked, [0] * 50, reference_picked=picked)
    _change, (low, _high) = statistics.accuracy_change(found)
    assert low < -0.01
