"""What the figures of a comparison mean, in words: a band for each run, the checks, the sentence on the whole.

Screen, command line and report take their words from here, so that they cannot judge differently. The bands are words,
not science, drawn from published and own measurements: one quantization is not one quality, it depends on the model.
"""

from __future__ import annotations

from typing import NamedTuple

from app.compare import frontier
from app.compare.frontier import Obstacle
from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, Measure, Quality, RunResult
from app.compare.statistics import RANKED_FLOORS, accuracy_change
from app.i18n import _
from app.units import NBSP, bytes_text, count_text, percent_text

BROKEN = "broken"
INDISTINGUISHABLE = "indistinguishable"
NEAR_LOSSLESS = "near_lossless"
SMALL = "small_differences"
NOTICEABLE = "noticeable"
HEAVY = "heavy"

# Mean KL in nats below which a band ends.
_BANDS = ((0.002, INDISTINGUISHABLE), (0.01, NEAR_LOSSLESS), (0.05, SMALL), (0.15, NOTICEABLE))

# Two runs that are both below this cannot be put in an order: near the reference KL says nothing of how well a model
# does its work ("Displacement Is Not Direction", arXiv 2606.19558).
RANKED_FROM_KL = 0.01
ACCURACY_LOSS = 0.01  # one percent
_COSINE_GOOD, _COSINE_FAIR = 0.99, 0.95
_MEMORY_GOOD, _MEMORY_FAIR = 0.05, 0.15


class Band(NamedTuple):
    """A band: its name for the program, and the words for people."""

    code: str
    words: str


class Check(NamedTuple):
    """One check of a run: its name, how it came out ("pass", "warn", "fail" or "unknown"), and that in words."""

    code: str
    state: str
    words: str


def band(kl_mean: float, non_finite: int = 0) -> Band:
    """Return the band of a mean KL; a run with non-finite logits is broken whatever its KL."""
    if non_finite:
        return Band(BROKEN, band_words(BROKEN))
    code = next((code for end, code in _BANDS if kl_mean < end), HEAVY)
    return Band(code, band_words(code))


def band_words(code: str) -> str:
    """Return a band's words; "" for an unknown one."""
    words = {
        BROKEN: _("broken output"),
        INDISTINGUISHABLE: _("indistinguishable"),
        NEAR_LOSSLESS: _("near-lossless"),
        SMALL: _("small differences"),
        NOTICEABLE: _("noticeable"),
        HEAVY: _("heavy"),
    }
    return words.get(code, "")


def run_verdict(run: RunResult) -> Band:
    """Return a run's band; both parts are "" where its quality is not known, as that of the reference."""
    if run.broken_tokens:
        return Band(BROKEN, band_words(BROKEN))
    return band(run.quality.kl_mean) if run.quality is not None else Band("", "")


def is_ranked(first_kl: float, second_kl: float, noise_floor: float | None = None) -> bool:
    """Whether two runs may be put in an order: one of them is far enough from the reference and from its noise."""
    return max(first_kl, second_kl) >= max(RANKED_FROM_KL, RANKED_FLOORS * (noise_floor or 0.0))


def unranked_words() -> str:
    """Return what is said in place of an order."""
    return _("too little to be ranked on this text")


def difference_words(result: ComparisonResult, first: str, second: str) -> str:
    """Return in a few words whether two runs differ; "" where it was not worked out."""
    found = next((one for one in result.differences if {one.first, one.second} == {first, second}), None)
    runs = result.run(first), result.run(second)
    kls = [run.quality.kl_mean for run in runs if run is not None and run.quality is not None]
    if found is None or len(kls) < 2:
        return ""
    if not is_ranked(kls[0], kls[1], result.noise_floor):
        return unranked_words()
    if not found.is_real:
        return _("no measurable difference")
    words = _("{nearer} is nearer to the reference than {farther}")
    nearer, farther = (found.first, found.second) if found.kl < 0 else (found.second, found.first)
    return words.format(nearer=nearer, farther=farther)


def interval_words(quality: Quality) -> str:
    """Return how the intervals were made."""
    if quality.is_one_window:
        return _("95 %, by resampling pieces of the only window: how another text would come out is not in it.")
    return _("95 %, by resampling the windows, and pieces within them.")


# ------------------------------------------------------------------------------------------- sentence


def sentence(result: ComparisonResult, plan: ComparisonPlan) -> str:
    """Return the verdict on the whole: what to take, what it costs and gives; or why nothing can be recommended."""
    chosen = next((spec for spec in plan.candidates if spec.run_id == result.recommended), None)
    words = _nothing_to_take(result, plan) if chosen is None else _what_to_take(result, plan, chosen)
    broken = _labels(plan, [run.run_id for run in result.runs if run.broken_tokens])
    if words and broken:
        words = _("{words}; broken output: {labels}").format(words=words, labels=broken)
    if words and result.state in ("running", "stopped"):
        words = _("So far: {words}").format(words=words)
    return f"{words}." if words else ""


