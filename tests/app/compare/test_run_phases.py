"""The phases of one run: each piece is kept at once, and a phase goes on where the folder says it stands."""

from __future__ import annotations

import numpy as np
import pytest

from app.bench.engine_run import EngineRefusedError, Written
from app.compare.folder import ComparisonFolder
from app.compare.run_files import ChoiceTokens, Material, PromptTokens, WindowTokens
from app.compare.run_phases import RunPhases, first_divergence
from backends import protocol
from backends.errors import ErrorCode
from tests.helpers.scoring_worker import FakeModel, make_plan

MATERIAL = Material(
    tokenizer_hash="h",
    vocabulary_tokens=256,
    windows=tuple(WindowTokens(text_id="t", number=n, token_ids=(n,) * 512) for n in range(3)),
    prompts=(PromptTokens(prompt_id="a", token_ids=(1,)), PromptTokens(prompt_id="b", token_ids=(2,))),
    choices=(
        ChoiceTokens(choice_id="one", question_ids=(1,), answers=((5,), (6, 6)), answer_bytes=(1, 4)),
        ChoiceTokens(choice_id="two", question_ids=(1,), answers=((7,), (8,)), answer_bytes=(1, 1)),
    ),
)
LOGPROBS = {5: -2.0, 6: -1.5, 7: float("nan"), 8: -9.0}


class Worker:
    """Answers from tables, and remembers what it was asked."""

    def __init__(self, answers: dict[int, tuple[int, ...]] | None = None, damaged: int = -1) -> None:
        self.asked: list[tuple] = []
        self._answers = answers or {1: (10, 11, 12), 2: (20,)}
        self._damaged = damaged

    def score_window(self, token_ids, *, write_path="", reference_path="", keep_top=0) -> protocol.ScoreDone:
        number = token_ids[0]
        self.asked.append(("write" if write_path else "compare" if reference_path else "score", number, keep_top))
        if reference_path and number == self._damaged:
            code = ErrorCode.REFERENCE_UNREADABLE
            raise EngineRefusedError(protocol.EngineFailed(code=code, parameters={"path": "x", "detail": "cut"}))
        if write_path:
            with open(write_path, "wb") as file:  # noqa: PTH123 - as an engine does
                file.write(b"x")
        floats, ids = np.full(255, -1, "<f4").tobytes(), np.full(255, 3, "<i4").tobytes()
        compared = {}
        if reference_path:
            compared = {
                "reference_logprobs": floats,
                "reference_best_ids": ids,
                "kl": np.full(255, 0.25, "<f4").tobytes(),
                "cosine": np.ones(255, "<f4").tobytes(),
            }
        return protocol.ScoreDone(
            request_id=1, token_ids=ids, logprobs=floats, best_ids=ids, non_finite=bytes(255), **compared
        )

    def score_answer(self, prompt_ids, answer_ids, top) -> protocol.ScoreDone:
        self.asked.append(("answer", prompt_ids, answer_ids))
        count = len(answer_ids)
        likeliest = [answer_ids[0], *([99] * (count - 1))]  # only the first token would be chosen
        top_ids = np.asarray([[one, one + 1] for one in likeliest], "<i4") if top else np.empty(0, "<i4")
        values = np.full(top_ids.shape, np.log(0.5), "<f4")
        logprobs = np.asarray([LOGPROBS.get(one, -1.0) for one in answer_ids], "<f4")
        return protocol.ScoreDone(
            request_id=1,
            logprobs=logprobs.tobytes(),
            best_ids=np.asarray(likeliest, "<i4").tobytes(),
            top_ids=top_ids.tobytes(),
            top_logprobs=values.tobytes(),
            non_finite=bytes(count),
        )

    def answer(self, prompt_ids, max_tokens) -> Written:
        self.asked.append(("generate", prompt_ids, max_tokens))
        return Written("text", self._answers[prompt_ids[0]], protocol.RequestFigures())

    def texts_of(self, token_ids) -> list[str]:
        return [f"<{token_id}>" for token_id in token_ids]


@pytest.fixture
def folder(tmp_path) -> ComparisonFolder:
    return ComparisonFolder.create(tmp_path / "c", make_plan(tmp_path, q4=FakeModel()))


def phases(folder, worker, run_id="F16", told=None) -> RunPhases:
    return RunPhases(folder, MATERIAL, worker, run_id, lambda *what: told.append(what) if told is not None else None)


