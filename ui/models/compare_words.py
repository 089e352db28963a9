"""The words of the compare screen: figures with their intervals, the states of a comparison and of its runs.

Knows no widget. A figure that was not measured is a dash, never 0; a predicted one is marked by whoever shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.compare.plan import Amount, ComparisonPlan, RunSpec, WorkloadSpec
from app.compare.results import ComparisonResult, Measure, Quality, RunResult
from app.compare.verdict import same_top_text, times_text
from app.i18n import _, ngettext
from app.units import NBSP, bytes_text, count_text, number_text, percent_text, rate_text, seconds_text

NOT_KNOWN: Final = "–"

# The limits that are offered, mean KL divergence in nats: the borders of the words of a verdict.
LIMITS: Final = (0.01, 0.05, 0.15)
AMOUNTS: Final[tuple[Amount, ...]] = ("quick", "normal", "thorough")


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure or a condition as it is shown.

    Attributes:
        title: what it is.
        value: with its unit.
        about: how it was got; "" where the title says it.
    """

    title: str
    value: str
    about: str = ""


def kl_text(nats: float | None) -> str:
    """Return a divergence with four decimals: "0.0310"."""
    return NOT_KNOWN if nats is None else f"{nats:.4f}"


def kl_interval_text(quality: Quality | None) -> str:
    """Return the mean divergence and its interval, that with two digits: "0.0310 (0.028 to 0.034)"."""
    if quality is None:
        return NOT_KNOWN
    low, high = (_two_digits(bound) for bound in quality.kl_interval)
    interval = _("({low} to {high})").format(low=low, high=high)
    return f"{kl_text(quality.kl_mean)} {interval}".replace(" ", NBSP)


def ratio_text(ratio: Measure | None) -> str:
    """Return how many times as fast: "2.4 × (2.3 to 2.5)"."""
    if ratio is None:
        return NOT_KNOWN
    low, high = times_text(ratio.low), times_text(ratio.high)
    interval = _("({low} to {high})").format(low=low, high=high)
    return f"{times_text(ratio.median)} × {interval}".replace(" ", NBSP)


def measure_text(speed: Measure | None) -> str:
    """Return a speed and its interval: "151 tokens/s (149 to 153)"."""
    if speed is None:
        return NOT_KNOWN
    interval = _("({low} to {high})").format(low=number_text(speed.low), high=number_text(speed.high))
    return f"{rate_text(speed.median)} {interval}".replace(" ", NBSP)


def share_text(share: float | None) -> str:
    """Return a part of one in percent."""
    return NOT_KNOWN if share is None else percent_text(share)


def size_text(size_bytes: int | None) -> str:
    """Return an amount of memory; a dash where nobody measured it."""
    return bytes_text(size_bytes) if size_bytes else NOT_KNOWN


def candidates_text(plan: ComparisonPlan) -> str:
    """Return what is compared with what: "6 quantizations against F16"."""
    count = len(plan.candidates)
    words = ngettext("{count} quantization against {reference}", "{count} quantizations against {reference}", count)
    if any(run.kv_type != plan.reference.kv_type for run in plan.candidates):
        words = ngettext("{count} run against {reference}", "{count} runs against {reference}", count)
    return words.format(count=count_text(count), reference=plan.reference.label)


def facts_text(plan: ComparisonPlan, result: ComparisonResult) -> str:
    """Return the line beside a comparison's title: "6 quantizations against F16 · 1,020 scored tokens · 9 min"."""
    scored = plan.workload.scored_tokens
    tokens = ngettext("{count} scored token", "{count} scored tokens", scored).format(count=count_text(scored))
    facts = [candidates_text(plan), tokens]
    if result.state == "done" and result.took_s:
        facts.append(_("finished in {time}").format(time=seconds_text(result.took_s)))
    return " · ".join(facts)


def state_words(state: str, done: int, total: int) -> str:
    """Return how far a comparison is.

    Args:
        state: of its result.
        done: runs that are whole.
        total: runs of its plan.
    """
    of = _("{done} of {total} runs").format(done=count_text(done), total=count_text(total))
    match state:
        case "done":
            return _("finished") if done >= total else _("finished, {runs} whole").format(runs=of)
        case "running":
            return _("running: {runs} done").format(runs=of)
        case "stopped":
            return _("stopped: {runs} done").format(runs=of)
        case _:
            return _("not started")


