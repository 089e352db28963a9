"""What a step does, as the scheduler hands it on, and what the scheduler itself remembers of it. Knows no torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.torch_engine.sequence import Sequence


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What a step does for one sequence: compute known[past : past + count], whose KV goes behind the first `past`."""

    sequence: Sequence
    past: int
    count: int
    wants_logits: bool  # the row ends with the last known token


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step: its rows, the blocks (source, target) to copy before the forward, and who gave blocks back for it."""

    rows: tuple[PlanRow, ...]
    copies: tuple[tuple[int, int], ...] = ()
    preempted: tuple[Sequence, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """A block of a table that was shared and is now the sequence's own; the source is held until the step ends."""

    sequence: Sequence
    version: int
    index: int
    source: int
    target: int


@dataclass(slots=True)
class Draft:
    """A plan in the making."""

    budget: int
    rows: dict[Sequence, PlanRow] = field(default_factory=dict)
    copies: dict[Sequence, Copy] = field(default_factory=dict)
    preempted: list[Sequence] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Flight:
    """A plan that is neither committed nor cancelled, and what its sequences were when it was made."""

    plan: StepPlan
    step: int
    versions: tuple[int, ...]
    copies: tuple[Copy, ...]
