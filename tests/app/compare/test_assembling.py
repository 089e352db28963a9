"""From a folder to a result: what is measured counts, what is not is None, what must be known is said."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from app.compare.assembling import assemble, scores_of
from app.compare.folder import NOISE_FLOOR_RUN, ComparisonFolder
from app.compare.results import Memory
from app.compare.run_files import Conditions, Material, RunFacts, RunFailure, SpeedRound
from app.compare.token_scores import TokenScores
from backends.errors import NoticeCode
from tests.helpers.scoring_worker import FakeModel, make_plan


@pytest.fixture
def folder(tmp_path) -> ComparisonFolder:
    return ComparisonFolder.create(tmp_path / "c", make_plan(tmp_path, q8=FakeModel(), q4=FakeModel(), q2=FakeModel()))


def keep_scores(folder, run_id: str, kl: float, windows: int = 2, *, is_reference: bool = False) -> None:
    count = 100
    random = np.random.default_rng(1)
    for number in range(windows):
        theirs = random.uniform(-3, -1, count).astype(np.float32)
        ids = np.arange(count, dtype=np.int32)
        none = np.empty(0, np.float32)
        scored = TokenScores(
            logprobs=theirs - np.float32(kl),
            reference_logprobs=none if is_reference else theirs,
            kl=none if is_reference else (np.float32(kl) * random.uniform(0.5, 1.5, count)).astype(np.float32),
            cosine=none,
            best_ids=ids,
            reference_best_ids=np.empty(0, np.int32) if is_reference else ids,
            non_finite=np.zeros(count, np.bool_),
            window=np.full(count, number, np.int32),
        )
        folder.save_scores(run_id, number, scored)


def keep_run(folder, run_id: str, kl: float, total_bytes: int, speed: float) -> None:
    folder.save(run_id, "facts", RunFacts(device="CPU", threads=2, context_tokens=2048, load_s=0.5))
    keep_scores(folder, run_id, kl, is_reference=run_id == "F16")
    memory = Memory(
        weights_bytes=1, kv_reserved_bytes=1, kv_used_bytes=1, compute_bytes=1, rest_bytes=1, total_bytes=total_bytes
    )
    folder.save(run_id, "memory", memory)
    rounds = [
        SpeedRound(number=n, prefill_tokens_per_s=100.0 * n, decode_tokens_per_s=speed * n, ttft_s=0.1)
        for n in (1, 2, 3)
    ]
    folder.save(run_id, "speed", tuple(rounds))


def test_before_anything_was_measured_nothing_is_claimed(folder) -> None:
    result = assemble(folder, "running")
    assert (result.runs, result.noise_floor, result.self_check, result.recommended) == ((), None, None, "")


def test_figures_verdicts_front_and_recommendation_come_together(folder) -> None:
    for run_id, kl, size, speed in (
        ("F16", 0.0, 900, 10),
        ("q8", 0.001, 500, 20),
        ("q4", 0.04, 300, 30),
        ("q2", 0.4, 200, 5),
    ):
        keep_run(folder, run_id, kl, size, speed)
    keep_scores(folder, NOISE_FLOOR_RUN, 0.0001)
    result = assemble(folder, "done", free_bytes=10**6)
    assert [run.verdict_code for run in result.runs] == ["", "indistinguishable", "small_differences", "heavy"]
    assert [run.on_front for run in result.runs] == [True] * 4
    assert result.noise_floor == pytest.approx(0.0001, rel=0.1)
    assert result.recommended == "q4"
    assert "q4" in result.sentence
    assert [(one.first, one.second, one.is_real) for one in result.differences] == [
        ("q8", "q4", True),
        ("q4", "q2", True),
    ]
    reference, _q8, q4, _q2 = result.runs
    assert q4.speed is not None and q4.speed.decode_ratio is not None  # noqa: PT018
    assert q4.speed.decode_ratio.median == pytest.approx(3.0)
    assert q4.speed.decode_tokens_per_s.median == pytest.approx(60)
    assert reference.speed is not None and reference.speed.decode_ratio is None  # noqa: PT018
    assert (q4.load_s, q4.threads, q4.device) == (0.5, 2, "CPU")


def test_ratios_are_of_rounds_with_the_same_number(folder) -> None:
    keep_run(folder, "F16", 0.0, 900, 10)
    keep_run(folder, "q4", 0.1, 300, 30)
    folder.save("q4", "speed", folder.rounds("q4")[1:])
    found = assemble(folder, "running").run("q4")
    assert found is not None and found.speed is not None and found.speed.decode_ratio is not None  # noqa: PT018
    assert found.speed.decode_ratio.values == pytest.approx((3.0, 3.0))


def test_a_run_that_failed_keeps_what_it_measured(folder) -> None:
    folder.save("q4", "facts", RunFacts())
    keep_scores(folder, "q4", 0.04, windows=1)
    folder.save("q4", "failure", RunFailure(message="It ended.", hint="Go on."))
    found = assemble(folder, "running").run("q4")
    assert found is not None
    assert (found.failure, found.on_front) == ("It ended.", False)
    assert found.quality is not None and found.quality.tokens == 100  # noqa: PT018


def test_a_run_that_never_loaded_is_there_with_its_failure(folder) -> None:
    folder.save("q8", "failure", RunFailure(message="No."))
    assert [run.run_id for run in assemble(folder, "running").runs] == ["q8"]


def test_choices_count_when_all_are_made_and_flips_are_against_the_reference(folder) -> None:
    for run_id, picks in (("F16", (0, 1)), ("q8", (1, 1)), ("q4", (0,))):
        folder.save(run_id, "facts", RunFacts())
        folder.save(run_id, "choices", picks)
    result = assemble(folder, "running")
    first, q8, q4 = result.runs
    assert first.choices is not None and q8.choices is not None  # noqa: PT018
    assert (first.choices.accuracy, q8.choices.accuracy, q8.choices.flips) == (1.0, 0.5, 1)
    assert q4.choices is None


def test_what_a_person_must_know_is_said_once(folder) -> None:
    folder.save_material(Material(tokenizer_hash="h", vocabulary_tokens=3, notes=("Short.",)))
    folder.save_conditions(Conditions(threads=4, kept_tokens=512, self_check=0.01))
    facts = RunFacts(threads=2, context_tokens=1024, notices=(NoticeCode.GPU_NOT_USED, NoticeCode.CONTEXT_CLAMPED))
    folder.save("q4", "facts", facts)
    one = SpeedRound(number=1, prefill_tokens_per_s=1, decode_tokens_per_s=1, ttft_s=1, is_noisy=True)
    folder.save("q4", "speed", (one, one))
    said = assemble(folder, "running", ["First.", "First."]).warnings
    assert said[0] == "First."
    assert len(set(said)) == len(said)
    for words in (
        "Short.",
        "lower bound",
        "gives 0.0100 and not 0",
        "2 threads and the reference with 4",
        "1,024 tokens, not 2,048",
        "runs on the CPU",
        "speeds are uncertain",
    ):
        assert sum(words in one for one in said) == 1, words


def test_a_note_of_the_reference_stays_on_the_result(folder) -> None:
    plan = folder.plan
    noted = msgspec.structs.replace(plan, reference=msgspec.structs.replace(plan.reference, note="Dequantized."))
    assert "Dequantized." in assemble(ComparisonFolder(folder.path, noted), "running").warnings


def test_scores_of_all_windows_are_one(folder) -> None:
    keep_scores(folder, "q4", 0.1, windows=3)
    assert len(scores_of(folder, "q4")) == 300
    assert len(scores_of(folder, "q2")) == 0
