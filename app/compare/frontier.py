"""Which runs are worth having: the front over memory and KL, and the smallest that a person may take.

Pure; knows no words and no screen. The front is Pareto's: on it nothing smaller is as good, and nothing as good is
smaller. It is drawn twice, over memory and over file size, since the two differ.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Literal

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult, RunResult

Axis = Literal["memory", "size"]

LOWEST_BITS_PER_WEIGHT = 3.0  # below it nothing is recommended unasked
_SPARE_BYTES = 2**30
_SPARE_SHARE = 0.1  # of what is free: on a small machine less than 1 GiB has to do


class Obstacle(enum.StrEnum):
    """Why a run is not recommended."""

    UNMEASURED = "unmeasured"  # it failed, or its quality is not known yet
    BROKEN = "broken"  # some of its logits are not finite
    DOMINATED = "dominated"  # something smaller is as good
    OVER_LIMIT = "over_limit"  # KL may be above the person's limit: the interval's upper end is
    FEW_BITS = "few_bits"  # under LOWEST_BITS_PER_WEIGHT
    NO_ROOM = "no_room"  # it would not leave enough memory free


def needed_bytes(run: RunResult, spec: RunSpec, axis: Axis = "memory") -> int:
    """Return what a run takes on an axis; 0 when unknown. Memory that was not measured is at least the file's size."""
    if axis == "memory" and run.memory is not None:
        return run.memory.total_bytes
    return spec.size_bytes


def axis_of(result: ComparisonResult) -> Axis:
    """Return "memory" where it was measured of every run that has a quality, else "size"."""
    measured = [run for run in result.runs if run.quality is not None]
    return "memory" if measured and all(run.memory is not None for run in measured) else "size"


def on_front(result: ComparisonResult, plan: ComparisonPlan, axis: Axis = "memory") -> frozenset[str]:
    """Return the run_ids on the front over (bytes, KL mean); the reference is on it, with a KL of 0.

    Runs without quality, with a broken output or of unknown size are left out. Equal points are on it together.
    """
    points = dict(_points(result, plan, axis))
    return frozenset(
        run_id for run_id, point in points.items() if not any(_dominates(other, point) for other in points.values())
    )


def dominated(result: ComparisonResult, plan: ComparisonPlan, axis: Axis = "memory") -> frozenset[str]:
    """Return the run_ids that have a point but are not on the front."""
    return frozenset(run_id for run_id, _ in _points(result, plan, axis)) - on_front(result, plan, axis)


def spare_bytes(free_bytes: int) -> int:
    """Return how much of the free memory a run must leave: 1 GiB, or 10 % where that is less."""
    return min(_SPARE_BYTES, int(free_bytes * _SPARE_SHARE))


def obstacles(
    plan: ComparisonPlan, result: ComparisonResult, free_bytes: int | None = None, *, allow_few_bits: bool = False
) -> dict[str, Obstacle | None]:
    """Return for each candidate the first reason not to recommend it; None for those that may be.

    Args:
        plan: the comparison, with the person's limit.
        result: what is known so far.
        free_bytes: memory that is free for the engine; None leaves it out of account.
        allow_few_bits: the person asked for less than LOWEST_BITS_PER_WEIGHT.
    """
    axis = axis_of(result)
    front = on_front(result, plan, axis)
    found: dict[str, Obstacle | None] = {}
    for spec in plan.candidates:
        run = result.run(spec.run_id)
        if run is not None and run.broken_tokens:
            found[spec.run_id] = Obstacle.BROKEN
        elif run is None or run.quality is None or run.failure:
            found[spec.run_id] = Obstacle.UNMEASURED
        elif run.quality.kl_interval[1] >= plan.limit_kl:
            found[spec.run_id] = Obstacle.OVER_LIMIT
        elif 0 < spec.bits_per_weight < LOWEST_BITS_PER_WEIGHT and not allow_few_bits:
            found[spec.run_id] = Obstacle.FEW_BITS
        elif free_bytes is not None and needed_bytes(run, spec) > free_bytes - spare_bytes(free_bytes):
            found[spec.run_id] = Obstacle.NO_ROOM
        elif spec.run_id not in front:
            found[spec.run_id] = Obstacle.DOMINATED
        else:
            found[spec.run_id] = None
    return found


def recommended(
    plan: ComparisonPlan, result: ComparisonResult, free_bytes: int | None = None, *, allow_few_bits: bool = False
) -> str:
    """Return the run_id of the smallest candidate that nothing speaks against; "" where there is none.

    Args:
        plan: the comparison, with the person's limit.
        result: what is known so far.
        free_bytes: memory that is free for the engine; None leaves it out of account.
        allow_few_bits: the person asked for less than LOWEST_BITS_PER_WEIGHT.
    """
    axis = axis_of(result)
    reasons = obstacles(plan, result, free_bytes, allow_few_bits=allow_few_bits)
    fitting = [(_bytes(plan, result, run_id, axis), run_id) for run_id, reason in reasons.items() if reason is None]
    return min(fitting, default=(0, ""))[1]


# ---------------------------------------------------------------------------------------------- parts


def _points(result: ComparisonResult, plan: ComparisonPlan, axis: Axis) -> Iterable[tuple[str, tuple[int, float]]]:
    """Yield (run_id, (bytes, KL)) of every run that has both."""
    for spec in plan.runs:
        run = result.run(spec.run_id)
        if run is None or run.failure or run.broken_tokens:
            continue
        taken = needed_bytes(run, spec, axis)
        if spec.run_id == plan.reference.run_id:
            kl = 0.0
        elif run.quality is not None:
            kl = run.quality.kl_mean
        else:
            continue
        if taken:
            yield spec.run_id, (taken, kl)


def _dominates(other: tuple[int, float], point: tuple[int, float]) -> bool:
    return other != point and other[0] <= point[0] and other[1] <= point[1]


def _bytes(plan: ComparisonPlan, result: ComparisonResult, run_id: str, axis: Axis) -> int:
    spec = next(spec for spec in plan.candidates if spec.run_id == run_id)
    run = result.run(run_id)
    return needed_bytes(run, spec, axis) if run is not None else spec.size_bytes
