"""The plan that the scheduler hands to the engine."""

from __future__ import annotations

import dataclasses

import pytest

from backends import protocol
from backends.torch_engine import scheduler
from backends.torch_engine.sequence import Sequence
from backends.torch_engine.step_plan import Draft, PlanRow, StepPlan


def test_a_plan_cannot_be_changed_once_it_is_made() -> None:
    sequence = Sequence(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("x")), [1, 2])
    plan = StepPlan((PlanRow(sequence, 0, 2, True),))
    assert (plan.copies, plan.preempted) == ((), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.rows = ()  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.rows[0].count = 1  # type: ignore[misc]


def test_drafts_of_plans_share_nothing() -> None:
    first, second = Draft(8), Draft(8)
    assert first.rows is not second.rows
    assert first.preempted is not second.preempted


def test_the_scheduler_s_module_offers_what_its_caller_needs() -> None:
    assert (scheduler.PlanRow, scheduler.StepPlan) == (PlanRow, StepPlan)
