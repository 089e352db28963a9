"""The context that an engine creates, to the cell."""

from __future__ import annotations

import pytest

from app.models.fit_context import (
    DEFAULT_CONTEXT_TOKENS,
    MAX_CONTEXT_TOKENS,
    ContextPlan,
    largest_context,
    padded,
    plan_context,
    wanted_context,
)
from backends.protocol import LoadParams


@pytest.mark.parametrize(("tokens", "cells"), [(1, 256), (256, 256), (257, 512), (5000, 5120), (0, 0)])
def test_contexts_are_whole_steps(tokens, cells):
    assert padded(tokens) == cells


@pytest.mark.parametrize(
    ("params", "trained", "tokens"),
    [
        ({}, 131_072, 8192),
        ({}, 2048, 2048),
        ({}, 0, 8192),
        ({"context_tokens": 32_768}, 131_072, 32_768),
        ({"context_tokens": 32_768}, 4096, 4096),
        ({"context_tokens": 32_768}, 0, 8192),
        ({"context_tokens": 32_768, "allow_long_context": True}, 4096, 32_768),
        ({"context_tokens": 2**31 - 1}, 2**31 - 1, MAX_CONTEXT_TOKENS),
        ({"context_tokens": -5}, 131_072, DEFAULT_CONTEXT_TOKENS),
        ({"context_tokens": 16_384, "kv_mode": "streams", "max_sequences": 4}, 4096, 16_384),
        ({"context_tokens": 16_384, "kv_mode": "chat", "max_sequences": 4}, 4096, 4096),
    ],
)
def test_the_engine_creates_what_is_asked_and_at_most_what_was_trained(params, trained, tokens):
    assert wanted_context(LoadParams(**params), trained) == tokens


def test_more_than_asked_is_never_offered_beyond_what_was_trained():
    assert largest_context(LoadParams(context_tokens=9_999_999), 4096) == 4096


def test_shared_cells_are_one_stream_and_split_cells_one_each():
    shared = plan_context(LoadParams(max_sequences=4), 8192)
    split = plan_context(LoadParams(max_sequences=4, kv_mode="streams"), 8192)
    assert shared == ContextPlan(cells=8192, streams=1, sequences=4, micro_batch_tokens=512)
    assert split == ContextPlan(cells=2048, streams=4, sequences=4, micro_batch_tokens=512)
    assert plan_context(LoadParams(max_sequences=3, kv_mode="streams"), 5000).cells == 1792


def test_a_window_has_cells_for_every_sequence_that_shares_it_and_one_micro_batch():
    assert plan_context(LoadParams(), 8192).window_cells(512) == 1024
    assert plan_context(LoadParams(max_sequences=4), 8192).window_cells(512) == 2560
    assert plan_context(LoadParams(max_sequences=4, kv_mode="streams"), 32_768).window_cells(512) == 1024
    assert plan_context(LoadParams(), 512).window_cells(4096) == 512


def test_a_micro_batch_is_never_larger_than_batch_or_context():
    assert plan_context(LoadParams(micro_batch_tokens=2048), 100).micro_batch_tokens == 100
    assert plan_context(LoadParams(micro_batch_tokens=2048, batch_tokens=64), 8192).micro_batch_tokens == 64
    assert plan_context(LoadParams(micro_batch_tokens=-1, max_sequences=-1), -7) == ContextPlan(256, 1, 1, 1)
