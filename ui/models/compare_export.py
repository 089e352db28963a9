"""What a comparison found as one table, for the table twin and for CSV: every figure of every run, with its unit.

Knows no widget; the twin shows the same object that is exported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, Quality, RunResult
from app.i18n import _
from app.telemetry.export import Column, Table
from app.units import bytes_text, count_text, number_text, percent_text, rate_text, seconds_text
from ui.models.compare_words import kl_text

_Found = tuple[RunSpec, RunResult | None]
_Value = Callable[[_Found], float | None]


def results_table(plan: ComparisonPlan, result: ComparisonResult) -> Table:
    """Return the table of a comparison, the reference first; what was not measured is empty."""
    found = [(run, result.run(run.run_id)) for run in plan.runs]
    columns = [
        _words("run", _("run"), [run.label for run, _run in found]),
        _words("quantization", _("quantization"), [run.quantization for run, _run in found]),
        _words("kv_type", _("KV cache"), [run.kv_type for run, _run in found]),
        _figure("bits_per_weight", _("bits/weight"), number_text, found, lambda one: one[0].bits_per_weight or None),
        _figure("size_bytes", _("size"), bytes_text, found, lambda one: one[0].size_bytes or None),
        _figure("memory_bytes", _("memory"), bytes_text, found, _memory_bytes),
        *(_figure(key, title, text, found, _of_quality(value)) for key, title, text, value in _quality_columns()),
        *(_figure(key, title, text, found, value) for key, title, text, value in _speed_columns()),
        _words("in_words", _("in words"), [_verdict(run) for _spec, run in found]),
    ]
    title = _("Comparison of {name}").format(name=plan.title)
    return Table("comparison", title, tuple(columns), is_over_time=False)


_Text = Callable[[float], str]


def _quality_columns() -> list[tuple[str, str, _Text, Callable[[Quality], float | None]]]:
    return [
        ("kl_mean", _("KL mean"), kl_text, lambda one: one.kl_mean),
        ("kl_low", _("KL, 95 % from"), kl_text, lambda one: one.kl_interval[0]),
        ("kl_high", _("KL, 95 % to"), kl_text, lambda one: one.kl_interval[1]),
        ("kl_median", _("KL median"), kl_text, lambda one: one.kl_median),
        ("kl_p99", _("KL 99 %"), kl_text, lambda one: one.kl_p99),
        ("kl_p999", _("KL 99.9 %"), kl_text, lambda one: one.kl_p999),
        ("kl_max", _("KL largest"), kl_text, lambda one: one.kl_max),
        ("same_top", _("same token"), percent_text, lambda one: one.same_top),
        ("perplexity_ratio", _("perplexity ratio"), _ratio, lambda one: one.perplexity_ratio),
        ("delta_p_rms", _("Δp RMS"), percent_text, lambda one: one.delta_p_rms),
        ("cosine_mean", _("cosine, mean"), _ratio, lambda one: one.cosine_mean),
        ("non_finite", _("not finite"), count_text, lambda one: one.non_finite),
        ("scored_tokens", _("scored tokens"), count_text, lambda one: one.tokens),
    ]


def _speed_columns() -> list[tuple[str, str, _Text, _Value]]:
    return [
        ("decode_tokens_per_s", _("writing"), rate_text, _decode),
        ("decode_ratio", _("writing, times the reference"), _ratio, _decode_ratio),
        ("prefill_tokens_per_s", _("reading"), rate_text, _prefill),
        ("load_s", _("load time"), seconds_text, lambda one: one[1].load_s if one[1] is not None else None),
        ("accuracy", _("questions right"), percent_text, _accuracy),
        ("flips", _("flips"), count_text, _flips),
    ]


def _memory_bytes(one: _Found) -> float | None:
    return one[1].memory.total_bytes if one[1] is not None and one[1].memory is not None else None


def _decode(one: _Found) -> float | None:
    return one[1].speed.decode_tokens_per_s.median if one[1] is not None and one[1].speed is not None else None


def _prefill(one: _Found) -> float | None:
    return one[1].speed.prefill_tokens_per_s.median if one[1] is not None and one[1].speed is not None else None


def _decode_ratio(one: _Found) -> float | None:
    speed = one[1].speed if one[1] is not None else None
    return speed.decode_ratio.median if speed is not None and speed.decode_ratio is not None else None


def _accuracy(one: _Found) -> float | None:
    return one[1].choices.accuracy if one[1] is not None and one[1].choices is not None else None


def _flips(one: _Found) -> float | None:
    return one[1].choices.flips if one[1] is not None and one[1].choices is not None else None


def _of_quality(value: Callable[[Quality], float | None]) -> _Value:
    def of_run(one: _Found) -> float | None:
        quality = one[1].quality if one[1] is not None else None
        return value(quality) if quality is not None else None

    return of_run


def _figure(key: str, title: str, text: _Text, found: Sequence[_Found], value: _Value) -> Column:
    values = [value(one) for one in found]
    told = np.array([math.nan if one is None else float(one) for one in values], dtype=np.float64)
    return Column(key, title, lambda one: "" if math.isnan(one) else text(one), told)


def _words(key: str, title: str, values: Sequence[str]) -> Column:
    return Column(key, title, str, tuple(values))


def _verdict(run: RunResult | None) -> str:
    if run is None:
        return _("not run yet")
    return _("failed: {why}").format(why=run.failure) if run.failure else run.verdict


def _ratio(value: float) -> str:
    return f"{value:.4f}"
