"""A comparison worked off by real workers with a scripted engine: order, failures, deaths, going on."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import msgspec
import pytest

from app.bench.bench import MachineLoad
from app.compare import reference_space, runner, speed_phase
from app.compare.files import FolderError
from app.compare.folder import NOISE_FLOOR_RUN, ComparisonFolder
from app.compare.plan import ComparisonPlan
from app.compare.results import ComparisonResult
from app.compare.runner import ComparisonRunner
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded, RunnerEvent
from tests.helpers.scoring_worker import FakeModel, make_plan, make_services


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch):
    for module in (runner, speed_phase):
        monkeypatch.setattr(module, "machine_load", lambda: MachineLoad(0.0, 0.5, 2))


def small(plan: ComparisonPlan, **changes) -> ComparisonPlan:
    """Return the plan with less work: what a test does not look at need not be done."""
    work = msgspec.structs.replace(plan.workload, speed=msgspec.structs.replace(plan.workload.speed, rounds=0))
    return msgspec.structs.replace(plan, workload=work, with_noise_floor=False, **changes)


def run(folder: ComparisonFolder, tmp_path: Path, **changes) -> tuple[ComparisonResult, list[RunnerEvent]]:
    events: list[RunnerEvent] = []
    result = ComparisonRunner(folder, make_services(tmp_path, **changes)).run(events.append)
    return result, events


def stamps(folder: ComparisonFolder, run_id: str) -> dict[str, int]:
    """Return when each scored window of a run was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder.path / "runs" / run_id).glob("window-*.npz")}


def test_everything_is_measured_in_order_and_the_reference_s_windows_are_freed(tmp_path) -> None:
    plan = make_plan(tmp_path, q8=FakeModel(noise=0.05), q4=FakeModel(noise=0.4))
    folder = ComparisonFolder.create(tmp_path / "c", plan)
    result, events = run(folder, tmp_path, predicted_bytes=lambda _run, tokens: tokens)
    assert (result.state, result.sentence != "") == ("done", True)
    assert [event.run_id for event in events if isinstance(event, RunEnded)] == ["F16", "q8", "q4"]
    begun = list(dict.fromkeys(event.run_id for event in events if isinstance(event, PhaseChanged)))
    assert begun == ["F16", NOISE_FLOOR_RUN, "q8", "q4"]
    turns = [event.run_id for event in events if isinstance(event, PhaseChanged) and event.phase == "speed"]
    assert turns == ["F16", "q8", "q4"] * 2
    assert isinstance(events[-1], ResultChanged)
    assert events[-1].result == result == folder.result()
    first, q8, q4 = result.runs
    assert result.self_check == 0.0
    assert result.noise_floor is not None
    assert q8.quality is not None and q4.quality is not None  # noqa: PT018
    assert 0 < result.noise_floor < q8.quality.kl_mean < q4.quality.kl_mean
    assert (q8.quality.tokens, first.quality) == (765, None)
    assert first.perplexity == pytest.approx(q8.quality.reference_perplexity)
    assert [one.first_divergence for one in first.answers] == [None, None]
    assert len(q4.answers[0].forced[0].top) == 5
    assert all(one.choices is not None and one.memory is not None for one in result.runs)
    assert q4.speed is not None and len(q4.speed.decode_tokens_per_s.values) == 2  # noqa: PT018
    assert q4.memory is not None and q4.memory.predicted_bytes == 2048  # noqa: PT018
    assert list((folder.path / "reference").iterdir()) == []
    conditions = folder.conditions()
    assert (conditions.threads, conditions.kept_tokens, len(conditions.tokens_sha256)) == (2, 0, 64)
    assert [conditions.machine[0].moment, conditions.machine[-1].moment] == ["before", "after"]
    # and once it is done, there is nothing left to do: no worker is started
    again, events = run(folder, tmp_path)
    assert [event for event in events if isinstance(event, PhaseChanged)] == []
    assert again.runs == result.runs


