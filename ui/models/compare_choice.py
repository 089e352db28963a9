"""What a person chose on the setup page, and the plan that comes of it.

Knows no widget and no folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.compare.plan import Amount, ComparisonPlan, RunSpec, WorkloadSpec
from app.compare.reference import make_run_spec
from app.models.entry import ModelEntry
from backends.registry import BACKENDS
from ui.models.model_choice import NamedModel, by_name

# What is offered beside the exact KV cache.
SMALLER_KV = "q8_0"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that a person ticked.

    Attributes:
        key: of the library's entry.
        kv_type: "" for the exact one.
    """

    key: str
    kv_type: str = ""


@dataclass(frozen=True, slots=True)
class SetupChoice:
    """What is chosen on the setup page.

    Attributes:
        title: the model's name.
        reference_key: of the library's entry.
        reference_reason: why this one.
        reference_warnings: what must be known of it; they stay on the result.
        candidates: in the order in which they are run.
        text: "mix", "own" or "chats".
        own_path: the person's file, for "own".
        amount: "quick", "normal" or "thorough".
        limit_kl: nats.
    """

    title: str = ""
    reference_key: str = ""
    reference_reason: str = ""
    reference_warnings: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    text: str = "mix"
    own_path: str = ""
    amount: Amount = "normal"
    limit_kl: float = 0.05


def comparable(entries: Sequence[ModelEntry]) -> list[NamedModel]:
    """Return the models that can be compared: those with two usable quantizations, copies counted once."""
    return [model for model in by_name(single(entries)) if len(model.usable) > 1]


def single(entries: Sequence[ModelEntry]) -> list[ModelEntry]:
    """Return the usable entries, each content once."""
    seen: set[str] = set()
    found = []
    for entry in entries:
        if entry.fault or (entry.identity and entry.identity in seen):
            continue
        seen.add(entry.identity)
        found.append(entry)
    return found


def make_plan(
    choice: SetupChoice,
    entries: Mapping[str, ModelEntry],
    workload: WorkloadSpec,
    backend_of: Callable[[ModelEntry], str],
    comparison_id: str = "planned",
) -> ComparisonPlan:
    """Return the plan of what was chosen.

    Args:
        choice: from the setup page; its keys are in `entries`.
        entries: of the library, by key.
        workload: what every run does.
        backend_of: says which backend takes a model.
        comparison_id: the name of its folder; a plan that is only asked how long it takes has none.
    """
    runs: list[RunSpec] = []
    for candidate in (Candidate(choice.reference_key), *choice.candidates):
        entry = entries[candidate.key]
        backend = backend_of(entry)
        note = " ".join(choice.reference_warnings) if not runs else ""
        kv_type = candidate.kv_type or exact_kv(backend)
        runs.append(make_run_spec(entry, kv_type, backend, [run.run_id for run in runs], note))
    return ComparisonPlan(
        comparison_id=comparison_id,
        created_s=time.time(),
        title=choice.title,
        reference=runs[0],
        candidates=tuple(runs[1:]),
        workload=workload,
        reference_reason=choice.reference_reason,
        limit_kl=choice.limit_kl,
    )


def exact_kv(backend: str) -> str:
    """Return the KV type of a backend that changes no answer."""
    kv_types = BACKENDS[backend].kv_types if backend in BACKENDS else ()
    return kv_types[0] if kv_types else "f16"


def has_smaller_kv(backend: str) -> bool:
    """Return whether a backend can keep the KV cache in eight bits."""
    return backend in BACKENDS and SMALLER_KV in BACKENDS[backend].kv_types
