"""From what a comparison's folder keeps to its result: statistics, verdicts, front, warnings. Starts nothing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from app.compare import frontier, statistics, verdict
from app.compare.folder import NOISE_FLOOR_RUN, ComparisonFolder
from app.compare.plan import RunSpec
from app.compare.reference_space import kept_words
from app.compare.results import Choices, ComparisonResult, Difference, RunResult, Speed
from app.compare.run_files import SpeedRound
from app.compare.token_scores import TokenScores
from app.errors import words_for
from app.i18n import _
from app.units import count_text
from backends.errors import NoticeCode


def assemble(
    folder: ComparisonFolder, state: str, warnings: Sequence[str] = (), free_bytes: int | None = None
) -> ComparisonResult:
    """Return what a comparison has found so far.

    Args:
        folder: what was measured.
        state: of the result: "running", "stopped", "done".
        warnings: what is to be said beside what the folder itself tells.
        free_bytes: memory that is free for an engine; None leaves it out of the recommendation.

    Raises:
        FolderError: the folder cannot be read.
    """
    plan, conditions = folder.plan, folder.conditions()
    scores = {run.run_id: scores_of(folder, run.run_id) for run in plan.runs}
    begun = [run for run in plan.runs if _is_begun(folder, run)]
    floor = statistics.quality(scores_of(folder, NOISE_FLOOR_RUN))
    result = ComparisonResult(
        comparison_id=plan.comparison_id,
        state=state,
        runs=tuple(_run_result(folder, run, scores[run.run_id]) for run in begun),
        noise_floor=floor.kl_mean if floor is not None else None,
        self_check=conditions.self_check,
        took_s=conditions.took_s,
        warnings=tuple(dict.fromkeys((*warnings, *_warnings(folder)))),
    )
    result = msgspec.structs.replace(result, differences=_differences(folder, result, scores))
    front = frontier.on_front(result, plan, frontier.axis_of(result))
    runs = tuple(msgspec.structs.replace(run, on_front=run.run_id in front) for run in result.runs)
    result = msgspec.structs.replace(result, runs=runs)
    result = msgspec.structs.replace(result, recommended=frontier.recommended(plan, result, free_bytes))
    return msgspec.structs.replace(result, sentence=verdict.sentence(result, plan))


def scores_of(folder: ComparisonFolder, run_id: str) -> TokenScores:
    """Return what a run said of all windows that it has scored so far."""
    parts = [folder.scores(run_id, number) for number in folder.windows_done(run_id)]
    return TokenScores.concatenate([part for part in parts if part is not None])


def _is_begun(folder: ComparisonFolder, run: RunSpec) -> bool:
    return folder.facts(run.run_id) is not None or folder.failure(run.run_id) is not None


def _run_result(folder: ComparisonFolder, run: RunSpec, scores: TokenScores) -> RunResult:
    is_reference = run.run_id == folder.plan.reference.run_id
    facts, failure = folder.facts(run.run_id), folder.failure(run.run_id)
    found = RunResult(
        run_id=run.run_id,
        quality=None if is_reference else statistics.quality(scores),
        perplexity=statistics.perplexity(scores),
        speed=_speed(folder, run, is_reference=is_reference),
        memory=folder.memory(run.run_id),
        answers=folder.answers(run.run_id),
        choices=_choices(folder, run, is_reference=is_reference),
        failure=failure.message if failure is not None else "",
        non_finite=statistics.non_finite(scores),
    )
    if facts is not None:
        found = msgspec.structs.replace(
            found,
            load_s=facts.load_s,
            device=facts.device,
            engine_variant=facts.engine_variant,
            threads=facts.threads,
            tokenizer_hash=facts.tokenizer_hash,
        )
    code, words = verdict.run_verdict(found)
    return msgspec.structs.replace(found, verdict=words, verdict_code=code)


def _speed(folder: ComparisonFolder, run: RunSpec, *, is_reference: bool) -> Speed | None:
    """Return a run's speed over its rounds, and what it is to the reference's of the same rounds."""
    rounds = [one for one in folder.rounds(run.run_id) if _is_measured(one)]
    if not rounds:
        return None
    reference = {one.number: one for one in folder.rounds(folder.plan.reference.run_id) if _is_measured(one)}
    pairs = [] if is_reference else [(one, reference[one.number]) for one in rounds if one.number in reference]
    return Speed(
        prefill_tokens_per_s=statistics.measure([one.prefill_tokens_per_s for one in rounds]),
        decode_tokens_per_s=statistics.measure([one.decode_tokens_per_s for one in rounds]),
        ttft_s=sorted(one.ttft_s for one in rounds)[len(rounds) // 2],
        prefill_ratio=statistics.ratio(
            [one.prefill_tokens_per_s for one, _other in pairs], [other.prefill_tokens_per_s for _one, other in pairs]
        ),
        decode_ratio=statistics.ratio(
            [one.decode_tokens_per_s for one, _other in pairs], [other.decode_tokens_per_s for _one, other in pairs]
        ),
        is_noisy=any(one.is_noisy for one in rounds),
    )


def _is_measured(one: SpeedRound) -> bool:
    return one.prefill_tokens_per_s > 0 and one.decode_tokens_per_s > 0


def _choices(folder: ComparisonFolder, run: RunSpec, *, is_reference: bool) -> Choices | None:
    """Return how a run chose, when it has chosen everywhere."""
    asked = folder.plan.workload.choices
    picked, theirs = folder.picks(run.run_id), folder.picks(folder.plan.reference.run_id)
    if not asked or len(picked) != len(asked) or len(theirs) != len(asked):
        return None
    return statistics.choices(picked, [one.right for one in asked], None if is_reference else theirs)


def _differences(
    folder: ComparisonFolder, result: ComparisonResult, scores: dict[str, TokenScores]
) -> tuple[Difference, ...]:
    """Return whether candidates that are neighbours by size really differ, the larger first."""
    measured = [run for run in folder.plan.candidates if scores[run.run_id].has_reference]
    ordered = sorted(measured, key=lambda run: -run.size_bytes)
    found = (
        statistics.difference(one.run_id, scores[one.run_id], other.run_id, scores[other.run_id], result.noise_floor)
        for one, other in itertools.pairwise(ordered)
    )
    return tuple(one for one in found if one is not None)


def _warnings(folder: ComparisonFolder) -> list[str]:
    """Return what a person must know of the conditions."""
    plan, conditions, material = folder.plan, folder.conditions(), folder.material()
    found = [plan.reference.note] if plan.reference.note else []
    found += material.notes if material is not None else ()
    if conditions.kept_tokens:
        found.append(kept_words())
    if conditions.self_check is not None and round(abs(conditions.self_check), 4) != 0:
        words = _("The reference held against itself gives {kl:.4f} and not 0: no figure here can be trusted.")
        found.append(words.format(kl=conditions.self_check))
    for run in plan.runs:
        found += _run_warnings(folder, run)
    if any(one.is_noisy for run in plan.runs for one in folder.rounds(run.run_id)):
        found.append(_("Other work kept the machine busy during the speed rounds: speeds are uncertain."))
    return found


def _run_warnings(folder: ComparisonFolder, run: RunSpec) -> list[str]:
    facts = folder.facts(run.run_id)
    if facts is None:
        return []
    found = [f"{run.label}: {run.note}"] if run.note and run.run_id != folder.plan.reference.run_id else []
    threads = folder.conditions().threads
    if threads and facts.threads and facts.threads != threads:
        words = _("{label} ran with {count} threads and the reference with {other}: their speeds cannot be compared.")
        found.append(words.format(label=run.label, count=facts.threads, other=threads))
    if facts.context_tokens and facts.context_tokens < folder.plan.workload.context_tokens:
        words = _("{label} has a context of {context} tokens, not {asked}: its memory is stated for that.")
        asked = count_text(folder.plan.workload.context_tokens)
        found.append(words.format(label=run.label, context=count_text(facts.context_tokens), asked=asked))
    for code in facts.notices:
        if code != NoticeCode.CONTEXT_CLAMPED:  # said above, with figures
            values = {"asked": run.kv_type, "kv_type": facts.kv_type, "backend": facts.backend}
            found.append(f"{run.label}: {words_for(code, values).message}")
    return found