def test_what_cannot_be_compared_is_a_sentence_each_and_the_rest_goes_on(tmp_path) -> None:
    (tmp_path / "broken.json").write_bytes(b"{")
    plan = small(
        make_plan(
            tmp_path,
            vocabulary=FakeModel(tokenizer_hash="other"),
            model=FakeModel(architecture="other"),
            context=FakeModel(context_tokens=300),
            damaged=FakeModel(fault="not_a_model", fault_kind="load"),
            q4=FakeModel(noise=0.3),
        )
    )
    folder = ComparisonFolder.create(tmp_path / "c", plan)
    result, _events = run(folder, tmp_path)
    said = {one.run_id: one.failure for one in result.runs if one.failure}
    assert set(said) == {"vocabulary", "model", "context", "damaged"}
    assert "another vocabulary" in said["vocabulary"]
    assert "another model" in said["model"]
    assert "300 tokens" in said["context"]
    assert "is not a model file" in said["damaged"]
    assert result.state == "done"
    found = result.run("q4")
    assert found is not None
    assert found.quality is not None
    assert list((folder.path / "reference").iterdir()) == []  # nothing of it would pass by itself


@pytest.mark.parametrize("kind", ["load", "compare", "answer"])
def test_a_worker_that_dies_is_told_and_the_next_attempt_goes_on_behind_the_last_window(tmp_path, kind) -> None:
    dying = FakeModel(noise=0.3, fault="kill", fault_kind=kind, fault_at=0 if kind == "load" else 1)
    dying = msgspec.structs.replace(dying, fault_once=str(tmp_path / "died"))
    plan = small(make_plan(tmp_path, dying=dying, q8=FakeModel(noise=0.05)))
    folder = ComparisonFolder.create(tmp_path / "c", plan)
    result, events = run(folder, tmp_path)
    assert result.state == "done"
    found = result.run("dying")
    assert found is not None
    assert "The system ended the engine" in found.failure
    assert RunEnded("dying", found.failure) in events
    other = result.run("q8")
    assert other is not None and other.quality is not None and not other.failure  # noqa: PT018
    assert folder.has_reference(0)  # kept: another attempt may need it
    before = stamps(folder, "dying")
    assert len(before) == {"load": 0, "compare": 1, "answer": 3}[kind]
    result, events = run(folder, tmp_path)
    found = result.run("dying")
    assert found is not None and found.quality is not None and not found.failure  # noqa: PT018
    assert found.quality.tokens == 765
    assert before.items() <= stamps(folder, "dying").items()
    assert {event.run_id for event in events if isinstance(event, PhaseChanged)} == {"dying"}
    assert not folder.has_reference(0)


def test_a_reference_that_dies_ends_the_attempt_and_the_next_one_goes_on(tmp_path) -> None:
    once = str(tmp_path / "died")
    reference = FakeModel(fault="kill", fault_kind="score", fault_at=1, fault_once=once)
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, reference=reference, q4=FakeModel())))
    result, events = run(folder, tmp_path)
    assert result.state == "stopped"
    assert "The system ended the engine" in result.warnings[0]
    assert folder.has_reference(0)
    assert not folder.has_reference(1)
    assert [event.run_id for event in events if isinstance(event, RunEnded)] == ["F16"]
    before = folder.reference_path(0).stat().st_mtime_ns, stamps(folder, "F16")
    result, _events = run(folder, tmp_path, keeps_reference=True)
    assert (result.state, result.warnings) == ("done", folder.material().notes)
    assert folder.reference_path(0).stat().st_mtime_ns == before[0]
    assert before[1].items() <= stamps(folder, "F16").items()


def test_a_window_that_cannot_be_read_is_written_anew_by_the_next_attempt(tmp_path) -> None:
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, q4=FakeModel(noise=0.3))))
    damaged = threading.Event()

    def damage(event: RunnerEvent) -> None:
        if isinstance(event, RunEnded) and event.run_id == "F16":
            folder.reference_path(1).write_bytes(b"cut")
            damaged.set()

    result = ComparisonRunner(folder, make_services(tmp_path)).run(damage)
    assert damaged.is_set()
    found = result.run("q4")
    assert found is not None
    assert "log-probabilities" in found.failure
    result, _events = run(folder, tmp_path)
    found = result.run("q4")
    assert found is not None and found.quality is not None  # noqa: PT018
    assert found.quality.tokens == 765


