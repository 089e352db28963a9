"""From models and KV types to the runs of a plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.compare import planning
from app.compare.planning import exact_kv, make_plan
from app.compare.provenance import Provenance
from app.compare.texts import bundled_texts
from app.compare.workload import preset
from app.errors import AppError
from app.models.entry import ModelEntry


@pytest.fixture(autouse=True)
def no_files(monkeypatch):
    proposed = planning.propose_reference
    monkeypatch.setattr(
        planning, "propose_reference", lambda entries: proposed(entries, None, lambda _path: Provenance(False, ""))
    )


def entry(quantization: str, size_bytes: int = 100) -> ModelEntry:
    return ModelEntry(
        key=f"m:{quantization}", name="M", path=Path(f"/{quantization}.gguf"), quantization=quantization,
        size_bytes=size_bytes, bits_per_weight=8.0,
    )  # fmt: skip


def plan(candidates, kv_types=(), backend="llama_cpp"):
    work = preset("quick", bundled_texts())
    return make_plan(entry("F16"), candidates, kv_types, work, lambda _entry: backend, threads=2)


def names(found) -> list[tuple[str, str]]:
    return [(run.run_id, run.kv_type) for run in found.candidates]


def test_without_kv_types_each_candidate_runs_once_and_exactly() -> None:
    found = plan([entry("Q8_0"), entry("Q4_0")])
    assert names(found) == [("Q8_0", "f16"), ("Q4_0", "f16")]
    assert (found.reference.run_id, found.reference.kv_type, found.title, found.threads) == ("F16", "f16", "M", 2)
    assert "16 bits" in found.reference_reason


def test_each_kv_type_is_a_run_of_its_own_and_the_reference_s_weights_too() -> None:
    found = plan([entry("Q4_0")], ("f16", "q8_0"))
    assert names(found) == [("F16-kv-q8_0", "q8_0"), ("Q4_0", "f16"), ("Q4_0-kv-q8_0", "q8_0")]
    assert names(plan([], ("q8_0",))) == [("F16-kv-q8_0", "q8_0")]


def test_nothing_to_compare_is_a_sentence() -> None:
    for candidates in ([], [entry("F16")]):
        with pytest.raises(AppError, match="nothing to compare"):
            plan(candidates)


def test_a_kv_type_that_the_backend_has_not_is_refused() -> None:
    with pytest.raises(AppError, match="cannot keep the KV cache as q9"):
        plan([entry("Q4_0")], ("q9",))


def test_what_a_reference_lacks_stays_on_it() -> None:
    work = preset("quick", bundled_texts())
    found = make_plan(entry("Q4_0"), [entry("Q2_K")], (), work, lambda _entry: "llama_cpp")
    assert "quantization itself" in found.reference.note
    assert exact_kv("llama_cpp") == "f16"