def test_the_reference_writes_what_is_needed_and_scores_each_window_once(folder) -> None:
    worker, told = Worker(), []
    phases(folder, worker, told=told).write_windows(0, (0, 1, 2))
    assert worker.asked == [("write", 0, 0), ("write", 1, 0), ("write", 2, 0)]
    assert told[-1] == ("windows", 3, 3)
    assert folder.windows_done("F16") == (0, 1, 2)
    # a window is gone, and only a later run still needs it: it is written again, and not scored a second time
    folder.reference_path(0).unlink()
    folder.reference_path(2).unlink()
    before = (folder.path / "runs/F16/window-0003.npz").stat().st_mtime_ns
    worker = Worker()
    phases(folder, worker).write_windows(512, (2,))
    assert worker.asked == [("write", 2, 512)]
    assert (folder.path / "runs/F16/window-0003.npz").stat().st_mtime_ns == before


def test_windows_that_nobody_needs_are_scored_and_not_written(folder) -> None:
    worker = Worker()
    phases(folder, worker).write_windows(0, ())
    assert [one[0] for one in worker.asked] == ["score"] * 3
    assert not folder.has_reference(0)


def test_a_candidate_goes_on_behind_the_last_finished_window(folder) -> None:
    phases(folder, Worker()).write_windows(0, (0, 1, 2))
    with pytest.raises(EngineRefusedError):
        phases(folder, Worker(damaged=1), "q4").score_windows()
    assert folder.windows_done("q4") == (0,)
    assert not folder.has_reference(1)  # what could not be read is written anew by the next attempt
    phases(folder, Worker()).write_windows(0, (1, 2))
    worker = Worker()
    phases(folder, worker, "q4").score_windows()
    assert worker.asked == [("compare", 1, 0), ("compare", 2, 0)]
    found = folder.scores("q4", 2)
    assert found is not None
    assert found.kl.mean() == pytest.approx(0.25)
    assert set(found.window.tolist()) == {2}


def test_the_self_check_is_the_mean_over_the_first_window(folder) -> None:
    phases(folder, Worker()).write_windows(0, (0,))
    assert phases(folder, Worker()).check_self() == pytest.approx(0.25)


def test_answers_are_held_against_the_reference_s_teacher_forced(folder) -> None:
    prompts = folder.plan.workload.prompts
    phases(folder, Worker()).write_answers(prompts, ())
    reference = folder.answers("F16")
    assert [(one.token_ids, one.first_divergence) for one in reference] == [((10, 11, 12), None), ((20,), None)]
    worker = Worker({1: (10, 77, 12), 2: (20, 21)})
    phases(folder, worker, "q4").write_answers(prompts, reference)
    assert [one[0] for one in worker.asked] == ["generate", "answer", "generate", "answer"]
    assert worker.asked[1][2] == (10, 11, 12)  # the reference's own tokens, not this run's
    first, second = folder.answers("q4")
    assert (first.first_divergence, second.first_divergence) == (1, 1)
    assert (first.agreed, second.agreed) == (1, 1)
    assert [(one.token_id, one.text) for one in first.forced] == [(10, "<10>"), (11, "<11>"), (12, "<12>")]
    assert first.forced[1].top == (("<99>", 0.5), ("<100>", 0.5))


def test_answers_that_are_there_are_not_written_again(folder) -> None:
    prompts = folder.plan.workload.prompts
    phases(folder, Worker()).write_answers(prompts[:1], ())
    worker = Worker()
    phases(folder, worker).write_answers(prompts, ())
    assert [one for one in worker.asked if one[0] == "generate"] == [("generate", (2,), 4)]


def test_an_empty_answer_has_nothing_to_be_read(folder) -> None:
    worker = Worker({1: (), 2: (20,)})
    phases(folder, worker).write_answers(folder.plan.workload.prompts, ())
    assert folder.answers("F16")[0].forced == ()
    assert [one[0] for one in worker.asked] == ["generate", "generate", "answer"]


def test_the_likeliest_answer_per_byte_is_chosen_and_nan_never(folder) -> None:
    # -2.0 for one byte against -3.0 for four; then a broken row against a very unlikely one
    phases(folder, Worker()).choose()
    assert folder.picks("F16") == (1, 1)


def test_choices_go_on_behind_the_last_one(folder) -> None:
    folder.save("F16", "choices", (0,))
    worker = Worker()
    phases(folder, worker).choose()
    assert [one[2] for one in worker.asked] == [(7,), (8,)]
    assert folder.picks("F16") == (0, 1)


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [((1, 2), (1, 2), None), ((1, 3), (1, 2), 1), ((1,), (1, 2), 1), ((), (1,), 0), ((), (), None)],
)
def test_the_first_divergence_is_the_first_other_token(one, other, place) -> None:
    assert first_divergence(one, other) == place
