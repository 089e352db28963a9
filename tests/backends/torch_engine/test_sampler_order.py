"""The likeliest tokens in an order without chance: equal logits by id, whatever torch.topk makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backends.torch_engine.sampler_order import likeliest


def plain(row: torch.Tensor, count: int) -> list[int]:
    """Return the ids by sorting pairs in Python."""
    return sorted(range(len(row)), key=lambda token: (-row[token].item(), token))[:count]


@pytest.mark.parametrize("count", [1, 2, 7, 40, 299, 300, 1000])
@pytest.mark.parametrize("levels", [2, 5, 300])
def test_the_order_equals_the_plain_one_also_where_many_logits_are_equal(count, levels) -> None:
    generator = torch.Generator().manual_seed(levels)
    logits = torch.randint(0, levels, (4, 300), generator=generator).float() - 3
    values, ids = likeliest(logits, count)
    for row in range(4):
        assert ids[row].tolist() == plain(logits[row], count)
        assert values[row].tolist() == logits[row][ids[row]].tolist()


def test_the_likeliest_few_are_the_first_of_the_likeliest_many() -> None:
    logits = torch.randn(3, 4000, generator=torch.Generator().manual_seed(2)).bfloat16().float()  # many are equal
    _values, many = likeliest(logits, 1024)
    for count in (1, 3, 40, 500):
        assert np.array_equal(likeliest(logits, count)[1], many[:, :count])


def test_minus_infinity_stands_at_the_end() -> None:
    logits = torch.full((1, 100), -torch.inf)
    logits[0, [7, 3]] = torch.tensor([1.0, 2.0])
    values, ids = likeliest(logits, 5)
    assert ids[0, :2].tolist() == [3, 7]
    assert np.isneginf(values[0, 2:]).all()


def test_nan_and_infinity_stand_first_so_that_they_are_seen() -> None:
    logits = torch.zeros(2, 100)
    logits[0, 50], logits[1, 60] = torch.nan, torch.inf
    values, _ids = likeliest(logits, 3)
    assert not np.isfinite(values[:, 0]).any()
