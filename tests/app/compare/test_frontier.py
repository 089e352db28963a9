"""The front and the recommendation: nothing smaller is as good, and never what a person would regret."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from app.compare import frontier
from app.compare.frontier import Obstacle
from app.compare.results import RunResult
from tests.helpers.score_values import MIB, ladder, memory_of, quality_of

POINTS = {
    "Q8_0": (530, 0.0014),
    "Q6_K": (410, 0.0055),
    "Q5_K_M": (355, 0.011),
    "Q4_0": (290, 0.072),
    "Q4_K_M": (305, 0.031),
    "Q4_X": (320, 0.033),  # larger and worse than Q4_K_M
    "Q2_K": (197, 0.44),
}


def _with(result, run_id, **fields):
    runs = tuple(msgspec.structs.replace(run, **fields) if run.run_id == run_id else run for run in result.runs)
    return msgspec.structs.replace(result, runs=runs)


def test_the_front_has_no_run_that_something_smaller_beats():
    plan, result = ladder(POINTS)
    front = frontier.on_front(result, plan, "size")
    assert front == {"F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "Q2_K"}
    assert frontier.dominated(result, plan, "size") == {"Q4_X"}


def test_the_front_is_that_of_the_definition():
    """Random points against the plain twin: on the front when no other is at most as large and at most as bad."""
    generator = np.random.default_rng(1)
    for _ in range(50):
        sizes, kls = generator.integers(100, 120, 12), generator.integers(1, 12, 12) / 100
        points = {f"R{number}": (int(sizes[number]), float(kls[number])) for number in range(12)}
        plan, result = ladder(points)
        right = {
            name
            for name, (size, kl) in points.items()
            if not any(s <= size and k <= kl and (s, k) != (size, kl) for s, k in points.values())
        }
        assert frontier.on_front(result, plan, "size") - {"F16"} == right


def test_memory_and_size_have_fronts_of_their_own():
    plan, result = ladder({"Q8_0": (530, 0.001), "Q8_0-kv": (530, 0.002)})
    for name, mib in [("F16", 1500), ("Q8_0", 900), ("Q8_0-kv", 700)]:
        result = _with(result, name, memory=memory_of(mib))
    assert frontier.on_front(result, plan, "size") == {"F16", "Q8_0"}
    assert frontier.on_front(result, plan, "memory") == {"F16", "Q8_0", "Q8_0-kv"}
    assert frontier.axis_of(result) == "memory"
    assert frontier.axis_of(_with(result, "Q8_0", memory=None)) == "size"


def test_broken_failed_and_unmeasured_runs_have_no_point():
    plan, result = ladder(POINTS)
    result = _with(result, "Q2_K", quality=quality_of(0.0, non_finite=1))
    result = _with(result, "Q4_0", failure="The engine ended.")
    result = _with(result, "Q5_K_M", quality=None)
    points = frontier.on_front(result, plan, "size") | frontier.dominated(result, plan, "size")
    assert points == {"F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_X"}


def test_the_smallest_below_the_limit_is_recommended():
    plan, result = ladder(POINTS)
    assert frontier.recommended(plan, result) == "Q4_K_M"
    assert frontier.recommended(msgspec.structs.replace(plan, limit_kl=0.01), result) == "Q6_K"
    assert frontier.recommended(msgspec.structs.replace(plan, limit_kl=0.15), result) == "Q4_0"
    assert frontier.recommended(msgspec.structs.replace(plan, limit_kl=0.001), result) == ""


def test_the_upper_end_of_the_interval_counts_and_not_the_mean():
    plan, result = ladder(POINTS)
    result = _with(result, "Q4_K_M", quality=quality_of(0.031, spread=0.7))
    assert frontier.recommended(plan, result) == "Q5_K_M"
    found = frontier.obstacles(plan, result)
    assert (found["Q4_K_M"], found["Q4_X"]) == (Obstacle.OVER_LIMIT, Obstacle.DOMINATED)  # never what is off the front


@pytest.mark.parametrize(
    ("free_mib", "right"),
    [(5000, "Q8_0"), (530 / 0.9 + 1, "Q8_0"), (530 / 0.9 - 1, ""), (100, "")],
)
def test_what_is_recommended_leaves_memory_free(free_mib, right):
    plan, result = ladder({"Q8_0": (530, 0.0014)})
    assert frontier.recommended(plan, result, round(free_mib * MIB)) == right


def test_a_large_machine_keeps_one_gibibyte_a_small_one_a_tenth():
    assert frontier.spare_bytes(64 * 2**30) == 2**30
    assert frontier.spare_bytes(4 * 2**30) == int(0.4 * 2**30)


def test_measured_memory_decides_where_it_is_known():
    plan, result = ladder({"Q8_0": (530, 0.0014)})
    result = _with(result, "Q8_0", memory=memory_of(900))
    assert frontier.recommended(plan, result, 800 * MIB) == ""
    assert frontier.obstacles(plan, result, 800 * MIB)["Q8_0"] is Obstacle.NO_ROOM
    assert frontier.recommended(plan, result, 1100 * MIB) == "Q8_0"


def test_under_three_bits_nothing_is_recommended_unasked():
    plan, result = ladder({"Q8_0": (530, 0.001), "IQ2_M": (190, 0.02)}, bits={"IQ2_M": 2.9})
    assert frontier.recommended(plan, result) == "Q8_0"
    assert frontier.recommended(plan, result, allow_few_bits=True) == "IQ2_M"
    plan, result = ladder({"X": (190, 0.02)}, bits={"X": 0.0})  # unknown is not few
    assert frontier.recommended(plan, result) == "X"


def test_every_obstacle_has_its_reason():
    plan, result = ladder({**POINTS, "IQ2": (180, 0.03), "late": (170, 0.01)}, bits={"IQ2": 2.1})
    result = _with(result, "Q2_K", quality=quality_of(0.001, non_finite=3))
    result = _with(result, "late", quality=None)
    found = frontier.obstacles(plan, result, 450 * MIB)
    assert found == {
        "Q8_0": Obstacle.NO_ROOM,
        "Q6_K": Obstacle.NO_ROOM,
        "Q5_K_M": None,
        "Q4_0": Obstacle.OVER_LIMIT,
        "Q4_K_M": Obstacle.DOMINATED,  # by IQ2, which is smaller and better
        "Q4_X": Obstacle.DOMINATED,
        "Q2_K": Obstacle.BROKEN,
        "IQ2": Obstacle.FEW_BITS,
        "late": Obstacle.UNMEASURED,
    }


def test_a_run_that_never_began_is_no_error():
    plan, result = ladder(POINTS)
    result = msgspec.structs.replace(result, runs=(RunResult(run_id="F16"),))
    assert frontier.recommended(plan, result) == ""
    assert frontier.on_front(result, plan) == {"F16"}
    assert set(frontier.obstacles(plan, result).values()) == {Obstacle.UNMEASURED}
