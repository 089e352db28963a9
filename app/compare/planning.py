"""From what a person asked for to a plan: which runs there are, and what is said of the reference. Starts nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from app.compare.plan import ComparisonPlan, RunSpec, WorkloadSpec
from app.compare.reference import make_run_spec, propose_reference
from app.errors import AppError, Words
from app.i18n import _
from app.models.entry import ModelEntry
from backends.registry import BACKENDS


def make_plan(
    reference: ModelEntry,
    candidates: Sequence[ModelEntry],
    kv_types: Sequence[str],
    workload: WorkloadSpec,
    backend_of: Callable[[ModelEntry], str],
    threads: int = 0,
) -> ComparisonPlan:
    """Return the plan of a comparison; its comparison_id is still to be given.

    Args:
        reference: what the others are compared with; it keeps its KV cache exact.
        candidates: the others, in this order.
        kv_types: each candidate is run once with each of these; empty for the exact one. The reference's own weights
            with a smaller KV cache are a candidate too.
        workload: what every run does.
        backend_of: says which backend takes a model.
        threads: 0 for the engine's choice.

    Raises:
        AppError: there is nothing to compare with, or a backend cannot keep its KV cache so.
    """
    proposal = propose_reference([reference])
    warnings = proposal.warnings if proposal is not None else ()
    backend = backend_of(reference)
    first = make_run_spec(reference, exact_kv(backend), backend, (), " ".join(warnings))
    runs = [first]
    for entry in (reference, *candidates):
        backend = backend_of(entry)
        for kv_type in kv_types or (exact_kv(backend),):
            _check_kv(backend, kv_type)
            if entry.path == reference.path and kv_type == exact_kv(backend):
                continue  # the reference itself
            runs.append(make_run_spec(entry, kv_type, backend, [run.run_id for run in runs]))
    if len(runs) < 2:
        raise AppError(
            Words(
                _("There is nothing to compare: the only run is the reference itself."),
                _("Name other quantizations after --candidates, or KV types after --kv-type."),
            )
        )
    return plan_of(reference.name, runs, workload, threads, proposal.reason if proposal is not None else "")


def plan_of(
    title: str, runs: Sequence[RunSpec], workload: WorkloadSpec, threads: int = 0, reason: str = ""
) -> ComparisonPlan:
    """Return the plan of these runs, the reference first."""
    return ComparisonPlan(
        comparison_id="planned",
        created_s=time.time(),
        title=title,
        reference=runs[0],
        candidates=tuple(runs[1:]),
        workload=workload,
        reference_reason=reason,
        threads=threads,
    )


def exact_kv(backend: str) -> str:
    """Return the KV type of a backend that changes no answer."""
    kv_types = BACKENDS[backend].kv_types
    return kv_types[0] if kv_types else "f16"


def _check_kv(backend: str, kv_type: str) -> None:
    found = BACKENDS[backend]
    if not found.can_store(kv_type):
        message = _("The {backend} engine cannot keep the KV cache as {type}.")
        hint = _("It has {types}.")
        raise AppError(
            Words(message.format(backend=found.title, type=kv_type), hint.format(types=", ".join(found.kv_types)))
        )
