"""What lies in the blocks, for the block map on the screen: states, owners, and the tokens of one block."""

from __future__ import annotations

from collections.abc import Iterable

from backends import protocol
from backends.torch_engine.block_pool import BlockPool
from backends.torch_engine.sequence import Sequence


def block_map(pool: BlockPool, owners: Iterable[Sequence]) -> protocol.BlockMap:
    """Return the state of every block, and the block tables of these sequences."""
    tables = tuple(
        protocol.BlockOwner(sequence.request.request_id, tuple(sequence.block_table), sequence.computed)
        for sequence in owners
    )
    return protocol.BlockMap(pool.block_tokens, pool.states(), tables)


def describe(pool: BlockPool, owners: Iterable[Sequence], block: int) -> tuple[tuple[int, ...], int]:
    """Return the tokens whose KV lies in a block, and how many block tables name it.

    A block that is free, or that is no block of the pool, holds no tokens.
    """
    if not 0 <= block < pool.blocks:
        return (), 0
    token_ids, users = pool.content(block), 0
    for sequence in owners:
        if block in sequence.block_table:
            users += 1
            begin = sequence.block_table.index(block) * pool.block_tokens
            own = sequence.known[begin : min(begin + pool.block_tokens, sequence.computed)]
            token_ids = max(token_ids, tuple(own), key=len)
    return token_ids, users