def _what_to_take(result: ComparisonResult, plan: ComparisonPlan, spec: RunSpec) -> str:
    run = result.run(spec.run_id)
    if run is None or run.quality is None:
        return ""
    parts = [_size(result, plan, spec, run)]
    if run.speed is not None and run.speed.decode_ratio is not None:
        parts.append(speed_words(run.speed.decode_ratio))
    parts.append(_("{share} next words unchanged").format(share=same_top_text(run.quality.same_top)))
    words = _("{label}: {facts}").format(label=spec.label, facts=", ".join(part for part in parts if part))
    beside = _beside_larger(result, plan, spec, run.quality)
    return f"{words}; {beside}"


def _size(result: ComparisonResult, plan: ComparisonPlan, spec: RunSpec, run: RunResult) -> str:
    axis = frontier.axis_of(result)
    taken = frontier.needed_bytes(run, spec, axis)
    reference = result.run(plan.reference.run_id)
    whole = frontier.needed_bytes(reference, plan.reference, axis) if reference else plan.reference.size_bytes
    if not taken or not whole:
        return ""
    words = _("{size} instead of {whole} of memory") if axis == "memory" else _("{size} instead of {whole}")
    return words.format(size=bytes_text(taken), whole=bytes_text(whole))


def _beside_larger(result: ComparisonResult, plan: ComparisonPlan, spec: RunSpec, quality: Quality) -> str:
    """Return how a run compares with the next larger candidate; where there is none, its band."""
    axis = frontier.axis_of(result)
    own = result.run(spec.run_id)
    larger = []
    for other in plan.candidates:
        run = result.run(other.run_id)
        if own is None or run is None or run.quality is None or run.broken_tokens:
            continue
        taken = frontier.needed_bytes(run, other, axis)
        if taken > frontier.needed_bytes(own, spec, axis):
            larger.append((taken, other, run.quality))
    if not larger:
        words = _("against {reference}: {words}")
        return words.format(reference=plan.reference.label, words=band(quality.kl_mean).words)
    _taken, other, better = min(larger, key=lambda one: one[0])
    if not is_ranked(quality.kl_mean, better.kl_mean, result.noise_floor):
        return _("against {other}: {words}").format(other=other.label, words=unranked_words())
    pair = {spec.run_id, other.run_id}
    found = next((one for one in result.differences if {one.first, one.second} == pair), None)
    if found is not None and not found.is_real:
        return _("no measurable loss against {other}").format(other=other.label)
    words = _("KL {own:.3f} against {theirs:.3f} of {other}")
    return words.format(own=quality.kl_mean, theirs=better.kl_mean, other=other.label)


def _nothing_to_take(result: ComparisonResult, plan: ComparisonPlan) -> str:
    reasons = frontier.obstacles(plan, result)  # all but memory, which is not known here
    whole = [run_id for run_id, reason in reasons.items() if reason not in (Obstacle.UNMEASURED, Obstacle.BROKEN)]
    if not whole:
        return _("No candidate could be measured") if result.state == "done" else ""
    if fine := [run_id for run_id, reason in reasons.items() if reason is None]:
        words = _("Below the limit of {limit:g}, but without enough memory to spare here: {labels}")
        return words.format(limit=plan.limit_kl, labels=_labels(plan, fine))
    if few := [run_id for run_id, reason in reasons.items() if reason is Obstacle.FEW_BITS]:
        words = _("Below the limit of {limit:g}, but with less than {bits:g} bits per weight: {labels}")
        bits = frontier.LOWEST_BITS_PER_WEIGHT
        return words.format(limit=plan.limit_kl, bits=bits, labels=_labels(plan, few))
    nearest = min(whole, key=lambda run_id: _kl(result, run_id))
    kl = _kl(result, nearest)
    words = _("No candidate is surely below the limit of {limit:g} on this text; nearest is {label} with {kl:.3f}")
    return words.format(limit=plan.limit_kl, label=_labels(plan, [nearest]), kl=kl)


def _kl(result: ComparisonResult, run_id: str) -> float:
    run = result.run(run_id)
    return run.quality.kl_mean if run is not None and run.quality is not None else float("inf")


def _labels(plan: ComparisonPlan, run_ids: list[str]) -> str:
    return ", ".join(spec.label for spec in plan.runs if spec.run_id in run_ids)


# --------------------------------------------------------------------------------------------- checks


def accuracy_words(quality: Quality) -> str:
    """Return whether perplexity rose by less than one percent: in three words, by the interval of its ratio."""
    low, high = _ratio_interval(quality)
    return _three_words(high <= 1 + ACCURACY_LOSS, low > 1 + ACCURACY_LOSS)


