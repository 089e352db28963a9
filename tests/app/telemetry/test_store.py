"""Readings and steps in, series out: times, owners, restarts, and two threads at once."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from app.telemetry.store import MEMORY_FIELDS, LiveFigures, TelemetryStore
from backends.protocol import LifeCycle, MemoryRead, MemorySplit, ModelLoaded, StepDone, StepStats

MIB = 2**20
SPLIT = MemorySplit(weights_bytes=95 * MIB, kv_reserved_bytes=180 * MIB, compute_bytes=97 * MIB)
LOADED = ModelLoaded(backend="echo", model_path="m.gguf", context_tokens=8192, kv_bytes_per_token=23040.0, memory=SPLIT)


def read(read_s, total_mib, state=LifeCycle.READY, **more):
    return MemoryRead(read_s=read_s, anonymous_bytes=(total_mib - 20) * MIB, file_bytes=20 * MIB, state=state, **more)


def step(ended_s, duration_s=0.1, tokens=0, **more):
    stats = StepStats(
        step=0, ended_s=ended_s, duration_s=duration_s, kv_used_tokens=tokens, kv_used_bytes=tokens * 23000, **more
    )
    return StepDone(stats)


def loaded_store():
    store = TelemetryStore()
    store.record_memory(read(1000.0, 40, LifeCycle.LOADING))
    store.record_memory(read(1001.0, 100, LifeCycle.LOADING))
    store.model_loaded(LOADED, LOADED.kv_bytes_per_token)
    store.record_memory(read(1002.0, 412))
    return store


def test_the_load_is_split_again_once_the_owners_are_known():
    store = TelemetryStore()
    store.record_memory(read(1000.0, 40, LifeCycle.LOADING))
    store.record_memory(read(1001.0, 300, LifeCycle.LOADING))
    # The split is not known yet: all that grew counts as weights.
    assert store.memory()["weights"].tolist() == [0, 260 * MIB]
    store.model_loaded(LOADED, LOADED.kv_bytes_per_token)
    view = store.memory()
    assert view["time_s"].tolist() == [0, 1]
    assert view["weights"].tolist() == [0, 95 * MIB]
    assert view["compute"].tolist() == [0, 97 * MIB]
    assert view["rest"].tolist() == [40 * MIB, 40 * MIB]


def test_times_are_seconds_since_the_first_reading():
    assert loaded_store().memory()["time_s"].tolist() == [0, 1, 2]
    assert loaded_store().now_s == 2


def test_a_reading_is_split_by_owner():
    store = loaded_store()
    store.record_step(step(1002.5, tokens=400, decode_tokens=1))
    store.record_memory(read(1003.0, 412))
    last = {name: column[-1] for name, column in store.memory().items()}
    assert set(last) == {"time_s", *MEMORY_FIELDS}
    # No card was read, so nothing is said about one.
    assert math.isnan(last.pop("device_used"))
    assert math.isnan(last.pop("device_total"))
    assert last == {
        "time_s": 3,
        "measured": 412 * MIB,
        "rest": 40 * MIB,
        "weights": 95 * MIB,
        "compute": 97 * MIB,
        "kv_used": 400 * 23000,
        "kv_reserved": 180 * MIB,
    }


def test_a_store_that_starts_late_takes_no_floor():
    store = TelemetryStore()
    store.model_loaded(LOADED, LOADED.kv_bytes_per_token)
    store.record_memory(read(5.0, 412))
    assert store.memory()["rest"].tolist() == [(412 - 95 - 97 - 180) * MIB]


def test_the_prediction_is_tokens_times_what_the_header_lets_expect():
    store = loaded_store()
    store.record_step(step(1002.5, tokens=400, decode_tokens=1))
    view = store.kv()
    # The cache is empty when the load ends.
    assert view["used"].tolist() == [0, 400 * 23000]
    assert view["predicted"].tolist() == [0, 400 * 23040]
    assert view["reserved"].tolist() == [180 * MIB, 180 * MIB]


def test_without_a_prediction_from_the_header_nothing_is_drawn_as_one():
    store = TelemetryStore()
    store.model_loaded(LOADED)
    store.record_step(step(1.0, tokens=10, decode_tokens=1))
    assert math.isnan(store.kv()["predicted"][-1])


def test_without_a_load_nothing_is_predicted():
    store = TelemetryStore()
    store.record_step(step(1.0, tokens=10, decode_tokens=1))
    assert math.isnan(store.kv()["predicted"][0])


def test_reading_and_writing_are_kept_apart():
    store = loaded_store()
    store.record_step(step(1003.0, 0.5, prefill_tokens=512, decode_tokens=1, running=1))
    store.record_step(step(1003.1, 0.1, decode_tokens=1, running=1))
    reading, writing = store.reading(), store.writing()
    assert reading["time_s"].tolist() == [2.5]
    assert reading["duration_s"].tolist() == [0.5]
    assert reading["tokens_per_s"].tolist() == [1024]
    assert writing["tokens_per_s"].tolist() == pytest.approx([10])
    assert writing["time_s"].tolist() == pytest.approx([3.1])


def test_a_restart_continues_the_axis_and_is_marked():
    store = loaded_store()
    store.engine_gone()
    # The next worker's clock may begin anywhere.
    store.record_memory(read(7.0, 42, LifeCycle.LOADING))
    store.record_memory(read(8.0, 142, LifeCycle.LOADING))
    assert store.memory()["time_s"].tolist() == [0, 1, 2, 3, 4]
    assert store.memory()["weights"].tolist()[-2:] == [0, 100 * MIB]
    assert store.memory()["rest"].tolist()[-2:] == [42 * MIB, 42 * MIB]
    assert store.restarts() == (3,)
    assert store.dropped == 0


def test_a_reading_from_the_past_is_dropped_and_counted():
    store = loaded_store()
    store.record_memory(read(1000.5, 500))
    assert store.dropped == 1
    assert store.memory()["time_s"].tolist() == [0, 1, 2]


def test_the_memory_is_the_cards_when_the_weights_lie_on_it():
    gpu = {"device_used_bytes": 5000 * MIB, "device_total_bytes": 24000 * MIB, "device_name": "Card"}
    store = TelemetryStore()
    store.record_memory(read(0.0, 40, LifeCycle.LOADING, **gpu | {"device_used_bytes": 1000 * MIB}))
    on_card = MemorySplit(
        weights_bytes=3500 * MIB, kv_reserved_bytes=400 * MIB, compute_bytes=100 * MIB, device="CUDA0"
    )
    store.model_loaded(ModelLoaded(backend="llama_cpp", model_path="m", context_tokens=1, memory=on_card))
    store.record_memory(read(1.0, 300, **gpu))
    view = store.memory()
    assert view["measured"].tolist() == [1000 * MIB, 5000 * MIB]
    assert view["rest"].tolist() == [1000 * MIB, 1000 * MIB]
    assert view["weights"].tolist() == [0, 3500 * MIB]
    assert view["device_used"].tolist() == [1000 * MIB, 5000 * MIB]
    assert view["device_total"].tolist() == [24000 * MIB, 24000 * MIB]
    assert store.live().device_name == "Card"
    assert store.live().memory_bytes == 5000 * MIB


def test_the_load_is_drawn_as_system_memory_when_the_card_was_not_used():
    gpu = {"device_used_bytes": 5000 * MIB, "device_total_bytes": 24000 * MIB, "device_name": "Card"}
    store = TelemetryStore()
    store.record_memory(read(0.0, 40, LifeCycle.LOADING, **gpu))
    assert store.memory()["measured"].tolist() == [5000 * MIB]
    store.model_loaded(LOADED, LOADED.kv_bytes_per_token)
    assert store.memory()["measured"].tolist() == [40 * MIB]
    assert store.live().device_name == ""


def test_live_figures_are_the_newest():
    assert TelemetryStore().live() == LiveFigures()
    assert TelemetryStore().is_empty()
    store = loaded_store()
    store.record_step(step(1002.1, 0.1, tokens=400, decode_tokens=1))
    live = store.live()
    assert live.has_engine
    assert live.tokens_per_s == pytest.approx(10)
    assert live.is_writing
    assert (live.kv_used_bytes, live.kv_reserved_bytes, live.kv_tokens) == (9_200_000, 180 * MIB, 400)
    assert (live.memory_bytes, live.highest_memory_bytes) == (412 * MIB, 412 * MIB)
    store.record_memory(read(1004.0, 412))
    assert not store.live().is_writing


def test_an_engine_that_is_gone_leaves_its_series_and_no_live_figures():
    store = loaded_store()
    store.engine_gone()
    assert store.live().memory_bytes is None
    assert not store.live().has_engine
    assert not store.live().is_writing
    assert len(store.memory()["time_s"]) == 3
    assert not store.is_empty()


def test_versions_move_with_what_they_count():
    store = loaded_store()
    before = (store.memory_version, store.kv_version, store.speed_version, store.version)
    store.record_step(step(1002.1, decode_tokens=1))
    after = (store.memory_version, store.kv_version, store.speed_version, store.version)
    assert after[0] == before[0]
    assert all(new > old for new, old in zip(after[1:], before[1:], strict=True))
    store.record_memory(read(1003.0, 412))
    assert store.memory_version > after[0]


def test_one_thread_writes_while_another_reads():
    # The stack of owners is made under the lock: a torn reading would not add up.
    store = loaded_store()
    torn = []
    ended = threading.Event()

    def look():
        while not ended.is_set():
            view = store.memory()
            total = view["rest"] + view["weights"] + view["compute"]
            torn.append(int(np.count_nonzero(total > view["measured"])))

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(3000):
        store.record_memory(read(1003.0 + number * 0.1, 300 + number % 100))
        store.record_step(step(1003.0 + number * 0.1, 0.01, tokens=number, decode_tokens=1))
    ended.set()
    reader.join()
    assert sum(torn) == 0
    assert store.dropped == 0
    assert len(store.memory()["time_s"]) == 3003
