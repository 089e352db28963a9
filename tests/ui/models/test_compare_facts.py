"""Figures and conditions as facts: each has a unit, nothing that was not measured is among them."""

from __future__ import annotations

from tests.helpers import compare_values as values
from ui.models.compare_facts import check_about, check_title, condition_facts, run_facts


def by_title(facts):
    return {fact.title: fact.value.replace("\u00a0", " ") for fact in facts}


def test_a_run_is_told_in_all_its_figures():
    plan = values.plan()
    facts = by_title(run_facts(plan.candidates[3], values.run("Q4_K_M", choices=values.choices())))
    assert facts["KL median"] == "0.0104"
    assert facts["KL 99 %"] == "0.3443"
    assert "KL 99.9 %" not in facts  # too few tokens
    assert facts["perplexity ratio"] == "1.0313 ± 0.0063"
    assert facts["Δp mean"] == "−0.6 %"
    assert facts["same token"] == "91.9 % ± 0.9 %"
    assert facts["questions right"] == "62.0 % (48.0 % to 74.0 %)"
    assert facts["flips"] == "4 (3 worse, 1 better)"
    assert facts["writing"] == "13.0 tokens/s (12.4 to 13.5)"
    assert facts["load time"] == "2.29 s"
    assert facts["memory, weights"] == "4.58 GiB"


def test_what_was_not_measured_is_left_out():
    plan = values.plan()
    failed = values.run("Q8_0", quality=None, perplexity=None, speed=None, memory=None, load_s=None)
    assert run_facts(plan.candidates[0], failed) == []


def test_the_reference_has_a_perplexity_of_its_own():
    facts = by_title(run_facts(values.plan().reference, values.run("F16")))
    assert facts["perplexity"] == "6.23"
    assert "perplexity ratio" not in facts
    assert "reading, against the reference" not in facts


def test_tensors_of_another_type_are_counted():
    spec = values.spec("Q4_K_M", 4.89, 4.58, fallback_tensors=12)
    assert by_title(run_facts(spec, values.run("Q4_K_M")))["tensors of another type"] == "12"


def test_conditions_say_what_makes_the_figures_comparable():
    plan = values.plan()
    facts = by_title(condition_facts(plan, values.result(plan)))
    assert facts["Reference"] == "F16: 16 bits for a weight, as models are published."
    assert facts["Text"].startswith("Encyclopaedia, 2 windows (CC BY-SA 4.0); Chat, 1 window (CC0)")
    assert facts["Speed"] == "512 tokens read, 64 written, 3 rounds that count; runs take turns"
    assert facts["Threads"] == "8"
    assert facts["Tokenizer"] == "ab12cd34ef56"
    assert facts["Self-check"] == "KL 0.0000"
    assert facts["Noise floor"] == "KL 0.000400"


def test_a_note_on_a_run_stays_a_condition():
    reference = values.spec("F16", 16.0, 14.96, note="Its weights lie on a 4-bit grid.")
    plan = values.plan(reference=reference, reference_reason="")
    facts = by_title(condition_facts(plan, values.result(plan)))
    assert facts["F16"] == "Its weights lie on a 4-bit grid."
    assert facts["Reference"] == "F16."


def test_checks_say_how_they_were_made():
    codes = ("finite", "accuracy", "cosine", "choices", "speed", "memory", "quiet")
    assert all(check_about(code).endswith(".") for code in codes)
    assert check_about("another") == ""
    assert check_title("memory") == "memory"
    assert check_title("finite") == ""
