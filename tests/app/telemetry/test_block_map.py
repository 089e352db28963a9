"""Maps of the KV cache: those an engine sends, those made from counted tokens, and what stays of them."""

from __future__ import annotations

import pytest

from app.telemetry.block_map import BlockKeeper, BlockSource, BlockState, logical_view, physical_view
from backends.protocol import (
    BlockMap,
    BlockOwner,
    LifeCycle,
    MemoryRead,
    ModelLoaded,
    RequestId,
    StepDone,
    StepStats,
)

FREE, KEPT, USED, SHARED = BlockState
# Two requests share blocks 0 and 1; the first wrote 37 tokens, the second 40; block 5 is kept.
MAP = BlockMap(
    16,
    bytes([SHARED, SHARED, USED, USED, FREE, KEPT, FREE, FREE]),
    (BlockOwner(RequestId(7), (0, 1, 2), 37), BlockOwner(RequestId(9), (0, 1, 3), 40)),
)
BLOCKS = ModelLoaded(backend="echo", model_path="m", context_tokens=128, blocks=8, block_tokens=16)
NO_BLOCKS = ModelLoaded(backend="llama_cpp", model_path="m", context_tokens=100)


def step(tokens=0, block_map=None, ended_s=10.0):
    return StepDone(StepStats(step=1, ended_s=ended_s, duration_s=0.1, kv_used_tokens=tokens), (), block_map)


def test_an_engines_map_says_whose_each_block_is_and_how_full():
    view = physical_view(MAP, "torch")
    assert (view.source, view.engine, view.block_tokens, view.num_blocks) == (BlockSource.PHYSICAL, "torch", 16, 8)
    assert view.holders.tolist() == [0, 0, 0, 1, -1, -1, -1, -1]
    assert view.orders.tolist() == [0, 1, 2, 2, -1, -1, -1, -1]
    assert view.users.tolist() == [2, 2, 1, 1, 0, 0, 0, 0]
    assert view.filled.tolist() == [16, 16, 5, 8, 0, 16, 0, 0]
    assert [view.count(state) for state in BlockState] == [3, 1, 2, 2]
    # 11 places are empty in block 2 and 8 in block 3; free and kept blocks waste nothing.
    assert view.wasted_tokens == 19
    assert view.can_describe


def test_a_map_that_names_blocks_which_are_not_there_is_still_a_map():
    odd = BlockMap(16, bytes([2, 9, 0]), (BlockOwner(RequestId(1), (-1, 0, 99), 48),))
    view = physical_view(odd, "torch")
    assert view.states.tolist() == [USED, SHARED, FREE]
    assert view.filled.tolist() == [16, 16, 0]
    assert view.orders.tolist() == [1, -1, -1]
    assert physical_view(BlockMap(0, b""), "").num_blocks == 0


@pytest.mark.parametrize(("tokens", "filled"), [(0, [0] * 7), (17, [16, 1, 0, 0, 0, 0, 0]), (999, [16] * 6 + [4])])
def test_counted_tokens_fill_the_context_from_its_beginning(tokens, filled):
    view = logical_view(100, tokens, "llama.cpp", is_busy=True)
    assert view.source is BlockSource.LOGICAL
    assert view.filled.tolist() == filled
    assert view.states.tolist() == [USED if places else FREE for places in filled]
    assert view.users.tolist() == [int(places > 0) for places in filled]
    assert not view.can_describe


def test_counted_tokens_are_kept_once_the_engine_rests():
    keeper = BlockKeeper()
    assert keeper.view() is None
    keeper.model_loaded(NO_BLOCKS)
    assert keeper.view().count(FREE) == 7
    keeper.record_step(step(20))
    assert keeper.view().count(USED) == 2
    version = keeper.version
    # A reading from before the step ended says nothing about after it, nor does one of a busy engine.
    keeper.record_memory(MemoryRead(read_s=9.0, state=LifeCycle.READY))
    keeper.record_memory(MemoryRead(read_s=11.0, state=LifeCycle.BUSY))
    assert keeper.version == version
    keeper.record_memory(MemoryRead(read_s=12.0, state=LifeCycle.READY))
    assert keeper.version > version
    view = keeper.view()
    assert (view.count(USED), view.count(KEPT)) == (0, 2)
    assert view.owners == ()
    assert view.orders.tolist() == [0, 1, -1, -1, -1, -1, -1]
    assert (view.engine, view.wasted_tokens) == ("llama.cpp", 0)


def test_an_engine_with_blocks_has_all_of_them_free_until_it_sends_a_map():
    keeper = BlockKeeper()
    keeper.model_loaded(BLOCKS)
    view = keeper.view()
    assert (view.source, view.count(FREE), view.engine) == (BlockSource.PHYSICAL, 8, "echo")
    version = keeper.version
    keeper.record_step(step(20))
    assert keeper.version == version
    keeper.record_step(step(20, MAP))
    assert keeper.version > version
    assert keeper.view().count(SHARED) == 2
    # The next step without a map leaves the last one.
    version = keeper.version
    keeper.record_step(step(21))
    keeper.record_memory(MemoryRead(read_s=20.0, state=LifeCycle.READY))
    assert keeper.version == version
    assert keeper.view().count(SHARED) == 2


def test_the_last_map_of_an_engine_that_ended_stays_and_the_next_engine_begins_empty():
    keeper = BlockKeeper()
    keeper.model_loaded(BLOCKS)
    keeper.record_step(step(20, MAP))
    keeper.engine_gone()
    view = keeper.view()
    assert view.is_gone
    assert not view.can_describe
    assert view.count(SHARED) == 2
    keeper.model_loaded(NO_BLOCKS)
    view = keeper.view()
    assert not view.is_gone
    assert (view.source, view.count(FREE)) == (BlockSource.LOGICAL, 7)


def test_a_snapshot_is_not_written_any_more():
    keeper = BlockKeeper()
    keeper.model_loaded(NO_BLOCKS)
    snapshot = keeper.snapshot()
    keeper.record_step(step(20))
    assert snapshot.view().count(USED) == 0


def test_where_neither_blocks_nor_a_context_is_told_there_is_no_map():
    keeper = BlockKeeper()
    keeper.model_loaded(ModelLoaded(backend="unheard_of", model_path="m", context_tokens=0))
    assert keeper.view() is None
