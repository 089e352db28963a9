"""From ticks to a plan: names are unique and file names, copies count once, the exact KV cache is the backend's."""

from __future__ import annotations

from dataclasses import replace

from app.compare.folder import check_plan
from app.compare.plan import TextSpec, WorkloadSpec
from tests.helpers.model_entries import entry, ladder
from ui.models.compare_choice import Candidate, SetupChoice, comparable, exact_kv, has_smaller_kv, make_plan, single

WORK = WorkloadSpec(amount="quick", texts=(TextSpec(text_id="chat"),))


def test_a_model_can_be_compared_from_two_quantizations_on():
    entries = ladder()[:2]
    lonely = entry("Qwen3-8B", "Q4_K_M", 4.9)
    broken = replace(entry("Gemma", "Q4_0", 4.5), fault="It is gone.")
    whole = entry("Gemma", "Q8_0", 8.5)
    assert [model.name for model in comparable([*entries, lonely, broken, whole])] == ["Llama-3.1-8B-Instruct"]


def test_copies_count_once():
    first = entry("Qwen3-8B", "Q4_K_M", 4.9, identity="sha256:1")
    copy = replace(first, key="ollama/x")
    assert single([first, copy]) == [first]
    assert comparable([first, copy]) == []


def test_a_plan_holds_what_was_ticked():
    entries = {one.key: one for one in ladder()}
    f16, q4 = "Llama-3.1-8B-Instruct:F16", "Llama-3.1-8B-Instruct:Q4_K_M"
    choice = SetupChoice(
        title="Llama-3.1-8B-Instruct",
        reference_key=f16,
        reference_reason="F16 is best.",
        reference_warnings=("It was requantized.", "Beware."),
        candidates=(Candidate(f16, "q8_0"), Candidate(q4), Candidate(q4, "q8_0")),
        limit_kl=0.15,
    )
    plan = make_plan(choice, entries, WORK, lambda _entry: "llama_cpp", "one")
    check_plan(plan)
    assert [run.label for run in plan.runs] == ["F16", "F16 · KV q8_0", "Q4_K_M", "Q4_K_M · KV q8_0"]
    assert [run.kv_type for run in plan.runs] == ["f16", "q8_0", "f16", "q8_0"]
    assert plan.reference.note == "It was requantized. Beware."
    assert plan.candidates[1].note == ""
    assert (plan.limit_kl, plan.comparison_id, plan.workload) == (0.15, "one", WORK)
    assert plan.reference.size_bytes == entries[f16].size_bytes


def test_two_files_of_one_quantization_have_two_names():
    first = entry("Qwen3-8B", "Q4_K_M", 4.9)
    second = replace(first, key="other/Qwen3-8B:Q4_K_M", identity="provisional:2")
    choice = SetupChoice(title="Qwen3-8B", reference_key=first.key, candidates=(Candidate(second.key),))
    plan = make_plan(choice, {one.key: one for one in (first, second)}, WORK, lambda _entry: "llama_cpp")
    check_plan(plan)
    assert len({run.run_id for run in plan.runs}) == 2
    assert len({run.label for run in plan.runs}) == 2


def test_kv_types_are_the_backends():
    assert exact_kv("llama_cpp") == "f16"
    assert has_smaller_kv("llama_cpp")
    assert not has_smaller_kv("torch")
    assert exact_kv("no such backend") == "f16"
    assert not has_smaller_kv("no such backend")
