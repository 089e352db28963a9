"""Intervals: against values worked out by hand or in the papers, and how often they hold the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from app.compare import intervals

# -------------------------------------------------------------------------------------------- bootstrap


def _windows(count: int, tokens: int = 255):
    return np.repeat(np.arange(count, dtype=np.int32), tokens)


def _series(generator, windows: int, tokens: int = 255, between: float = 0.1):
    """Return skewed values that hang together (0.4 from one to the next) and whose windows differ; true mean 1."""
    steps = generator.standard_normal((windows, tokens + 40))
    for place in range(1, tokens + 40):
        steps[:, place] = 0.4 * steps[:, place - 1] + math.sqrt(1 - 0.16) * steps[:, place]
    heights = between * generator.standard_normal((windows, 1)) - between**2 / 2
    return np.exp(1.3 * steps[:, 40:] - 1.3**2 / 2 + heights).ravel()


def _coverage(windows: int, repetitions: int, between: float) -> float:
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(repetitions):
        low, high = intervals.bootstrap_mean(_series(generator, windows, between=between), _windows(windows))
        hits += low <= 1.0 <= high
    return hits / repetitions


def test_the_interval_holds_the_true_mean_of_a_series_that_hangs_together():
    """60 repetitions, fixed seed: at a coverage of 0.93, fewer than 0.8 hits has a chance of 10^-3 over all seeds."""
    assert _coverage(4, 60, between=0.1) >= 0.8


@pytest.mark.full
@pytest.mark.parametrize(("windows", "least"), [(1, 0.70), (2, 0.90), (4, 0.92), (8, 0.93), (16, 0.93)])
def test_the_coverage_is_what_the_docstring_says(windows, least):
    """600 repetitions, one standard error is 0.01; a single window does not know how windows differ."""
    covered = _coverage(windows, 600, between=0.1)
    assert least <= covered
    assert covered <= 0.995


@pytest.mark.full
def test_the_coverage_holds_where_windows_differ_by_a_quarter():
    assert _coverage(4, 600, between=0.25) >= 0.88


def test_it_is_wider_than_the_naive_one_where_neighbours_hang_together():
    values = np.repeat(np.random.default_rng(1).normal(0, 1, 64), 16)  # 1,024 values, 64 of them independent
    low, high = intervals.bootstrap_mean(values, _windows(4, 256))
    naive = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert high - low > 2 * naive


def test_it_has_the_right_width_where_they_do_not():
    """Independent values in 16 windows: near the normal interval, rather wider than narrower."""
    values = np.random.default_rng(2).normal(5, 1, 16 * 255)
    low, high = intervals.bootstrap_mean(values, _windows(16))
    naive = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert 0.9 * naive < high - low < 2 * naive
    assert low < values.mean() < high


def test_one_window_is_resampled_by_its_blocks():
    values = np.random.default_rng(3).gamma(0.5, 1, 255)
    low, high = intervals.bootstrap_mean(values, _windows(1))
    assert low < values.mean() < high
    assert intervals.is_one_window(_windows(1))
    assert not intervals.is_one_window(_windows(2))


def test_the_same_figures_give_the_same_interval():
    values = np.random.default_rng(4).gamma(0.5, 1, 1020)
    assert intervals.bootstrap_mean(values, _windows(4)) == intervals.bootstrap_mean(values.copy(), _windows(4))


def test_nothing_but_zeros_has_no_width():
    assert intervals.bootstrap_mean(np.zeros(510), _windows(2)) == (0.0, 0.0)


def test_windows_of_different_length_count_by_their_tokens():
    """A window of one token at 1000 beside 999 tokens at 0: the mean is 1, and 1000 is no plausible mean."""
    values = np.concatenate([np.zeros(999), [1000.0]])
    window = np.concatenate([np.zeros(999), [1]]).astype(np.int32)
    low, high = intervals.bootstrap_mean(values, window)
    assert low <= 1.0 <= high < 500


def test_a_long_window_counts_as_several():
    """One window of 4,096 is no narrower than what its values allow, and is more than one draw."""
    values = np.random.default_rng(5).normal(0, 1, 4096)
    low, high = intervals.bootstrap_mean(values, np.zeros(4096, np.int32))
    naive = 2 * 1.96 / math.sqrt(4096)
    assert 0.9 * naive < high - low < 2 * naive


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_very_few_values_are_no_error(count):
    values = np.arange(count, dtype=np.float64)
    low, high = intervals.bootstrap_mean(values, np.zeros(count, np.int32))
    assert low <= values.mean() <= high


def test_no_values_have_no_mean():
    with pytest.raises(ValueError, match="nothing"):
        intervals.bootstrap_mean(np.empty(0), np.empty(0, np.int32))


# ------------------------------------------------------------------------------------------------- t


@pytest.mark.parametrize(
    ("degrees", "right"),
    [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (10, 2.2281), (15, 2.1314), (30, 2.0423), (120, 1.9799)],
)
def test_students_t_is_that_of_the_tables(degrees, right):
    assert intervals.t_quantile(degrees) == pytest.approx(right, abs=2e-4)


def test_no_degree_of_freedom_has_no_quantile():
    with pytest.raises(ValueError, match="spread"):
        intervals.t_quantile(0)


# ------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_the_paper(hits, count, low, high):
    assert intervals.wilson(hits, count) == pytest.approx((low, high), abs=1e-4)


def test_wilsons_ends_are_the_shares_that_just_fit():
    """The defining property: at an end, the seen share lies 1.96 of its own standard errors away."""
    for end in intervals.wilson(37, 50):
        assert abs(37 / 50 - end) == pytest.approx(intervals.NORMAL_97_5 * math.sqrt(end * (1 - end) / 50))


def test_what_is_no_share_is_refused():
    for hits, count in [(0, 0), (3, 2), (-1, 5)]:
        with pytest.raises(ValueError, match="no share"):
            intervals.wilson(hits, count)


def _newcombe_plainly(both, first_only, second_only, neither):
    count = both + first_only + second_only + neither
    p1, p2 = (both + first_only) / count, (both + second_only) / count
    (l1, u1), (l2, u2) = intervals.wilson(both + first_only, count), intervals.wilson(both + second_only, count)
    determinant = both * neither - first_only * second_only
    if determinant > 0:
        determinant = max(determinant - count / 2, 0)
    margins = (both + first_only) * (second_only + neither) * (both + second_only) * (first_only + neither)
    phi = determinant / margins**0.5 if margins else 0
    # for first less second, as the paper has it
    down = ((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2) ** 0.5
    up = ((p2 - l2) ** 2 - 2 * phi * (p2 - l2) * (u1 - p1) + (u1 - p1) ** 2) ** 0.5
    return -(p1 - p2 + up), -(p1 - p2 - down)


def test_newcombes_interval_is_the_papers_formula():
    generator = np.random.default_rng(6)
    for _ in range(200):
        cells = [int(cell) for cell in generator.integers(0, 20, 4)]
        if sum(cells):
            assert intervals.newcombe(*cells) == pytest.approx(_newcombe_plainly(*cells), abs=1e-12)


def test_newcombes_interval_holds_the_difference_and_swaps_with_the_runs():
    low, high = intervals.newcombe(36, 12, 2, 0)
    assert low < (2 - 12) / 50 < high < 0
    assert intervals.newcombe(36, 2, 12, 0) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("worse", "better", "right"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, Fraction(1, 16)), (8, 2, Fraction(7, 64)), (5, 5, 1.0)],
)
def test_mcnemar_counts_coins(worse, better, right):
    assert intervals.mcnemar(worse, better) == pytest.approx(float(right))
    assert intervals.mcnemar(better, worse) == intervals.mcnemar(worse, better)
