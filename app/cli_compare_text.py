"""What `cutaway compare` says: the table of the runs, how far it is, what it was measured under. Pure."""

from __future__ import annotations

from app.compare.duration import duration_words
from app.compare.folder import NOISE_FLOOR_RUN
from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, Measure, Quality, RunResult
from app.compare.runner import PhaseChanged
from app.i18n import _, ngettext
from app.units import bytes_text, count_text, number_text, percent_text, rate_text

_UNKNOWN = "-"


def table_rows(plan: ComparisonPlan, result: ComparisonResult) -> list[list[str]]:
    """Return one row a run, the head first; runs of which nothing was measured are left out."""
    head = [
        _("Run"),
        _("Size"),
        _("Bits/weight"),
        _("Memory"),
        _("KL, mean (95 %)"),
        _("99 %"),
        _("Same next word"),
        _("Perplexity"),
        _("Reading"),
        _("Writing"),
        _("Verdict"),
    ]
    rows = [head]
    for run in plan.runs:
        found = result.run(run.run_id)
        if found is not None and (found.perplexity is not None or found.speed is not None):
            rows.append(_row(plan, run, found))
    return rows


def _row(plan: ComparisonPlan, run: RunSpec, found: RunResult) -> list[str]:
    quality, speed = found.quality, found.speed
    is_reference = run.run_id == plan.reference.run_id
    verdict = _("reference") if is_reference else found.verdict or _UNKNOWN
    if found.on_front and not is_reference:
        verdict = _("{verdict} · on the front").format(verdict=verdict)
    return [
        run.label,
        bytes_text(run.size_bytes) if run.size_bytes else _UNKNOWN,
        number_text(run.bits_per_weight) if run.bits_per_weight else _UNKNOWN,
        bytes_text(found.memory.total_bytes) if found.memory is not None else _UNKNOWN,
        kl_text(quality) if quality is not None else _UNKNOWN,
        f"{quality.kl_p99:.4f}" if quality is not None and quality.kl_p99 is not None else _UNKNOWN,
        percent_text(quality.same_top) if quality is not None else _UNKNOWN,
        _perplexity_text(found),
        _speed_text(speed.prefill_tokens_per_s if speed is not None else None),
        _speed_text(speed.decode_tokens_per_s if speed is not None else None),
        verdict,
    ]


def kl_text(quality: Quality) -> str:
    """Return the mean KL with its interval, in nats: "0.0445 (0.0412 to 0.0480)"."""
    low, high = quality.kl_interval
    words = _("{mean:.4f} ({low:.4f} to {high:.4f})")
    return words.format(mean=quality.kl_mean, low=low, high=high)


def _perplexity_text(found: RunResult) -> str:
    if found.quality is None:
        return number_text(found.perplexity) if found.perplexity is not None else _UNKNOWN
    return _("{perplexity}, × {ratio:.4f}").format(
        perplexity=number_text(found.quality.perplexity), ratio=found.quality.perplexity_ratio
    )


def _speed_text(found: Measure | None) -> str:
    return rate_text(found.median) if found is not None else _UNKNOWN


def condition_lines(plan: ComparisonPlan, result: ComparisonResult, processor: str, threads: int) -> list[str]:
    """Return under which conditions the figures were taken."""
    work = plan.workload
    tokens = ngettext(
        "{count} token scored in {windows} windows of each run",
        "{count} tokens scored in {windows} windows of each run",
        work.scored_tokens,
    ).format(count=count_text(work.scored_tokens), windows=work.windows)
    machine = ngettext("{processor}, {count} thread", "{processor}, {count} threads", threads)
    lines = [
        f"{tokens} · {machine.format(processor=processor, count=threads)}",
        _("Every run had a fresh worker and an empty cache; speed rounds took turns, a warm-up before them."),
    ]
    if result.noise_floor is not None:
        words = _("Noise floor {floor:.6f} nats: the reference against itself with another batch size.")
        lines.append(words.format(floor=result.noise_floor))
    if result.self_check is not None:
        words = _("The reference against its own stored window: {kl:.4f} nats.")
        lines.append(words.format(kl=result.self_check))
    return lines


def progress_text(plan: ComparisonPlan, event: PhaseChanged) -> str:
    """Return how far a comparison is, as one line."""
    run = next((one for one in plan.runs if one.run_id == event.run_id), None)
    label = run.label if run is not None else event.run_id
    if event.run_id == NOISE_FLOOR_RUN:
        label = _("Noise floor")
    words = {
        "loading": _("loading the model"),
        "windows": _("scoring"),
        "answers": _("answering"),
        "choices": _("choosing"),
        "speed": _("measuring speed"),
        "waiting": _("waiting for the chat to end"),
    }.get(event.phase, event.phase)
    parts = [f"{label}: {words}"]
    if event.total > 1:
        parts.append(_("{done} of {total}").format(done=min(event.done + 1, event.total), total=event.total))
    if event.remaining_s is not None:
        parts.append(_("{time} left").format(time=duration_words(event.remaining_s)))
    return " · ".join(parts)
