import math

import pytest
import torch

from backends.torch_engine import attention_reference
from tests.helpers.attention_cases import PLAN, PLANS, STEPS, TABLES, Case


@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_rows_see_what_they_should_in_chunks_and_one_by_one(plan, tables):
    case = Case(plan, tables)
    case.context.reads_in_place = False
    case.fill(math.nan)  # what blocks held before reaches no result
    for counts in STEPS:
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=1e-5)


def test_written_out_attention_is_the_same_in_blocks_of_queries(monkeypatch):
    def answer():
        case = Case(PLANS["cap and sinks"], TABLES["scattered"])
        case.context.reads_in_place = False
        return case.step((30, 1, 0))[0]

    at_once = answer()
    monkeypatch.setattr(attention_reference, "_SCORE_BYTES", 2000)
    assert torch.allclose(answer(), at_once, atol=1e-6)


def test_padding_gets_zeros_and_touches_the_trash_block_only():
    case = Case(PLAN, TABLES["neighbours"])
    case.context.reads_in_place = False
    case.fill(7.0)
    got, right = case.step((3, 1, 0), padded_tokens=9)
    assert torch.allclose(got[:4].double(), right, atol=1e-5)
    assert not got[4:].any()
    keys = case.cache.keys[0]
    trash = case.cache.trash_block * case.cache.block_tokens
    assert keys[:, trash].isnan().all()
    assert keys[:, 3:12].eq(7).all()


def test_rows_of_several_layers_of_one_kind_are_arranged_once():
    case = Case(PLAN, TABLES["scattered"])
    case.context.reads_in_place = False
    case.step((5, 1, 1))
    step = case.context.step
    assert attention_reference.dense_groups(step, PLAN) is attention_reference.dense_groups(step, PLANS["as many"])
    assert attention_reference.dense_groups(step, PLAN) is not attention_reference.dense_groups(step, PLANS["window"])
