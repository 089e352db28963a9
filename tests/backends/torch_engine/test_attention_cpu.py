import math

import pytest
import torch

from backends.torch_engine import attention_cpu, attention_pieces, attention_reference
from tests.helpers.attention_cases import PLAN, PLANS, STEPS, TABLES, Case

IN_PLACE = {name: plan for name, plan in PLANS.items() if attention_cpu.can_attend(plan)}


@pytest.fixture
def no_fallback(monkeypatch):
    """Fail a test that takes the plain path."""

    def refuse(*_):
        pytest.fail("the plain path was taken")

    monkeypatch.setattr(attention_reference, "attend", refuse)


@pytest.fixture
def eager_plans(monkeypatch):
    """Share, split and copy at lengths as small as a test's."""
    monkeypatch.setattr(attention_pieces, "_SHARED_TOKENS", 4)
    monkeypatch.setattr(attention_pieces, "_SPLIT_TOKENS", 6)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)


def test_caps_and_two_sizes_take_the_plain_path():
    assert set(PLANS) - set(IN_PLACE) == {"cap", "two sizes", "cap and sinks"}


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("plan", IN_PLACE.values(), ids=IN_PLACE)
def test_reading_in_place_is_the_plain_path_but_for_rounding(plan, tables):
    case = Case(plan, tables)
    for counts in STEPS:
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=1e-5)


@pytest.mark.usefixtures("no_fallback", "eager_plans")
@pytest.mark.parametrize("copied", [0, 300])
@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("plan", IN_PLACE.values(), ids=IN_PLACE)
def test_pieces_of_rows_come_together_by_their_log_sum_exp(plan, tables, copied, monkeypatch):
    monkeypatch.setattr(attention_pieces, "_COPIED_TOKENS", copied)
    case = Case(plan, tables)
    for counts in STEPS:
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=1e-5)


@pytest.mark.usefixtures("no_fallback", "eager_plans")
def test_rows_with_a_common_beginning_read_it_once(monkeypatch):
    calls = []
    original = attention_pieces.plan_decode
    monkeypatch.setattr(attention_cpu, "plan_decode", lambda *a, **k: calls.append(original(*a, **k)) or calls[-1])
    common = [0, 1, 2, 3]
    tables = [[*common, *range(base, base + 6)] for base in (10, 20, 30)]
    case = Case(PLAN, tables)
    case._keys = [case._keys[0]] * 3  # one text, so that the shared blocks hold the same
    case._values = [case._values[0]] * 3
    for counts in ((17, 0, 0), (0, 17, 0), (0, 0, 17), (1, 1, 1), (3, 0, 0), (1, 1, 1)):
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=1e-5)
    assert any(call.rows == (0, 1, 2) and call.stride == 0 and call.width == 16 for call in calls[-1].calls)


@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
def test_a_pool_full_of_nan_changes_nothing(tables):
    case = Case(PLAN, tables)
    case.fill(math.nan)
    for counts in STEPS:
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=1e-5)


def test_blocks_that_nobody_owns_stay_as_they_are():
    case = Case(PLAN, TABLES["stretches"])
    case.fill(7.0)
    for counts in STEPS:
        case.step(counts, padded_tokens=40)
    owned = {block for table in TABLES["stretches"] for block in table}
    for block in set(range(case.cache.blocks)) - owned:
        assert case.cache.keys[0][:, block * 4 : block * 4 + 4].eq(7).all()
        assert case.cache.values[0][:, block * 4 : block * 4 + 4].eq(7).all()


def test_padding_gets_zeros():
    case = Case(PLAN, TABLES["neighbours"])
    got, right = case.step((3, 1, 1), padded_tokens=9)
    assert torch.allclose(got[:5].double(), right, atol=1e-5)
    assert not got[5:].any()


def test_bfloat16_stays_within_its_rounding():
    for plan in (PLAN, PLANS["sinks"]):
        case = Case(plan, TABLES["stretches"], torch.bfloat16)
        for counts in STEPS:
            got, right = case.step(counts)
            assert got.dtype == torch.bfloat16
            assert torch.allclose(got.double(), right, atol=3e-2)


def test_queries_of_another_dtype_come_back_in_theirs():
    case = Case(PLAN, TABLES["neighbours"], torch.bfloat16)
    case._queries = [query.float() for query in case._queries]
    for counts in ((9, 0, 4), (1, 1, 1)):
        got, right = case.step(counts)
        assert got.dtype == torch.float32
        assert torch.allclose(got.double(), right, atol=3e-2)
