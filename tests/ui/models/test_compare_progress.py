"""How far a comparison is, from what the runner says: never backwards, each run in words."""

from __future__ import annotations

import pytest

from app.compare.folder import NOISE_FLOOR_RUN
from app.compare.runner_events import PhaseChanged, ResultChanged, RunEnded
from tests.helpers import compare_values as values
from ui.models.compare_progress import CompareProgress, phase_words


def lines(progress):
    return {line.run_id: (line.state, line.words) for line in progress.lines}


def test_at_first_every_run_waits():
    progress = CompareProgress(values.plan())
    assert {line.state for line in progress.lines} == {"waiting"}
    assert [line.run_id for line in progress.lines][:3] == ["F16", NOISE_FLOOR_RUN, "Q8_0"]
    assert (progress.headline, progress.left_words, progress.fraction) == ("Getting ready.", "", 0.0)


def test_the_piece_under_way_is_named_with_its_number():
    progress = CompareProgress(values.plan())
    progress.take(PhaseChanged("Q8_0", "windows", 2, 4, 250.0))
    assert progress.headline == "Q8_0: scoring the text, window 3 of 4"
    assert lines(progress)["Q8_0"] == ("active", "scoring the text, window 3 of 4")
    assert progress.left_words.replace("\u00a0", " ") == "about 4 minutes left"
    progress.take(PhaseChanged(NOISE_FLOOR_RUN, "loading", 0, 1, None))
    assert progress.headline == "F16, once more: loading the model"
    assert progress.left_words == ""


@pytest.mark.parametrize("phase", ["loading", "windows", "answers", "choices", "speed", "waiting", "another"])
def test_every_phase_has_words(phase):
    assert phase_words(PhaseChanged("Q8_0", phase, 4, 4, None))
    assert "5 of 4" not in phase_words(PhaseChanged("Q8_0", phase, 4, 4, None))


def test_a_phase_with_nothing_to_do_is_not_told():
    progress = CompareProgress(values.plan())
    progress.take(PhaseChanged("Q8_0", "answers", 0, 1, 9.0))
    progress.take(PhaseChanged("Q8_0", "choices", 0, 0, 9.0))
    assert progress.headline == "Q8_0: writing answers, 1 of 1"


def test_a_run_that_is_through_shows_what_it_came_to():
    progress = CompareProgress(values.plan())
    progress.take(PhaseChanged("Q8_0", "windows", 3, 4, 9.0))
    progress.take(RunEnded("Q8_0"))
    progress.take(ResultChanged(values.result(runs=(values.run("F16"), values.run("Q8_0")))))
    progress.take(PhaseChanged("Q6_K", "loading", 0, 1, 9.0))
    state, words = lines(progress)["Q8_0"]
    assert state == "done"
    assert words.startswith("indistinguishable · KL 0.0014")
    assert lines(progress)[NOISE_FLOOR_RUN][1].startswith("noise floor KL 0.0004")


def test_a_failed_run_keeps_its_words_and_the_others_go_on():
    progress = CompareProgress(values.plan())
    progress.take(RunEnded("Q8_0", values.FAILURE))
    progress.take(PhaseChanged("Q6_K", "windows", 0, 4, 9.0))
    assert lines(progress)["Q8_0"] == ("failed", values.FAILURE)
    assert lines(progress)["Q6_K"][0] == "active"


def test_the_share_never_falls():
    progress = CompareProgress(values.plan())
    seen = []
    for event in (
        PhaseChanged("F16", "windows", 2, 4, 9.0),
        RunEnded("F16"),
        PhaseChanged("Q8_0", "windows", 0, 4, 9.0),
        PhaseChanged("Q8_0", "windows", 4, 4, 9.0),
        PhaseChanged("Q8_0", "speed", 1, 3, 9.0),
        PhaseChanged("Q8_0", "windows", 0, 4, 9.0),
    ):
        progress.take(event)
        seen.append(progress.fraction)
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] < 1


def test_what_an_earlier_attempt_did_counts():
    plan = values.plan(with_noise_floor=False)
    progress = CompareProgress(plan, values.result(plan))
    assert progress.fraction == 1.0
    assert {line.state for line in progress.lines} == {"done"}


def test_a_stop_is_said():
    progress = CompareProgress(values.plan())
    progress.take(PhaseChanged("Q8_0", "windows", 2, 4, 250.0))
    progress.stopping()
    assert progress.headline == "Stopping. What was measured is kept."
    assert progress.left_words == ""
    assert lines(progress)["Q8_0"][0] == "waiting"


def test_waiting_for_the_chat_is_said():
    progress = CompareProgress(values.plan())
    progress.take(PhaseChanged("Q8_0", "waiting", 0, 0, 9.0))
    assert "chat's answer" in progress.headline
