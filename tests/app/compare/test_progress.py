"""How long a comparison still takes, learned from its own pieces."""

from __future__ import annotations

import pytest

from app.compare.folder import ComparisonFolder
from app.compare.progress import Progress, work_left
from app.compare.run_files import SpeedRound
from tests.helpers.scoring_worker import FakeModel, make_plan


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_nothing_is_known_before_a_piece_has_ended() -> None:
    progress = Progress({"windows": 4})
    assert progress.moved("a", "windows", 0) is None


def test_what_pieces_took_is_what_the_others_will_take() -> None:
    clock = Clock()
    progress = Progress({"windows": 4, "answers": 0}, clock)
    progress.moved("a", "windows", 0)
    clock.now_s = 2.0
    assert progress.moved("a", "windows", 1) == pytest.approx(6.0)
    clock.now_s = 6.0
    assert progress.moved("a", "windows", 2) == pytest.approx(6.0)


def test_time_between_two_phases_counts_for_neither() -> None:
    clock = Clock()
    progress = Progress({"windows": 2, "loading": 1}, clock)
    progress.moved("a", "windows", 0)
    clock.now_s = 1.0
    progress.moved("a", "windows", 1)
    clock.now_s = 100.0
    progress.moved("b", "loading", 0)
    clock.now_s = 103.0
    assert progress.moved("b", "loading", 1) == pytest.approx(1.0)


def test_turns_of_the_speed_rounds_go_from_run_to_run() -> None:
    clock = Clock()
    progress = Progress({"speed": 4}, clock)
    progress.moved("a", "speed", 0)
    clock.now_s = 3.0
    assert progress.moved("b", "speed", 1) == pytest.approx(9.0)


def test_a_kind_not_seen_yet_is_guessed_from_the_windows() -> None:
    clock = Clock()
    progress = Progress({"windows": 1, "speed": 2}, clock)
    progress.moved("a", "windows", 0)
    clock.now_s = 2.0
    assert progress.moved("a", "windows", 1) == pytest.approx(2 * 1.5 * 2.0)


def test_what_the_folder_holds_is_not_left_to_do(tmp_path) -> None:
    folder = ComparisonFolder.create(tmp_path, make_plan(tmp_path, q4=FakeModel()))
    assert work_left(folder) == {"loading": 3, "windows": 9, "answers": 4, "choices": 4, "speed": 4}
    folder.save("q4", "choices", (0, 1))
    one = SpeedRound(number=1, prefill_tokens_per_s=1.0, decode_tokens_per_s=1.0, ttft_s=1.0)
    for run_id in ("F16", "q4"):
        folder.save(run_id, "speed", (one,))
    assert work_left(folder) == {"loading": 3, "windows": 9, "answers": 4, "choices": 2, "speed": 2}