def checks(run: RunResult) -> tuple[Check, ...]:
    """Return the checks of one run; what was not measured is not among them."""
    found: list[Check] = []
    quality = run.quality
    if quality is not None or run.broken_tokens:
        found.append(_finite(run.broken_tokens, (quality.tokens if quality else 0) + run.broken_tokens))
    if quality is not None:
        found.append(_accuracy(quality))
        if quality.cosine_mean is not None:
            found.append(_cosine(quality.cosine_mean, quality.cosine_worst))
    if run.choices is not None:
        change, (low, high) = accuracy_change(run.choices)
        words = _three_words(low >= -ACCURACY_LOSS, high < -ACCURACY_LOSS)
        detail = _("loss on the questions: {words} ({change}, {flips} changed answers)").format(
            words=words, change=percent_text(change, signed=True), flips=run.choices.flips
        )
        found.append(Check("choices", _state(low >= -ACCURACY_LOSS, high < -ACCURACY_LOSS), detail))
    if run.speed is not None and run.speed.decode_ratio is not None:
        ratio, is_sure = run.speed.decode_ratio, len(run.speed.decode_ratio.values) > 1
        found.append(Check("speed", _state(is_sure and ratio.low > 1, is_sure and ratio.high < 1), speed_words(ratio)))
    if run.speed is not None and run.speed.is_noisy:
        found.append(Check("quiet", "warn", _("the machine did something else meanwhile: speeds are uncertain")))
    if run.memory is not None and run.memory.predicted_bytes:
        found.append(_memory(run.memory.total_bytes, run.memory.predicted_bytes))
    return tuple(found)


def self_check(result: ComparisonResult) -> Check:
    """Return whether the reference, compared with its own windows, comes out as itself."""
    if result.self_check is None:
        return Check("self", "unknown", _("the reference was not held against itself"))
    if round(abs(result.self_check), 4) == 0:
        return Check("self", "pass", _("the reference held against itself gives 0.0000"))
    words = _("the reference held against itself gives {kl:.4f} and not 0: no figure here can be trusted")
    return Check("self", "fail", words.format(kl=result.self_check))


def speed_words(ratio: Measure) -> str:
    """Return how much faster than the reference: "1.7× as fast (1.6 to 1.8)"; a single round has no interval."""
    if len(ratio.values) < 2:
        return _("{ratio}× as fast in a single round").format(ratio=times_text(ratio.median))
    if ratio.low <= 1 <= ratio.high:
        return _("not measurably faster on this machine")
    words = _("{ratio}× as fast ({low} to {high})") if ratio.low > 1 else _("slower here: {ratio}× ({low} to {high})")
    return words.format(ratio=times_text(ratio.median), low=times_text(ratio.low), high=times_text(ratio.high))


def times_text(factor: float) -> str:
    """Return a factor with two significant digits: "2.3", "12", "0.65"."""
    if factor >= 9.95:
        return f"{factor:,.0f}"
    return f"{factor:.1f}" if factor >= 0.995 else f"{factor:.2f}"


def same_top_text(share: float) -> str:
    """Return how many of 100 next words are the same; never 100 while one differs."""
    if 0.995 <= share < 1:
        return _("more than 99 of 100")
    return _("{count} of 100").format(count=round(100 * share))


def _finite(broken: int, total: int) -> Check:
    if not broken:
        return Check("finite", "pass", _("all figures are finite"))
    words = _("broken output: {count} of {total} positions are not finite")
    return Check("finite", "fail", words.format(count=count_text(broken), total=count_text(total)))


def _accuracy(quality: Quality) -> Check:
    low, high = _ratio_interval(quality)
    words = _("loss by perplexity: {words} ({low} to {high})").format(
        words=accuracy_words(quality), low=percent_text(low - 1, signed=True), high=percent_text(high - 1, signed=True)
    )
    return Check("accuracy", _state(high <= 1 + ACCURACY_LOSS, low > 1 + ACCURACY_LOSS), words)


def _cosine(mean: float, worst: float | None) -> Check:
    words = _("cosine {mean:.4f}, worst token {worst:.2f}").format(mean=mean, worst=mean if worst is None else worst)
    return Check("cosine", _state(mean >= _COSINE_GOOD, mean < _COSINE_FAIR), words)


def _memory(total_bytes: int, predicted_bytes: int) -> Check:
    off = abs(total_bytes / predicted_bytes - 1)
    words = _("predicted {predicted}, used {used}")
    words = words.format(predicted=bytes_text(predicted_bytes), used=bytes_text(total_bytes))
    return Check("memory", _state(off <= _MEMORY_GOOD, off > _MEMORY_FAIR), words)


def _ratio_interval(quality: Quality) -> tuple[float, float]:
    """Return the interval of the perplexity ratio; of older results, two standard errors."""
    if quality.perplexity_ratio_interval is not None:
        return quality.perplexity_ratio_interval
    half = 2 * quality.perplexity_ratio_error
    return quality.perplexity_ratio - half, quality.perplexity_ratio + half


def _three_words(is_within: bool, is_beyond: bool) -> str:
    if is_within:
        return _("within 1 %").replace(" %", f"{NBSP}%")
    return _("more than 1 %").replace(" %", f"{NBSP}%") if is_beyond else _("cannot tell")


def _state(is_good: bool, is_bad: bool) -> str:
    return "pass" if is_good else "fail" if is_bad else "warn"