def amount_words(amount: str) -> str:
    """Return the name of a preset."""
    return {"quick": _("Quick"), "normal": _("Normal"), "thorough": _("Thorough")}.get(amount, amount)


def workload_text(workload: WorkloadSpec) -> str:
    """Return what every run does: "4 texts, 1,020 scored tokens · 3 answers of up to 64 tokens · 3 speed rounds"."""
    scored = workload.scored_tokens
    tokens = ngettext("{count} scored token", "{count} scored tokens", scored).format(count=count_text(scored))
    texts = len(workload.texts)
    parts = [
        ngettext("{tokens} of {count} text", "{tokens} of {count} texts", texts).format(tokens=tokens, count=texts)
    ]
    if workload.prompts:
        count = len(workload.prompts)
        words = ngettext("{count} answer of up to {tokens} tokens", "{count} answers of up to {tokens} tokens", count)
        parts.append(words.format(count=count, tokens=max(prompt.max_tokens for prompt in workload.prompts)))
    if workload.choices:
        count = len(workload.choices)
        words = ngettext("{count} multiple-choice question", "{count} multiple-choice questions", count)
        parts.append(words.format(count=count))
    rounds = workload.speed.rounds
    parts.append(ngettext("{count} speed round", "{count} speed rounds", rounds).format(count=rounds))
    return " · ".join(parts)


def limit_words(limit_kl: float) -> str:
    """Return a limit and what it allows: "0.05 · small differences"."""
    words = {0.01: _("near-lossless"), 0.05: _("small differences"), 0.15: _("noticeable")}.get(limit_kl, "")
    return " · ".join(filter(None, (f"{limit_kl:g}", words)))


def limit_sentence(limit_kl: float) -> str:
    """Return what a limit means for the recommendation."""
    told = {
        0.01: _("Answers hardly ever change. Often only quantizations of six bits and more stay below it."),
        0.05: _("Some words come out differently, seldom what is said. Right for most uses."),
        0.15: _("Answers differ noticeably. For a machine that has no room for more."),
    }
    words = _("The smallest quantization below this distance from the reference is recommended.")
    return " ".join(filter(None, (words, told.get(limit_kl, ""))))


def same_token_words(same_top: float) -> str:
    """Return the share of unchanged next tokens as people count: "92 of 100 next tokens unchanged"."""
    return _("{share} next tokens unchanged").format(share=same_top_text(same_top))


def run_state_words(spec: RunSpec, run: RunResult | None, is_reference: bool) -> str:
    """Return what a run came to, in a line; "" for one that was not begun."""
    if run is None:
        return ""
    if run.failure:
        return _("failed: {why}").format(why=run.failure)
    if run.quality is not None:
        kl = _("KL {kl}").format(kl=kl_text(run.quality.kl_mean))
        return " · ".join(filter(None, (run.verdict, kl, same_token_words(run.quality.same_top))))
    return _("done") if not is_reference else _("the reference is measured")


def neighbours_text(plan: ComparisonPlan, result: ComparisonResult) -> str:
    """Return which neighbours cannot be told apart; "" where each differs from the next."""
    labels = {run.run_id: run.label for run in plan.runs}
    alike = [
        _("{first} and {second}").format(
            first=labels.get(one.first, one.first), second=labels.get(one.second, one.second)
        )
        for one in result.differences
        if not one.is_real
    ]
    if not alike:
        return ""
    return _("No measurable difference on this text: {pairs}.").format(pairs="; ".join(alike))


def is_whole(run: RunResult | None) -> bool:
    """Return whether a run was measured and did not fail."""
    return run is not None and not run.failure and (run.quality is not None or run.perplexity is not None)


def whole_count(plan: ComparisonPlan, runs: Sequence[RunResult]) -> int:
    """Return how many runs of a plan are whole."""
    by_id = {run.run_id: run for run in runs}
    return sum(is_whole(by_id.get(spec.run_id)) for spec in plan.runs)


def _two_digits(nats: float) -> str:
    """Return the bound of an interval: two significant digits, at most four decimals: "0.028", "0.40", "0.0001"."""
    if nats <= 0:
        return "0"
    decimals = min(4, max(1, 1 - math.floor(math.log10(nats))))
    return f"{nats:.{decimals}f}"
