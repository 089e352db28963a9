"""A plan counts its own work, and survives its file."""

from __future__ import annotations

import msgspec

from app.compare.plan import SCORED_TOKENS, ComparisonPlan, RunSpec, TextSpec, WorkloadSpec

PLAN = ComparisonPlan(
    comparison_id="one",
    created_s=1.5,
    title="A model",
    reference=RunSpec(run_id="F16", label="F16", path="/m/f16.gguf"),
    candidates=(RunSpec(run_id="Q4_0", label="Q4_0", path="/m/q4_0.gguf", kv_type="q8_0"),),
    workload=WorkloadSpec(amount="quick", texts=(TextSpec(text_id="code", windows=2), TextSpec(text_id="chat"))),
)


def test_windows_of_512_tokens_have_255_scored_ones():
    assert SCORED_TOKENS == 255
    assert PLAN.workload.windows == 3
    assert PLAN.workload.scored_tokens == 765


def test_the_reference_is_the_first_run():
    assert [run.run_id for run in PLAN.runs] == ["F16", "Q4_0"]


def test_a_plan_comes_back_equal_from_its_file():
    assert msgspec.json.decode(msgspec.json.encode(PLAN), type=ComparisonPlan) == PLAN


def test_a_run_is_found_by_its_id_and_an_unknown_one_is_none():
    assert PLAN.run("Q4_0") is PLAN.candidates[0]
    assert PLAN.run("F16") is PLAN.reference
    assert PLAN.run("Q2_K") is None
