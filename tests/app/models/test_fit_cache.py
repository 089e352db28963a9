"""The caches in bytes: exact for every KV type, and refused where llama.cpp refuses."""

from __future__ import annotations

import pytest

from app.models.fit_cache import KV_TYPES, cache_of
from app.models.fit_context import plan_context
from app.models.shape import LayerShape
from backends.llama_cpp_engine import loading
from backends.protocol import LoadParams
from tests.helpers.fit_models import llama_8b

PLAN = plan_context(LoadParams(), 1024)


@pytest.mark.parametrize(
    ("kv_type", "bytes_of_32"),
    [("f32", 128), ("f16", 64), ("bf16", 64), ("q8_0", 34), ("q5_1", 24), ("q5_0", 22), ("q4_1", 20), ("q4_0", 18)],
)
def test_every_type_takes_its_blocks(kv_type, bytes_of_32):
    cache = cache_of([LayerShape(1, 32, 0)])
    assert cache.kv_bytes(KV_TYPES[kv_type], PLAN) == 1024 * bytes_of_32


def test_the_types_are_those_of_the_engine():
    assert set(KV_TYPES) == set(loading.KV_TYPES)


def test_layers_of_one_window_are_added_up():
    layers = [LayerShape(2, 64, 64), LayerShape(2, 64, 64, 512), LayerShape(0, 64, 64), LayerShape(1, 64, 0, 512)]
    assert dict(cache_of(layers).elements) == {0: 256, 512: 320}


def test_a_head_that_is_no_whole_number_of_blocks_is_refused():
    """Phi-2: heads of 80 go as f16 and not as q8_0."""
    cache = cache_of([LayerShape(32, 80, 80)])
    assert [name for name in KV_TYPES if cache.can_store(KV_TYPES[name])] == ["f32", "f16", "bf16"]
    assert cache_of([LayerShape(0, 80, 80), LayerShape(8, 128, 128)]).can_store(KV_TYPES["q4_0"])


def test_states_are_there_for_every_sequence_and_no_token():
    cache = cache_of([LayerShape(state_elements=100)] * 3)
    four = plan_context(LoadParams(max_sequences=4), 8192)
    assert (cache.kv_bytes(KV_TYPES["q4_0"], PLAN), cache.kv_bytes(KV_TYPES["f16"], four)) == (1200, 4800)


def test_streams_have_cells_of_their_own():
    cache = cache_of(llama_8b().layers)
    split = plan_context(LoadParams(max_sequences=3, kv_mode="streams"), 5000)
    assert cache.kv_bytes(KV_TYPES["f16"], split) == 3 * 1792 * 128 * 1024


def test_a_token_reads_what_is_in_its_window():
    cache = cache_of([LayerShape(1, 32, 32), LayerShape(1, 32, 32, 100), LayerShape(state_elements=10)])
    assert cache.read_bytes(KV_TYPES["f16"], 1024) == (1024 + 100) * 64 * 2 + 40
    assert cache.read_bytes(KV_TYPES["f16"], 0) == 40


def test_numbers_below_zero_are_none():
    cache = cache_of([LayerShape(-1, 5, 5), LayerShape(2, -5, 5), LayerShape(1, 5, 5, -9, -7)])
    assert (dict(cache.elements), cache.state_elements) == ({0: 20}, 0)
