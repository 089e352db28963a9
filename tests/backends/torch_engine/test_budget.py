"""How long a context is and how many blocks there are: what was asked, what is free, and nothing in silence."""

from __future__ import annotations

import pytest

from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.protocol import LoadParams
from backends.torch_engine.block_pool import BLOCK_TOKENS
from backends.torch_engine.budget import context_tokens, make_budget, step_tokens

TOKEN_BYTES = 1_000
PLENTY = 10**12


@pytest.mark.parametrize(
    ("params", "trained", "expected"),
    [
        (LoadParams(), 131_072, (8192, ())),
        (LoadParams(), 2048, (2048, ())),
        (LoadParams(), 0, (8192, ())),
        (LoadParams(context_tokens=500), 2048, (500, ())),
        (LoadParams(context_tokens=4096), 2048, (2048, (NoticeCode.CONTEXT_CLAMPED,))),
        (LoadParams(context_tokens=4096, allow_long_context=True), 2048, (4096, (NoticeCode.CONTEXT_BEYOND_TRAINING,))),
        (LoadParams(context_tokens=2**31 - 1), 2048, (2048, (NoticeCode.CONTEXT_CLAMPED,))),
    ],
)
def test_the_context_is_what_was_asked_within_what_the_model_knows(params, trained, expected):
    assert context_tokens(params, trained) == expected


def test_a_step_takes_the_smaller_of_both_batches():
    assert step_tokens(LoadParams(batch_tokens=2048, micro_batch_tokens=512)) == 512
    assert step_tokens(LoadParams(batch_tokens=64, micro_batch_tokens=512)) == 64
    assert step_tokens(LoadParams(batch_tokens=0)) == 1


@pytest.mark.parametrize(("tokens", "blocks"), [(16, 1), (17, 2), (1000, 63), (8192, 512)])
def test_there_are_just_the_blocks_that_one_context_needs(tokens, blocks):
    budget = make_budget(LoadParams(context_tokens=tokens), 131_072, TOKEN_BYTES, PLENTY)
    assert (budget.context_tokens, budget.blocks, budget.notices) == (tokens, blocks, ())


def test_a_share_of_the_memory_makes_room_for_more_than_one_context():
    budget = make_budget(LoadParams(context_tokens=1024, memory_share=0.5), 2048, TOKEN_BYTES, 2 * 10**9)
    assert budget.context_tokens == 1024
    assert 0.45e9 < budget.blocks * BLOCK_TOKENS * TOKEN_BYTES < 1e9


def test_a_share_that_is_too_small_shortens_the_context_and_says_so():
    available = 64 * 2**20 + 10 * BLOCK_TOKENS * TOKEN_BYTES
    budget = make_budget(LoadParams(context_tokens=1024, memory_share=1.0), 2048, TOKEN_BYTES, available)
    assert (budget.blocks, budget.context_tokens) == (9, 144)
    assert NoticeCode.CONTEXT_CLAMPED in budget.notices


@pytest.mark.parametrize(
    ("params", "available", "code"),
    [
        (LoadParams(context_tokens=1024), 1024 * TOKEN_BYTES, ErrorCode.OUT_OF_MEMORY),
        (LoadParams(memory_share=0.5), 0, ErrorCode.OUT_OF_MEMORY),
        (LoadParams(memory_share=1.5), PLENTY, ErrorCode.BAD_PARAMS),
        (LoadParams(memory_share=float("nan")), PLENTY, ErrorCode.BAD_PARAMS),
    ],
)
def test_what_cannot_be_is_refused(params, available, code):
    with pytest.raises(EngineError) as caught:
        make_budget(params, 2048, TOKEN_BYTES, available)
    assert caught.value.code is code


def test_what_is_needed_and_free_is_said():
    with pytest.raises(EngineError) as caught:
        make_budget(LoadParams(context_tokens=1600), 2048, TOKEN_BYTES, 5)
    assert caught.value.parameters == {"needed_bytes": 101 * BLOCK_TOKENS * TOKEN_BYTES, "free_bytes": 5}
