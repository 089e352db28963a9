"""Maps of KV blocks with exactly known contents, and a telemetry store that holds one."""

from __future__ import annotations

from app.telemetry.block_map import BlockState, BlockView, physical_view
from app.telemetry.store import TelemetryStore
from backends.protocol import BlockMap, BlockOwner, ModelLoaded, RequestId, StepDone, StepStats

FREE, KEPT, USED, SHARED = BlockState

# Two requests share blocks 0 and 1 and write into 2 (5 of 16 places) and 3 (8 of 16); 5 is kept, the rest is free.
OWNERS = (BlockOwner(RequestId(7), (0, 1, 2), 37), BlockOwner(RequestId(9), (0, 1, 3), 40))
MAP = BlockMap(16, bytes([SHARED, SHARED, USED, USED, FREE, KEPT, FREE, FREE]), OWNERS)


def large_map(blocks: int, sequences: int = 4) -> BlockMap:
    """Return a map whose first half is used by so many sequences, all of which share its first 16 blocks."""
    states = bytearray(blocks)
    states[: blocks // 2] = bytes([USED]) * (blocks // 2)
    states[:16] = bytes([SHARED]) * 16
    states[blocks // 2 : blocks // 2 + blocks // 16] = bytes([KEPT]) * (blocks // 16)
    own = (blocks // 2 - 16) // sequences
    owners = []
    for number in range(sequences):
        table = (*range(16), *range(16 + number * own, 16 + (number + 1) * own))
        owners.append(BlockOwner(RequestId(number + 1), table, len(table) * 16 - 7))
    return BlockMap(16, bytes(states), tuple(owners))


def view_of(block_map: BlockMap = MAP, engine: str = "torch", is_gone: bool = False) -> BlockView:
    """Return a map's view."""
    return physical_view(block_map, engine, is_gone)


def record_map(store: TelemetryStore, block_map: BlockMap | None, ended_s: float = 1001.0, tokens: int = 0) -> None:
    """Record a step with this map."""
    stats = StepStats(step=1, ended_s=ended_s, duration_s=0.01, kv_used_tokens=tokens)
    store.record_step(StepDone(stats, (), block_map))


def store_with(block_map: BlockMap | None = MAP, blocks: int = 8) -> TelemetryStore:
    """Return a store of an engine with blocks that has sent this map."""
    store = TelemetryStore()
    store.model_loaded(
        ModelLoaded(backend="echo", model_path="m", context_tokens=128, blocks=blocks, block_tokens=16 if blocks else 0)
    )
    if block_map is not None:
        record_map(store, block_map)
    return store
