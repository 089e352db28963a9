"""What per-token figures come to: the statistics of a comparison. Pure; knows no model, no file and no words.

The definitions of perplexity, its ratio, Kullback-Leibler divergence (KL), change of probability and same-top are those
of llama.cpp's perplexity tool (tools/perplexity/perplexity.cpp, `--kl-divergence`), so that figures can be held against
published ones. Intervals are wider than the errors it prints, since neighbouring tokens hang together: intervals.py.

Tokens whose logits were not finite, here or in what is compared, are counted and left out on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.compare import intervals
from app.compare.intervals import FloatArray
from app.compare.results import Choices, Difference, Measure, Quality
from app.compare.token_scores import TokenScores

__all__ = [
    "FEWEST_FOR_P999", "FEWEST_FOR_PERCENTILES", "RANKED_FLOORS", "TokenScores", "accuracy_change", "choices",
    "difference", "measure", "non_finite", "perplexity", "quality", "ratio",
]  # fmt: skip

FEWEST_FOR_PERCENTILES = 100  # as llama.cpp
FEWEST_FOR_P999 = 4000  # below, it would be a single token or a few
RANKED_FLOORS = 3.0  # what lies below so many noise floors is noise
_LARGEST_EXPONENT = 600.0  # e to more than this might become infinite, which no JSON file can hold


@dataclass(frozen=True, slots=True)
class _Mean:
    """The mean of a series and one standard error of it: sd/sqrt(n-1), with the sd of the series itself."""

    value: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> _Mean:
        return cls(float(values.mean()), float(values.std()) / math.sqrt(len(values) - 1))


def quality(scores: TokenScores) -> Quality | None:
    """Return how near a run is to its reference.

    With p the reference's probabilities, q the run's, y the true next token and n tokens, as llama.cpp's tool:
    perplexity exp(mean -ln q(y)), error PPL sd/sqrt(n-1); ratio exp(mean(ln p(y) - ln q(y))), its error from the paired
    series, which is sqrt(var + var - 2 cov) written so that nothing cancels; KL sum p (ln p - ln q); change of
    probability q(y) - p(y), its mean and root mean square; same top, the share s with one likeliest token, error
    sqrt(s(1-s)/(n-1)); Pearson's correlation of the two series of ln.

    Returns:
        None where nothing was compared, and with fewer than two finite tokens: nothing can be said of their spread.
    """
    if not scores.has_reference:
        return None
    finite = scores.finite
    kept = scores.select(finite)
    if len(kept) < 2:
        return None
    ours, theirs = -kept.logprobs.astype(np.float64), -kept.reference_logprobs.astype(np.float64)
    kl = kept.kl.astype(np.float64)
    nll, longer = _Mean.of(ours), _Mean.of(ours - theirs)
    kl_mean = _Mean.of(kl)
    ppl, ppl_ratio = _exp(nll.value), _exp(longer.value)
    low, high = intervals.bootstrap_mean(kl, kept.window)
    ratio_low, ratio_high = intervals.bootstrap_mean(ours - theirs, kept.window)
    change = np.exp(-ours) - np.exp(-theirs)
    same_top = float((kept.best_ids == kept.reference_best_ids).mean())
    cosines = kept.cosine[np.isfinite(kept.cosine)].astype(np.float64)
    return Quality(
        tokens=len(kept),
        non_finite=len(scores) - len(kept),
        perplexity=ppl,
        perplexity_error=_product(ppl, nll.error),
        reference_perplexity=_exp(float(theirs.mean())),
        perplexity_ratio=ppl_ratio,
        perplexity_ratio_error=_product(ppl_ratio, longer.error),
        perplexity_ratio_interval=(_exp(ratio_low), _exp(ratio_high)),
        log_perplexity_correlation=_correlation(ours, theirs),
        kl_mean=kl_mean.value,
        kl_error=kl_mean.error,
        kl_interval=(min(max(low, 0.0), kl_mean.value), high),  # KL is never below 0
        kl_median=_percentile(kl, 0.5),
        kl_p90=_percentile(kl, 0.9),
        kl_p95=_percentile(kl, 0.95),
        kl_p99=_percentile(kl, 0.99),
        kl_p999=_percentile(kl, 0.999, FEWEST_FOR_P999),
        kl_max=float(kl.max()),
        delta_p_mean=float(change.mean()),
        delta_p_rms=math.sqrt(float((change * change).mean())),
        same_top=same_top,
        same_top_error=math.sqrt(same_top * (1 - same_top) / (len(kept) - 1)),
        cosine_mean=float(cosines.mean()) if len(cosines) else None,
        cosine_worst=float(cosines.min()) if len(cosines) else None,
        is_one_window=intervals.is_one_window(kept.window),
    )


def non_finite(scores: TokenScores) -> int:
    """Return how many scored tokens do not count because their logits were not all finite."""
    return len(scores) - int(scores.finite.sum())


def perplexity(scores: TokenScores) -> float | None:
    """Return exp of the mean negative log-likelihood of a run by itself; None without a finite token."""
    logprobs = scores.logprobs[scores.finite].astype(np.float64)
    return _exp(-float(logprobs.mean())) if len(logprobs) else None


def difference(
    first_id: str, first: TokenScores, second_id: str, second: TokenScores, noise_floor: float | None = None
) -> Difference | None:
    """Say whether two runs really differ: mean KL of the first less the second's, on the tokens that both have.

    The difference is taken token by token and its mean resampled, which draws the same windows and blocks for both.

    Args:
        first_id: the one run.
        first: its figures; windows that only one of both has are left out.
        second_id: the other.
        second: its figures against the same reference.
        noise_floor: mean KL of the reference against itself; None where it was not measured.

    Returns:
        None with fewer than two tokens that are finite in both.

    Raises:
        ValueError: their common windows are not of the same length.
    """
    common = np.intersect1d(first.window, second.window).tolist()
    one, two = first.windows(common), second.windows(common)
    if not np.array_equal(one.window, two.window):
        raise ValueError("the windows of both runs differ in length or order")
    finite = one.finite & two.finite
    if not (one.has_reference and two.has_reference) or finite.sum() < 2:
        return None
    first_kl, second_kl = one.kl[finite].astype(np.float64), two.kl[finite].astype(np.float64)
    low, high = intervals.bootstrap_mean(first_kl - second_kl, one.window[finite])
    larger = max(float(first_kl.mean()), float(second_kl.mean()))
    return Difference(
        first=first_id,
        second=second_id,
        kl=float((first_kl - second_kl).mean()),
        interval=(low, high),
        is_real=not low <= 0.0 <= high and larger > RANKED_FLOORS * (noise_floor or 0.0),
    )


def measure(values: Sequence[float]) -> Measure:
    """Return the median of some rounds and an interval that is honest for few of them.

    The interval is Student's, on the logarithms, since speeds scatter by shares: mean ± t sd/sqrt(n) with n-1 degrees
    of freedom. With three rounds t is 4.3, where the smallest and the largest value would hold the truth three times in
    four only. The median lies inside. A single round has no spread: both ends are its value, and `values` shows it.

    Raises:
        ValueError: no value, or one that is no number above 0.
    """
    if not values or not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("a speed is a number above 0")
    median = float(np.median(values))
    if len(values) < 2:
        return Measure(median=median, low=median, high=median, values=tuple(values))
    logarithms = np.log(np.asarray(values, np.float64))
    half = intervals.t_quantile(len(values) - 1) * float(logarithms.std(ddof=1)) / math.sqrt(len(values))
    low, high = _exp(float(logarithms.mean()) - half), _exp(float(logarithms.mean()) + half)
    return Measure(median=median, low=min(low, median), high=max(high, median), values=tuple(values))


def ratio(values: Sequence[float], reference_values: Sequence[float]) -> Measure | None:
    """Return how many times as fast as the reference; each round is divided by the reference's of the same turn.

    What slows the machine down for a while slows both, and so falls out. Method and errors are those of measure().

    Returns:
        None where there is no round that both have.
    """
    pairs = list(zip(values, reference_values, strict=False))
    return measure([value / reference for value, reference in pairs]) if pairs else None


def choices(picked: Sequence[int], right: Sequence[int], reference_picked: Sequence[int] | None = None) -> Choices:
    """Return accuracy with Wilson's interval, and flips (Dutta et al. 2024, "Accuracy is Not All You Need").

    A flip is a question that one of both runs answers rightly and the other wrongly: equal accuracy may hide many.

    Args:
        picked: the answer this run chose for each question.
        right: the right ones.
        reference_picked: the reference's; None for the reference itself.

    Raises:
        ValueError: there are no questions, or the lengths differ.
    """
    hits = [one == truth for one, truth in zip(picked, right, strict=True)]
    low, high = intervals.wilson(sum(hits), len(hits))
    earlier = hits
    if reference_picked is not None:
        earlier = [one == truth for one, truth in zip(reference_picked, right, strict=True)]
    return Choices(
        picked=tuple(picked),
        right=sum(hits),
        accuracy=sum(hits) / len(hits),
        accuracy_interval=(low, high),
        right_to_wrong=sum(before and not now for before, now in zip(earlier, hits, strict=True)),
        wrong_to_right=sum(now and not before for before, now in zip(earlier, hits, strict=True)),
    )


def accuracy_change(found: Choices) -> tuple[float, tuple[float, float]]:
    """Return how much the accuracy is above the reference's, as a share of 1, and its interval (Newcombe 1998)."""
    count = len(found.picked)
    both = found.right - found.wrong_to_right
    neither = count - both - found.flips
    change = (found.wrong_to_right - found.right_to_wrong) / count
    return change, intervals.newcombe(both, found.right_to_wrong, found.wrong_to_right, neither)


# ---------------------------------------------------------------------------------------------- parts


def _percentile(values: FloatArray, share: float, fewest: int = FEWEST_FOR_PERCENTILES) -> float | None:
    """Return what lies at share * (n-1) of the sorted values, between two neighbours in proportion; None with few."""
    return float(np.quantile(values, share)) if len(values) >= fewest else None


def _correlation(first: FloatArray, second: FloatArray) -> float:
    """Return Pearson's correlation; where a series does not vary, 1 for equal series and 0 for others."""
    spread = float(first.std()) * float(second.std())
    if spread == 0.0:
        return float(np.array_equal(first, second))
    together = float(((first - first.mean()) * (second - second.mean())).mean())
    return min(1.0, max(-1.0, together / spread))


def _exp(exponent: float) -> float:
    """Return e to this power, cut where it would no longer be a number that a file can hold."""
    return math.exp(min(exponent, _LARGEST_EXPONENT))


def _product(value: float, share: float) -> float:
    return min(value * share, math.exp(_LARGEST_EXPONENT))
