"""The KV cache block by block at one moment: what an engine with blocks sends, or what counted tokens let one draw.

Both become the same value, a `BlockView`, so that nobody who draws it asks which engine runs. Knows no words and no
window.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backends import protocol
from backends.registry import BACKENDS

# Size of a piece where the engine names none; the torch engine's blocks are as large, so the two maps compare.
LOGICAL_BLOCK_TOKENS = 16
# The owner of what a counting engine holds: it tells tokens, not whose they are.
_COUNTED = protocol.RequestId(0)

ByteArray = NDArray[np.uint8]
IntArray = NDArray[np.int32]


class BlockSource(enum.Enum):
    """Where a map comes from."""

    PHYSICAL = "physical"  # blocks of memory, as the engine keeps them
    LOGICAL = "logical"  # pieces of the context in the order of the text: the engine shows no cells


class BlockState(enum.IntEnum):
    """What a block is doing, numbered as in protocol.BlockMap.states."""

    FREE = 0  # reserved, holds nothing
    KEPT = 1  # holds tokens of an ended request, for a later one with the same text
    USED = 2  # holds tokens of one sequence
    SHARED = 3  # holds tokens of several sequences


@dataclass(frozen=True, slots=True, eq=False)
class BlockView:
    """Every block of a KV cache at one moment.

    Attributes:
        source: where it comes from.
        engine: the engine's name for people.
        block_tokens: places of a block.
        owners: whose tokens lie there, in the engine's order.
        is_gone: the engine has ended; this is the last that was seen.
        states: [N], values of BlockState.
        holders: [N], index of the first owner whose table names the block; -1 for none.
        orders: [N], which block of its text it is, from 0; -1 where nobody knows.
        users: [N], how many owners' tables name it.
        filled: [N], tokens that lie in it.
    """

    source: BlockSource
    engine: str
    block_tokens: int
    owners: tuple[protocol.BlockOwner, ...]
    is_gone: bool
    states: ByteArray
    holders: IntArray
    orders: IntArray
    users: IntArray
    filled: IntArray

    @property
    def num_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.states)

    def count(self, state: BlockState) -> int:
        """Return how many blocks are in a state."""
        return int(np.count_nonzero(self.states == state))

    @property
    def wasted_tokens(self) -> int:
        """Empty places in blocks that are in use: reserved for one sequence and not written yet."""
        in_use = self.states >= BlockState.USED
        return int(np.sum(self.block_tokens - self.filled[in_use]))

    @property
    def can_describe(self) -> bool:
        """Whether the engine can be asked what lies in a block."""
        return self.source is BlockSource.PHYSICAL and not self.is_gone


class BlockKeeper:
    """Keeps the newest map of the engine in force; holds no lock: its owner does (see store.py).

    Attributes:
        version: grows whenever the map moved.
    """

    def __init__(self) -> None:
        self.version = 0
        self._loaded: protocol.ModelLoaded | None = None
        self._map: protocol.BlockMap | None = None
        self._tokens = 0
        self._ended_s = 0.0
        self._is_busy = False
        self._is_gone = False

    def model_loaded(self, loaded: protocol.ModelLoaded) -> None:
        """Begin with an empty cache."""
        self._loaded, self._map = loaded, None
        self._tokens = 0
        self._is_busy = self._is_gone = False
        self.version += 1

    def record_step(self, done: protocol.StepDone) -> None:
        """Take the map of a step, or its counted tokens where the engine has no blocks."""
        if done.block_map is not None:
            self._map = done.block_map
            self.version += 1
        elif not self._has_blocks():
            self.version += not self._is_busy or done.stats.kv_used_tokens != self._tokens
        self._tokens, self._ended_s = done.stats.kv_used_tokens, done.stats.ended_s
        self._is_busy = True

    def record_memory(self, read: protocol.MemoryRead) -> None:
        """Notice that the engine rests: what it counted is kept now, used by nobody."""
        if self._is_busy and read.state is protocol.LifeCycle.READY and read.read_s >= self._ended_s:
            self._is_busy = False
            self.version += not self._has_blocks()

    def engine_gone(self) -> None:
        """Note that the engine ended; the last map stays to be looked at."""
        self._is_gone = True
        self.version += 1

    def snapshot(self) -> BlockKeeper:
        """Return a copy that nobody writes, to make a view of without a lock."""
        copy = BlockKeeper()
        copy.__dict__.update(self.__dict__)
        return copy

    def view(self) -> BlockView | None:
        """Return the map; None before a load, and where an engine tells neither blocks nor a context."""
        loaded = self._loaded
        if self._map is None and loaded is None:
            return None
        engine = BACKENDS[loaded.backend].title if loaded is not None and loaded.backend in BACKENDS else ""
        if self._map is not None:
            return physical_view(self._map, engine, self._is_gone)
        assert loaded is not None
        if loaded.blocks and loaded.block_tokens > 0:
            return physical_view(protocol.BlockMap(loaded.block_tokens, bytes(loaded.blocks)), engine, self._is_gone)
        if loaded.context_tokens <= 0:
            return None
        return logical_view(loaded.context_tokens, self._tokens, engine, is_busy=self._is_busy, is_gone=self._is_gone)

    def _has_blocks(self) -> bool:
        return self._map is not None or (self._loaded is not None and self._loaded.blocks > 0)


def physical_view(block_map: protocol.BlockMap, engine: str, is_gone: bool = False) -> BlockView:
    """Return the view of a map that an engine sent; blocks that do not exist are left out."""
    states = np.minimum(np.frombuffer(block_map.states, np.uint8), BlockState.SHARED)
    num_blocks, places = len(states), max(1, block_map.block_tokens)
    holders, orders = np.full(num_blocks, -1, np.int32), np.full(num_blocks, -1, np.int32)
    users, filled = np.zeros(num_blocks, np.int32), np.zeros(num_blocks, np.int32)
    for number, owner in enumerate(block_map.owners):
        blocks = np.array(owner.blocks, np.int64)
        order = np.arange(len(blocks), dtype=np.int32)
        is_there = (blocks >= 0) & (blocks < num_blocks)
        blocks, order = blocks[is_there], order[is_there]
        is_first = holders[blocks] < 0
        holders[blocks[is_first]], orders[blocks[is_first]] = number, order[is_first]
        users[blocks] += 1
        filled[blocks] = np.maximum(filled[blocks], np.clip(owner.tokens - order * places, 0, places))
    # Kept blocks are full; so is one in use that no owner named, as far as anybody can tell.
    filled[(states != BlockState.FREE) & (users == 0)] = places
    filled[states == BlockState.FREE] = 0
    return BlockView(
        BlockSource.PHYSICAL, engine, places, block_map.owners, is_gone, states, holders, orders, users, filled
    )


def logical_view(
    context_tokens: int, tokens: int, engine: str, *, is_busy: bool = False, is_gone: bool = False
) -> BlockView:
    """Return a map of a context of which an engine only counts the tokens, in pieces of LOGICAL_BLOCK_TOKENS.

    Args:
        context_tokens: places that are reserved.
        tokens: places that hold one.
        engine: the engine's name for people.
        is_busy: a request is unfinished; else the tokens are kept for the next one.
        is_gone: the engine has ended.
    """
    places = LOGICAL_BLOCK_TOKENS
    num_blocks = -(-context_tokens // places)
    tokens = min(max(0, tokens), context_tokens)
    num_held = -(-tokens // places)
    is_held = np.arange(num_blocks) < num_held
    orders = np.arange(num_blocks, dtype=np.int32)
    held = BlockState.USED if is_busy else BlockState.KEPT
    owners = (protocol.BlockOwner(_COUNTED, tuple(range(num_held)), tokens),) if is_busy and tokens else ()
    return BlockView(
        source=BlockSource.LOGICAL,
        engine=engine,
        block_tokens=places,
        owners=owners,
        is_gone=is_gone,
        states=np.where(is_held, held, BlockState.FREE).astype(np.uint8),
        holders=np.where(is_held & is_busy, 0, -1).astype(np.int32),
        orders=np.where(is_held, orders, -1).astype(np.int32),
        users=(is_held & is_busy).astype(np.int32),
        filled=np.clip(tokens - orders * places, 0, places).astype(np.int32),
    )
