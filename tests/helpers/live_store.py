"""A telemetry store with a short, exactly known history, for the tests of plots and panels.

Time 0 is the first reading: 40 MiB before the load, 412 MiB from 1 s on (95 weights, 97 compute, 180 KV reserved);
from 2 s on a prompt is read for 1 s, then 10 tokens are written each second until 10 s.
"""

from __future__ import annotations

from app.telemetry.store import TelemetryStore
from backends.protocol import LifeCycle, MemoryRead, MemorySplit, ModelLoaded, StepDone, StepStats

MIB = 2**20
BYTES_PER_TOKEN = MIB // 4
SPLIT = MemorySplit(weights_bytes=95 * MIB, kv_reserved_bytes=180 * MIB, compute_bytes=97 * MIB)
LOADED = ModelLoaded(
    backend="echo", model_path="m.gguf", context_tokens=720, kv_bytes_per_token=BYTES_PER_TOKEN, memory=SPLIT
)


def memory(store: TelemetryStore, time_s: float, total_mib: float, state: LifeCycle = LifeCycle.READY) -> None:
    """Record a reading of the process."""
    store.record_memory(MemoryRead(read_s=1000 + time_s, anonymous_bytes=int(total_mib * MIB), state=state))


def read_prompt(store: TelemetryStore, ended_s: float, duration_s: float, tokens: int, held: int) -> None:
    """Record a step that reads a prompt; held is what the KV cache holds after it."""
    record(store, ended_s=ended_s, duration_s=duration_s, prefill_tokens=tokens, held=held)


def write_token(store: TelemetryStore, ended_s: float, duration_s: float, held: int) -> None:
    """Record a step that writes a token; held is what the KV cache holds after it."""
    record(store, ended_s=ended_s, duration_s=duration_s, decode_tokens=1, held=held)


def record(store: TelemetryStore, *, ended_s: float, duration_s: float, held: int, **tokens: int) -> None:
    """Record any step."""
    stats = StepStats(
        step=0,
        ended_s=1000 + ended_s,
        duration_s=duration_s,
        running=1,
        kv_used_tokens=held,
        kv_used_bytes=held * BYTES_PER_TOKEN,
        **tokens,
    )
    store.record_step(StepDone(stats))


def filled_store() -> TelemetryStore:
    """Return the store of the module's story."""
    store = TelemetryStore()
    memory(store, 0.0, 40, LifeCycle.LOADING)
    store.model_loaded(LOADED, LOADED.kv_bytes_per_token)
    memory(store, 1.0, 412)
    memory(store, 2.0, 412)
    read_prompt(store, 3.0, 1.0, tokens=160, held=160)
    for number in range(70):
        write_token(store, 3.1 + number * 0.1, 0.1, held=161 + number)
        if number % 10 == 9:
            memory(store, 3.1 + number * 0.1, 412)
    return store
