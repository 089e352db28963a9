"""Logarithms of probabilities under the model's own distribution."""

from __future__ import annotations

import pytest
import torch

from backends.torch_engine.sampler_chances import chances_of


def test_the_logarithms_are_those_of_the_whole_softmax() -> None:
    logits = torch.randn(3, 500, generator=torch.Generator().manual_seed(3)) * 4
    expected = torch.log_softmax(logits.double(), dim=-1)
    found = chances_of(logits, [7, 400, 0], [5, 0, 50])
    assert [len(one.top) for one in found] == [5, 0, 50]
    for row, token in enumerate([7, 400, 0]):
        assert found[row].chosen.token_id == token
        assert found[row].chosen.logprob == pytest.approx(expected[row, token].item(), abs=1e-5)
        best = torch.topk(expected[row], len(found[row].top))
        assert [one.token_id for one in found[row].top] == best.indices.tolist()
        assert [one.logprob for one in found[row].top] == pytest.approx(best.values.tolist(), abs=1e-5)


def test_texts_are_left_to_who_has_the_vocabulary() -> None:
    (found,) = chances_of(torch.zeros(1, 4), [1], [2])
    assert found.chosen.text == ""
    assert [(one.token_id, one.text) for one in found.top] == [(0, ""), (1, "")]  # equal ones by id


def test_nobody_asks_for_more_than_there_are() -> None:
    (found,) = chances_of(torch.zeros(1, 4), [1], [50])
    assert len(found.top) == 4
