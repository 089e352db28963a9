"""What the compare screen asks of the program, with the real folders, texts and references; no engine runs here."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from app.compare.duration import Probe
from app.compare.folder import comparisons_root
from app.compare.results import ComparisonResult
from app.errors import AppError
from app.models.entry import ModelDefaults
from tests.helpers import compare_values as values
from tests.helpers.echo_window import echo_context
from tests.helpers.model_entries import ladder
from ui import compare_services
from ui.compare_services import CompareServices, row_of
from ui.models.compare_choice import Candidate, SetupChoice

NAME = "Llama-3.1-8B-Instruct"
ENTRIES = {entry.key: entry for entry in ladder()}
CHOICE = SetupChoice(
    title=NAME,
    reference_key=f"{NAME}:F16",
    reference_reason="F16 is best.",
    candidates=(Candidate(f"{NAME}:Q8_0"), Candidate(f"{NAME}:Q4_K_M")),
    amount="quick",
)


@pytest.fixture
def context():
    made = echo_context(list(ENTRIES.values()))
    made.backend_of = lambda _entry: "llama_cpp"
    yield made
    made.close()


@pytest.fixture
def services(context):
    return CompareServices(context)


def test_a_comparison_is_made_listed_opened_and_deleted(services, context):
    plan = services.create(CHOICE, ENTRIES)
    assert (comparisons_root(context.paths.data) / plan.comparison_id / "plan.json").is_file()
    [row] = services.rows()
    assert (row.comparison_id, row.title, row.state, row.done_runs, row.all_runs) == (
        *(plan.comparison_id, NAME, "planned", 0, 3),
    )
    assert services.open(plan.comparison_id) == (plan, ComparisonResult(comparison_id=plan.comparison_id))
    assert services.result_path(plan.comparison_id).name == "comparison.json"
    services.delete(plan.comparison_id)
    assert services.rows() == []


def test_what_a_dead_program_left_running_has_stopped(services):
    assert row_of(values.plan(), values.result(state="running")).state == "stopped"


def test_a_damaged_comparison_is_listed_with_its_fault_and_can_be_deleted(services, context):
    folder = comparisons_root(context.paths.data) / "broken"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("no plan", encoding="utf-8")
    [row] = services.rows()
    assert row.fault
    with pytest.raises(AppError):
        services.open("broken")
    services.delete("broken")
    assert services.rows() == []


def test_a_reference_is_proposed_with_its_reason(services):
    proposed = services.propose(list(ENTRIES.values()))
    assert proposed.reference_key in ENTRIES
    assert proposed.reason
    assert set(proposed.references) == set(ENTRIES)
    assert proposed.with_kv == frozenset(ENTRIES)
    chosen = services.propose(list(ENTRIES.values()), f"{NAME}:Q6_K")
    assert (chosen.reference_key, chosen.reason) == (f"{NAME}:Q6_K", "Your choice.")
    assert chosen.warnings
    assert services.propose([replace(ladder()[0], fault="It is gone.")]) is None


def test_the_work_is_outlined_and_a_bad_text_refused(services, tmp_path):
    assert services.outline(CHOICE).work.startswith("510 scored tokens of 2 texts")
    short = tmp_path / "notes.txt"
    short.write_text("Too short.", encoding="utf-8")
    with pytest.raises(AppError, match="too short"):
        services.outline(replace(CHOICE, text="own", own_path=str(short)))
    with pytest.raises(AppError, match="too little in your chats"):
        services.create(replace(CHOICE, text="chats"), ENTRIES)
    assert services.rows() == []


def test_own_text_takes_the_place_of_the_bundled_ones(services, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("A lighthouse stands at the sea. " * 400, encoding="utf-8")
    plan = services.create(replace(CHOICE, text="own", own_path=str(text)), ENTRIES)
    assert [one.path for one in plan.workload.texts] == [str(text)]


class FakeEngine:
    """Takes the place of a worker."""

    def __init__(self, open_log, is_stopped):
        self.is_stopped = is_stopped

    def close(self):
        pass


@pytest.fixture
def probes(monkeypatch):
    asked = []

    def probe(engine, request):
        if engine.is_stopped():
            raise compare_services.StoppedError
        asked.append(request.path)
        return Probe(prefill_tokens_per_s=100.0, decode_tokens_per_s=15.0, load_s=1.0, size_bytes=10**9)

    monkeypatch.setattr(compare_services, "EngineRun", FakeEngine)
    monkeypatch.setattr(compare_services, "probe_speed", probe)
    return asked


def test_only_what_is_no_giant_is_measured_and_each_once(services, probes):
    outline = services.predict(CHOICE, ENTRIES, threading.Event())
    assert "minute" in outline.time or "second" in outline.time
    assert probes == [str(ENTRIES[f"{NAME}:Q4_K_M"].path)]  # F16 takes 15 GiB
    services.predict(CHOICE, ENTRIES, threading.Event())
    assert len(probes) == 1


def test_an_ended_prediction_has_no_answer(services, probes):
    cancel = threading.Event()
    cancel.set()
    assert services.predict(CHOICE, ENTRIES, cancel) is None
    assert probes == []


def test_a_normal_amount_that_takes_too_long_is_made_smaller_and_says_so(services, probes, monkeypatch):
    slow = Probe(prefill_tokens_per_s=8.0, decode_tokens_per_s=1.0, load_s=1.0, size_bytes=10**9)
    monkeypatch.setattr(compare_services, "probe_speed", lambda *_asked: slow)
    choice = replace(CHOICE, amount="normal")
    outline = services.predict(choice, ENTRIES, threading.Event())
    assert "instead of 4" in outline.work
    assert services.create(choice, ENTRIES).workload.windows == 2


def test_the_chat_keeps_the_kv_cache_as_the_run_did(services, context):
    entry = context.library.entries()[0]
    exact = values.spec("Q2_K", 3.16, 2.95, key=entry.key)
    assert services.keep_kv_type(entry, exact) is entry
    kept = services.keep_kv_type(entry, values.spec("Q2_K", 3.16, 2.95, key=entry.key, kv_type="q8_0"))
    assert kept.defaults == ModelDefaults(kv_type="q8_0")
    assert context.load_params(kept).kv_type == "q8_0"
