"""Per-token figures: from a worker's events, joined, cut, written and read again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from app.compare.token_scores import TokenScores
from backends import protocol
from tests.helpers.score_values import event_of, random_scores, scores


def _same(one: TokenScores, two: TokenScores) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(two, field.name), equal_nan=field.name == "cosine")
        and getattr(one, field.name).dtype == getattr(two, field.name).dtype
        for field in dataclasses.fields(TokenScores)
    )


def test_events_come_out_as_they_went_in():
    whole = random_scores(windows=3, tokens=20)
    events = [event_of(whole.windows([number])) for number in range(3)]
    assert _same(TokenScores.from_events(events), whole)


def test_a_resumed_run_numbers_its_windows_on():
    whole = random_scores(windows=3, tokens=20)
    events = [event_of(whole.windows([number])) for number in range(3)]
    first, rest = TokenScores.from_events(events[:1]), TokenScores.from_events(events[1:], first_window=1)
    assert _same(TokenScores.concatenate([first, rest]), whole)


def test_a_run_without_a_reference_has_nothing_to_compare():
    event = protocol.ScoreDone(
        request_id=protocol.RequestId(1),
        logprobs=np.array([-1, -2], "<f4").tobytes(),
        best_ids=np.array([3, 4], "<i4").tobytes(),
        non_finite=bytes(2),
    )
    found = TokenScores.from_events([event, event])
    assert not found.has_reference
    assert len(found) == 4
    assert found.window.tolist() == [0, 0, 1, 1]
    assert found.finite.all()


def test_no_events_are_no_tokens():
    assert len(TokenScores.from_events([])) == 0


def test_windows_with_and_without_a_reference_are_no_run():
    whole = random_scores(windows=1, tokens=5)
    bare = protocol.ScoreDone(
        request_id=protocol.RequestId(1), logprobs=bytes(20), best_ids=bytes(20), non_finite=bytes(5)
    )
    with pytest.raises(ValueError, match="some windows"):
        TokenScores.from_events([event_of(whole), bare])


def test_arrays_of_different_lengths_are_refused():
    event = protocol.ScoreDone(
        request_id=protocol.RequestId(1), logprobs=bytes(8), best_ids=bytes(4), non_finite=bytes(2)
    )
    with pytest.raises(ValueError, match="best_ids"):
        TokenScores.from_events([event])


def test_a_row_whose_figures_are_no_numbers_does_not_count_even_unflagged():
    found = scores([0.1, np.nan, 0.2, 0.3], logprobs=[-1, -1, -np.inf, -1], non_finite=[0, 0, 0, 1])
    assert found.finite.tolist() == [True, False, False, False]


def test_a_cosine_that_some_windows_lack_is_unknown_there():
    whole = random_scores(windows=2, tokens=4)
    bare = dataclasses.replace(whole.windows([1]), cosine=np.empty(0, np.float32))
    joined = TokenScores.concatenate([whole.windows([0]), bare])
    assert np.isnan(joined.cosine).tolist() == [False] * 4 + [True] * 4


def test_what_is_written_is_read_again(tmp_path):
    whole = random_scores(windows=2, tokens=30)
    whole.save(tmp_path / "run.npz")
    assert _same(TokenScores.load(tmp_path / "run.npz"), whole)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_a_damaged_file_is_an_error_and_no_numbers(tmp_path, damage):
    path = tmp_path / "run.npz"
    random_scores(windows=1, tokens=30).save(path)
    data = bytearray(path.read_bytes())
    match damage:
        case "cut":
            data = data[: len(data) // 2]
        case "changed":
            data[len(data) // 3] ^= 0xFF
        case "empty":
            data = bytearray()
        case "other":
            data = bytearray(b"no archive at all")
    path.write_bytes(data)
    with pytest.raises(ValueError, match="token scores"):
        TokenScores.load(path)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        TokenScores.load(tmp_path / "none.npz")
