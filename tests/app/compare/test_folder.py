"""A comparison's folder: what is kept, what a damaged or foreign one says, what is freed and deleted."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from app.compare.files import FolderError
from app.compare.folder import ComparisonFolder, comparisons_root, list_comparisons, new_comparison_id
from app.compare.results import Answer, ComparisonResult
from app.compare.run_files import Conditions, RunFacts, RunFailure, SpeedRound
from app.compare.token_scores import TokenScores
from tests.helpers.scoring_worker import FakeModel, make_plan


@pytest.fixture
def folder(tmp_path) -> ComparisonFolder:
    return ComparisonFolder.create(tmp_path / "comparisons", make_plan(tmp_path, q4=FakeModel(noise=0.3)))


def scores(window: int) -> TokenScores:
    ones = np.ones(2, np.float32)
    ids = np.ones(2, np.int32)
    return TokenScores(-ones, -ones, ones, ones, ids, ids, np.zeros(2, np.bool_), np.full(2, window, np.int32))


def test_a_new_folder_opens_again_with_the_same_plan(folder) -> None:
    assert ComparisonFolder.open(folder.path).plan == folder.plan
    assert folder.path.name == folder.plan.comparison_id
    assert folder.path.stat().st_mode & 0o077 == 0
    assert folder.material() is None
    assert folder.conditions() == Conditions()
    assert folder.result() is None


def test_what_a_run_measured_is_read_back(folder) -> None:
    answer = Answer(prompt_id="a", text="x", token_ids=(1,), first_divergence=0)
    speed = SpeedRound(number=1, prefill_tokens_per_s=1.0, decode_tokens_per_s=2.0, ttft_s=0.5)
    folder.save("q4", "answers", (answer,))
    folder.save("q4", "choices", (1, 0))
    folder.save("q4", "speed", (speed,))
    folder.save("q4", "facts", RunFacts(device="CPU"))
    folder.save_scores("q4", 2, scores(2))
    folder.save_scores("q4", 0, scores(0))
    again = ComparisonFolder.open(folder.path)
    assert (again.answers("q4"), again.picks("q4"), again.rounds("q4")) == ((answer,), (1, 0), (speed,))
    assert again.facts("q4") == RunFacts(device="CPU")
    assert again.windows_done("q4") == (0, 2)
    found = again.scores("q4", 2)
    assert found is not None
    assert found.window.tolist() == [2, 2]
    assert (again.scores("q4", 1), again.memory("q4"), again.failure("q4")) == (None, None, None)


def test_a_damaged_piece_of_a_run_is_measured_again(folder) -> None:
    folder.save_scores("q4", 0, scores(0))
    folder.save("q4", "answers", ())
    (folder.path / "runs/q4/window-0001.npz").write_bytes(b"PK\x03\x04 cut off")
    (folder.path / "runs/q4/answers.json").write_bytes(b"{")
    (folder.path / "runs/q4/window-strange.npz").write_bytes(b"x")
    assert folder.scores("q4", 0) is None
    assert folder.windows_done("q4") == ()
    assert folder.answers("q4") == ()


def test_a_failure_is_kept_until_the_run_begins_again(folder) -> None:
    folder.save("q4", "failure", RunFailure(message="It ended."))
    assert folder.failure("q4") == RunFailure(message="It ended.")
    folder.forget_failure("q4")
    folder.forget_failure("q4")
    assert folder.failure("q4") is None


def test_the_result_is_written_with_its_conditions_and_read_back(folder) -> None:
    result = ComparisonResult(comparison_id="test", state="running", self_check=0.0, warnings=("a",))
    folder.save_result(result)
    assert folder.result() == result
    assert msgspec.json.decode(folder.result_path.read_bytes())["conditions"]["windows"] == 3


def test_the_reference_s_windows_are_freed_and_nothing_else(folder) -> None:
    folder.reference_path(0).write_bytes(b"x" * 1000)
    folder.reference_path(1).with_suffix(".cwin.part").write_bytes(b"x" * 10)
    assert folder.has_reference(0)
    assert not folder.has_reference(1)
    assert folder.used_bytes > 1010
    assert folder.free_reference() == 1010
    assert not folder.has_reference(0)
    assert ComparisonFolder.open(folder.path).plan == folder.plan


def test_only_one_process_works_in_a_folder(folder) -> None:
    other = ComparisonFolder.open(folder.path)
    folder.take()
    with pytest.raises(FolderError, match="being run by another"):
        other.take()
    with pytest.raises(FolderError, match="being run by another"):
        other.delete()
    folder.release()
    other.take()
    other.release()


def test_a_deleted_comparison_is_gone(folder) -> None:
    folder.save_scores("q4", 0, scores(0))
    folder.delete()
    assert not folder.path.exists()
    with pytest.raises(FolderError, match="There is no comparison"):
        ComparisonFolder.open(folder.path)


def test_a_folder_that_holds_something_is_not_written_into(folder, tmp_path) -> None:
    with pytest.raises(FolderError, match="is not empty"):
        ComparisonFolder.create(tmp_path / "comparisons", folder.plan)
    (tmp_path / "empty").mkdir()
    assert ComparisonFolder.create_at(tmp_path / "empty", folder.plan).path == tmp_path / "empty"


def test_the_list_has_the_newest_first_and_words_for_the_damaged(folder, tmp_path) -> None:
    root = tmp_path / "comparisons"
    newer = msgspec.structs.replace(folder.plan, comparison_id="newer", created_s=2.0)
    ComparisonFolder.create(root, newer).save_result(ComparisonResult(comparison_id="newer", state="done"))
    for name, data in (("broken", b"{"), ("foreign", b'{"a": 1}')):
        (root / name).mkdir()
        (root / name / "plan.json").write_bytes(data)
    (root / "empty").mkdir()
    (root / "a file").write_bytes(b"")
    found = list_comparisons(root)
    assert [one.path.name for one in found[:2]] == ["newer", "test"]
    assert [one.result is not None for one in found[:2]] == [True, False]
    assert sorted(one.path.name for one in found[2:] if one.fault) == ["broken", "empty", "foreign"]
    assert all(one.used_bytes > 0 for one in found[:2])
    assert list_comparisons(tmp_path / "nowhere") == ()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "noise-floor"])
def test_a_plan_whose_names_are_no_file_names_is_refused(folder, tmp_path, name) -> None:
    run = msgspec.structs.replace(folder.plan.candidates[0], run_id=name)
    plan = msgspec.structs.replace(folder.plan, candidates=(run,))
    with pytest.raises(FolderError, match="is not allowed, or is there twice"):
        ComparisonFolder.create(tmp_path / "other", plan)
    (folder.path / "plan.json").write_bytes(msgspec.json.encode(plan))
    with pytest.raises(FolderError, match="is not allowed, or is there twice"):
        ComparisonFolder.open(folder.path)


def test_two_runs_of_one_name_are_refused_also_where_only_the_case_differs(folder, tmp_path) -> None:
    twin = msgspec.structs.replace(folder.plan.candidates[0], run_id="Q4")
    plan = msgspec.structs.replace(folder.plan, candidates=(*folder.plan.candidates, twin))
    with pytest.raises(FolderError, match="twice"):
        ComparisonFolder.create(tmp_path / "other", plan)


def test_names_of_new_comparisons_are_file_names_and_not_taken(tmp_path) -> None:
    root = comparisons_root(tmp_path)
    first = new_comparison_id("SmolLM2/135M  Instruct", root, now_s=0.0)
    assert first.endswith("-smollm2-135m-instruct")
    (root / first).mkdir(parents=True)
    assert new_comparison_id("SmolLM2/135M  Instruct", root, now_s=0.0) == f"{first}-2"
    assert new_comparison_id("模型", root, now_s=0.0).endswith("-comparison")
