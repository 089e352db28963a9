"""What the block map on the screen is told."""

from __future__ import annotations

from backends import protocol
from backends.torch_engine.block_pool import BlockPool
from backends.torch_engine.block_report import block_map, describe
from backends.torch_engine.sequence import Sequence


def running(pool: BlockPool, text: list[int], computed: int) -> Sequence:
    request = protocol.Generate(request_id=protocol.RequestId(7), prompt=protocol.Text("x"))
    sequence = Sequence(request, text, block_tokens=pool.block_tokens)
    sequence.block_table = pool.allocate(pool.blocks_for(len(text)))
    sequence.computed = computed
    for index in range(computed // pool.block_tokens):
        pool.publish(sequence.block_table[index], sequence.chain, index, text)
    return sequence


def test_the_map_shows_states_and_tables() -> None:
    pool = BlockPool(5, 4)
    sequence = running(pool, list(range(10)), 6)
    owner = protocol.BlockOwner(protocol.RequestId(7), (0, 1, 2), 6)
    assert block_map(pool, [sequence]) == protocol.BlockMap(4, b"\2\2\2\0\0", (owner,))


def test_a_block_tells_its_computed_tokens_and_users() -> None:
    pool = BlockPool(5, 4)
    sequence = running(pool, list(range(10)), 6)
    assert describe(pool, [sequence], 0) == ((0, 1, 2, 3), 1)
    assert describe(pool, [sequence], 1) == ((4, 5), 1)
    assert describe(pool, [sequence], 2) == ((), 1)
    pool.take(sequence.block_table[:1])
    other = running(pool, [50], 0)
    other.block_table = sequence.block_table[:1]
    assert describe(pool, [sequence, other], 0) == ((0, 1, 2, 3), 2)


def test_a_kept_block_still_tells_its_tokens_and_a_free_one_none() -> None:
    pool = BlockPool(5, 4)
    sequence = running(pool, list(range(10)), 6)
    pool.release(sequence.block_table)
    assert describe(pool, [], 0) == ((0, 1, 2, 3), 0)
    assert describe(pool, [], 1) == describe(pool, [], 4) == ((), 0)


def test_a_number_that_is_no_block_is_answered_with_nothing() -> None:
    pool = BlockPool(5, 4)
    assert describe(pool, [], -1) == describe(pool, [], 5) == ((), 0)
