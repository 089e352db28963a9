"""What earlier loads took: kept, read back, and never in the way."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.models import library_records
from app.models.fit_types import Measured
from app.models.library_core import LibraryCore
from app.models.library_state import State, single_entry
from backends.protocol import LoadParams, MemorySplit
from tests.helpers.libraries import found_model

ENTRY = single_entry(found_model(), None, None)
MEASURED = Measured(
    "llama_cpp",
    "CPU",
    4096,
    "q8_0",
    512,
    "chat",
    4,
    MemorySplit(weights_bytes=5, device="CPU"),
    process_bytes=7,
    floor_bytes=3,
    decode_tokens_per_s=1.5,
)


def state(loads=(), probes=None, facts=None):
    return State(model_ids={ENTRY.identity: 1}, loads={1: list(loads)}, probes={1: probes or {}}, facts=facts or {})


@pytest.fixture
def core(tmp_path):
    opened = LibraryCore(tmp_path / "data", tmp_path / "install", {"HOME": str(tmp_path), "CUTAWAY_STARTER": "/none"})
    yield opened
    opened.store.close()


def test_what_cannot_be_read_is_left_out():
    good = msgspec.json.encode(MEASURED).decode()
    assert library_records.measured_of(state([good, "{}", "garbage", good]), ENTRY) == [MEASURED, MEASURED]
    key = library_records.params_key(LoadParams())
    assert library_records.probed_of(state(probes={key: "garbage"}), ENTRY, LoadParams()) is None
    assert library_records.bandwidth_of(state(facts={"bandwidth x": "fast"}), "x") == 0.0
    assert library_records.floors_of(state(facts={"floor a": "12", "floor b": "many", "other": "1"})) == {"a": 12}


def test_nothing_is_known_of_another_model():
    other = single_entry(found_model(2), None, None)
    unread = single_entry(found_model(3, identity=""), None, None)
    for entry in (other, unread):
        assert library_records.measured_of(state(["x"]), entry) == []
        assert library_records.probed_of(state(), entry, LoadParams()) is None


def test_a_probe_of_another_engine_version_is_no_answer(monkeypatch):
    key = library_records.params_key(LoadParams())
    split = msgspec.json.encode(MemorySplit(kv_reserved_bytes=1)).decode()
    assert library_records.probed_of(state(probes={key: split}), ENTRY, LoadParams()) is not None
    monkeypatch.setattr(library_records, "_engine_version", lambda: "0.0.1")
    assert library_records.probed_of(state(probes={key: split}), ENTRY, LoadParams()) is None


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        ({"threads": 3}, False),
        ({"context_tokens": 1}, True),
        ({"kv_type": "q8_0"}, True),
        ({"batch_tokens": 1}, True),
        ({"micro_batch_tokens": 1}, True),
        ({"gpu_layers": 1}, True),
        ({"device": "CUDA0"}, True),
        ({"kv_mode": "streams"}, True),
        ({"max_sequences": 2}, True),
        ({"draft_model_path": "/\udce9"}, True),
    ],
)
def test_a_probes_key_holds_what_decides_its_answer(changed, matters):
    key = library_records.params_key(LoadParams(**changed))
    assert (key != library_records.params_key(LoadParams())) is matters


def test_what_is_kept_shows_at_once_and_after_reading_again(core):
    library_records.keep_load(core, ENTRY.path, ENTRY.identity, MEASURED)
    library_records.keep_probe(core, ENTRY, LoadParams(), MemorySplit(compute_bytes=4))
    library_records.keep_bandwidth(core, "here", 2.5e10)
    for _ in range(2):
        now = core.state()
        assert library_records.measured_of(now, ENTRY) == [MEASURED]
        assert library_records.probed_of(now, ENTRY, LoadParams()) == MemorySplit(compute_bytes=4)
        assert library_records.bandwidth_of(now, "here") == 2.5e10
        assert library_records.floors_of(now) == {"llama_cpp": 3}
        core.forget()


def test_a_floor_that_was_not_read_is_not_kept(core):
    library_records.keep_load(core, ENTRY.path, ENTRY.identity, MEASURED)
    library_records.keep_load(core, ENTRY.path, ENTRY.identity, replace(MEASURED, floor_bytes=0))
    assert library_records.floors_of(core.state()) == {"llama_cpp": 3}