def test_a_stop_ends_soon_keeps_everything_and_goes_on(tmp_path) -> None:
    plan = small(make_plan(tmp_path, q8=FakeModel(noise=0.05), q4=FakeModel(noise=0.3)))
    folder = ComparisonFolder.create(tmp_path / "c", plan)
    stopping = ComparisonRunner(folder, make_services(tmp_path))

    def stop(event: RunnerEvent) -> None:
        if isinstance(event, PhaseChanged) and (event.run_id, event.phase, event.done) == ("q8", "windows", 2):
            stopping.stop()

    result = stopping.run(stop)
    assert (result.state, folder.windows_done("q8")) == ("stopped", (0, 1))
    assert result.run("q4") is None
    assert folder.result() == result
    result, events = run(folder, tmp_path)
    assert result.state == "done"
    assert "F16" not in {event.run_id for event in events if isinstance(event, PhaseChanged)}


def test_a_folder_that_takes_no_more_ends_the_attempt_in_words_and_the_next_goes_on(tmp_path, monkeypatch) -> None:
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, q8=FakeModel(), q4=FakeModel())))
    keep = folder.save_scores
    full = OSError(errno.ENOSPC, "No space left on device")

    def save_scores(run_id, number, scores) -> None:
        if (run_id, number) == ("q8", 1):
            from app.compare.files import worded

            with worded(folder.path):
                raise full
        keep(run_id, number, scores)

    monkeypatch.setattr(folder, "save_scores", save_scores)
    result, _events = run(folder, tmp_path)
    assert result.state == "stopped"
    assert "No space left on device" in result.warnings[0]
    monkeypatch.undo()
    for module in (runner, speed_phase):
        monkeypatch.setattr(module, "machine_load", lambda: MachineLoad(0.0, None, 2))
    result, _events = run(ComparisonFolder.open(folder.path), tmp_path)
    assert (result.state, [one.failure for one in result.runs]) == ("done", ["", "", ""])


def test_a_disk_without_room_is_said_before_anything_is_written(tmp_path, monkeypatch) -> None:
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, q4=FakeModel())))
    monkeypatch.setattr(reference_space, "MARGIN_BYTES", 2**62)
    result, _events = run(folder, tmp_path)
    assert result.state == "stopped"
    assert "take" in result.warnings[0] and "are free" in result.warnings[0]  # noqa: PT018
    assert list((folder.path / "reference").iterdir()) == []


def test_a_large_vocabulary_is_kept_in_part_and_that_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reference_space, "MOST_BYTES", 1000)
    monkeypatch.setattr(reference_space, "KEPT_TOKENS", 16)
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, q4=FakeModel())))
    result, _events = run(folder, tmp_path)
    assert folder.conditions().kept_tokens == 16
    assert any("lower bound" in warning for warning in result.warnings)


def test_an_imported_reference_is_not_loaded_and_its_windows_stay(tmp_path) -> None:
    plan = small(make_plan(tmp_path, q4=FakeModel(noise=0.3)))
    folder = ComparisonFolder.create(tmp_path / "c", plan)
    run(folder, tmp_path, keeps_reference=True)  # what an import puts into a folder
    for path in (folder.path / "runs" / "q4").iterdir():
        path.unlink()
    (tmp_path / "f16.json").unlink()
    speed = msgspec.structs.replace(plan.workload.speed, rounds=1)
    plan = msgspec.structs.replace(
        plan,
        reference_import="x",
        with_noise_floor=True,
        workload=msgspec.structs.replace(plan.workload, speed=speed),
    )
    result, events = run(ComparisonFolder(folder.path, plan), tmp_path)
    assert {event.run_id for event in events if isinstance(event, PhaseChanged)} == {"q4"}
    found = result.run("q4")
    assert found is not None and found.quality is not None and found.speed is not None  # noqa: PT018
    assert (result.state, result.noise_floor, folder.has_reference(2)) == ("done", None, True)
    folder.reference_path(2).unlink()
    (folder.path / "runs" / "q4" / "window-0003.npz").unlink()
    result, _events = run(ComparisonFolder(folder.path, plan), tmp_path)
    assert result.state == "stopped"
    assert "import them again" in result.warnings[0]


def test_two_at_once_are_refused(tmp_path) -> None:
    folder = ComparisonFolder.create(tmp_path / "c", small(make_plan(tmp_path, q4=FakeModel())))
    other = ComparisonFolder.open(folder.path)
    other.take()
    with pytest.raises(FolderError, match="being run by another"):
        run(folder, tmp_path)
    other.release()
