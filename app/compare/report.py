"""comparison.json: what a comparison found, with the conditions it was found under.

The keys of the command line's law (design.md 8) stand in `reference` and in each of `candidates`; everything else that
is known of a run stands beside them under `result`, so that the file can be read back whole. Knows no folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.chat.messages import JsonObject
from app.compare.files import read_file, write_file
from app.compare.plan import FIRST_SCORED, SCORED_TOKENS, WINDOW_TOKENS, ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, Difference, Memory, RunResult
from app.compare.run_files import Conditions, RunFacts

SCHEMA = 1


def write_report(
    path: Path,
    plan: ComparisonPlan,
    result: ComparisonResult,
    conditions: Conditions,
    facts: Mapping[str, RunFacts],
) -> None:
    """Write comparison.json, whole or not at all; raises FolderError."""
    write_file(path, report_of(plan, result, conditions, facts))


def report_of(
    plan: ComparisonPlan, result: ComparisonResult, conditions: Conditions, facts: Mapping[str, RunFacts]
) -> JsonObject:
    """Return comparison.json's content.

    Args:
        plan: what was asked.
        result: what was found.
        conditions: under which conditions.
        facts: what the engine said of each run, by run_id.
    """
    return {
        "schema": SCHEMA,
        "comparison_id": plan.comparison_id,
        "title": plan.title,
        "created_s": plan.created_s,
        "state": result.state,
        "sentence": result.sentence,
        "recommended": result.recommended,
        "conditions": conditions_json(plan, conditions, facts),
        "reference": entry_json(plan.reference, result.run(plan.reference.run_id)) | {"reason": plan.reference_reason},
        "candidates": [entry_json(run, result.run(run.run_id)) for run in plan.candidates],
        "noise_floor": result.noise_floor,
        "self_check": result.self_check,
        "differences": [msgspec.to_builtins(one) for one in result.differences],
        "took_s": result.took_s,
        "warnings": list(result.warnings),
    }


def entry_json(run: RunSpec, found: RunResult | None) -> JsonObject:
    """Return one run's entry: the fixed keys, a figure nobody measured as null, then all the rest."""
    quality = found.quality if found is not None else None
    speed = found.speed if found is not None else None
    own = found.perplexity if found is not None else None
    return {
        "run_id": run.run_id,
        "label": run.label,
        "model": run.key or Path(run.path).name,
        "quantization": run.quantization,
        "kv_type": run.kv_type,
        "size_bytes": run.size_bytes or None,
        "bits_per_weight": run.bits_per_weight or None,
        "perplexity": quality.perplexity if quality is not None else own,
        "perplexity_ratio": quality.perplexity_ratio if quality is not None else None,
        "kl_mean": quality.kl_mean if quality is not None else None,
        "kl_interval": list(quality.kl_interval) if quality is not None else None,
        "kl_median": quality.kl_median if quality is not None else None,
        "kl_p99": quality.kl_p99 if quality is not None else None,
        "kl_p999": quality.kl_p999 if quality is not None else None,
        "delta_p_rms": quality.delta_p_rms if quality is not None else None,
        "same_top": quality.same_top if quality is not None else None,
        "non_finite": quality.non_finite if quality is not None else None,
        "prefill_tokens_per_s": speed.prefill_tokens_per_s.median if speed is not None else None,
        "decode_tokens_per_s": speed.decode_tokens_per_s.median if speed is not None else None,
        "memory": memory_json(found.memory if found is not None else None),
        "on_front": found.on_front if found is not None else False,
        "verdict": found.verdict if found is not None else "",
        "failure": found.failure if found is not None else "",
        "note": run.note,
        "fallback_tensors": run.fallback_tensors,
        "result": msgspec.to_builtins(found) if found is not None else None,
    }


def memory_json(memory: Memory | None) -> JsonObject | None:
    """Return memory by owner with the keys of `cutaway bench --json`, and what was predicted."""
    return msgspec.structs.asdict(memory) if memory is not None else None


def conditions_json(plan: ComparisonPlan, conditions: Conditions, facts: Mapping[str, RunFacts]) -> JsonObject:
    """Return under which conditions everything was measured, the same for all runs unless a run says otherwise."""
    workload = plan.workload
    return {
        "machine": {
            "processor": conditions.processor,
            "cores": conditions.cores,
            "memory_bytes": conditions.memory_bytes,
            "system": conditions.system,
            "load": [msgspec.structs.asdict(reading) for reading in conditions.machine],
        },
        "program_version": conditions.program_version,
        "amount": workload.amount,
        "texts": [msgspec.to_builtins(text) for text in workload.texts],
        "window_tokens": WINDOW_TOKENS,
        "first_scored": FIRST_SCORED,
        "scored_tokens_per_window": SCORED_TOKENS,
        "windows": workload.windows,
        "tokens_sha256": conditions.tokens_sha256,
        "prompts": len(workload.prompts),
        "choices": len(workload.choices),
        "speed": msgspec.structs.asdict(workload.speed),
        "context_tokens": workload.context_tokens,
        "threads": conditions.threads,
        "kept_tokens": conditions.kept_tokens,
        "limit_kl": plan.limit_kl,
        "fresh_worker": True,  # every run has a worker of its own that did nothing before
        "empty_cache": True,  # every window, answer and round begins in an empty context
        "warm_up_rounds": 1,
        "interleaved_rounds": True,
        "keeps_loaded": conditions.keeps_loaded,
        "runs": {
            run.run_id: msgspec.structs.asdict(facts.get(run.run_id, RunFacts()))
            | {"micro_batch_tokens": run.micro_batch_tokens}
            for run in plan.runs
        },
    }


class _Entry(msgspec.Struct, frozen=True):
    result: RunResult | None = None


class _Report(msgspec.Struct, frozen=True, kw_only=True):
    comparison_id: str
    state: str
    reference: _Entry
    candidates: tuple[_Entry, ...]
    sentence: str = ""
    recommended: str = ""
    noise_floor: float | None = None
    self_check: float | None = None
    differences: tuple[Difference, ...] = ()
    took_s: float = 0.0
    warnings: tuple[str, ...] = ()


def read_result(path: Path) -> ComparisonResult | None:
    """Return what comparison.json holds; None where there is none. Raises FolderError for a damaged one."""
    found = read_file(path, _Report)
    if found is None:
        return None
    entries = (found.reference, *found.candidates)
    return ComparisonResult(
        comparison_id=found.comparison_id,
        state=found.state,
        runs=tuple(entry.result for entry in entries if entry.result is not None),
        noise_floor=found.noise_floor,
        self_check=found.self_check,
        differences=found.differences,
        recommended=found.recommended,
        sentence=found.sentence,
        took_s=found.took_s,
        warnings=found.warnings,
    )
