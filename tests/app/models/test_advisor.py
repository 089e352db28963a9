"""The one place that answers whether a model fits: what it brings together, and what it asks only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import advisor as advisor_module
from app.models.advisor import FitAdvisor
from app.models.entry import ModelEntry
from app.models.fit_types import Device, Machine, Measured, Verdict
from app.models.shape import LayerShape, ModelShape
from backends.protocol import LoadParams, MemorySplit

MIB = 2**20
SHAPE = ModelShape(
    architecture="llama",
    context_tokens=8192,
    embedding_length=512,
    feed_forward_length=1024,
    head_count=8,
    vocabulary_tokens=1000,
    parameters_count=10**6,
    weights_bytes=64 * MIB,
    read_bytes=60 * MIB,
    layers=(LayerShape(kv_heads=2, key_length=64, value_length=64, weights_bytes=MIB, read_bytes=MIB),) * 4,
)
ENTRY = ModelEntry("Tiny:Q4_1", "Tiny", Path("/models/tiny.gguf"), "Q4_1", shape=SHAPE)
PARAMS = LoadParams(context_tokens=1024)
PROBED = MemorySplit(weights_bytes=64 * MIB, kv_reserved_bytes=7 * MIB, compute_bytes=3 * MIB, output_bytes=1)


class FakeLibrary:
    """Keeps probes, records and a bandwidth in memory."""

    def __init__(self):
        self.probes = {}
        self.records = []
        self.speed = 0.0

    def floors(self):
        return {"llama_cpp": 50 * MIB}

    def bandwidth(self, _key):
        return self.speed

    def set_bandwidth(self, _key, bytes_per_s):
        self.speed = bytes_per_s

    def probed(self, entry, params):
        return self.probes.get((entry.key, params))

    def record_probe(self, entry, params, split):
        self.probes[entry.key, params] = split

    def measured(self, _entry):
        return self.records


@pytest.fixture
def library():
    return FakeLibrary()


@pytest.fixture
def readings():
    return []


@pytest.fixture
def advisor(library, readings):
    def read(floor_bytes, bandwidth_bytes_per_s, held_bytes):
        readings.append((floor_bytes, bandwidth_bytes_per_s, held_bytes))
        device = Device("CPU", "This computer", 8192 * MIB, 4096 * MIB, bandwidth_bytes_per_s)
        return Machine((device,), floor_bytes)

    return FitAdvisor(library, lambda _entry: PARAMS, lambda: 5 * MIB, read)


def test_a_fit_has_the_library_s_floor_and_the_engine_s_memory_counts_as_free(advisor, readings):
    fit = advisor.fit(ENTRY)
    assert fit.verdict is Verdict.FITS
    assert fit.estimate.floor_bytes == 50 * MIB
    assert fit.estimate.source == "header"
    assert readings == [({"llama_cpp": 50 * MIB}, 0.0, 5 * MIB)]


def test_the_machine_is_read_once_for_many_fits(advisor, readings):
    fits = advisor.fits([ENTRY, ModelEntry("Broken", "Broken", Path("/b.gguf"), fault="It is broken.")])
    assert list(fits) == ["Tiny:Q4_1"]
    assert len(readings) == 1


def test_a_probe_is_asked_once_and_then_counts(advisor, library, monkeypatch):
    asked = []

    class Outcome:
        split = PROBED

    def probe(path, params, _backend, cancelled=None):
        asked.append((path, params))
        return Outcome

    monkeypatch.setattr(advisor_module, "probe_memory", probe)
    assert advisor.probe(ENTRY) == PROBED
    assert advisor.probe(ENTRY) == PROBED
    assert asked == [(ENTRY.path, PARAMS)]
    estimate = advisor.fit(ENTRY).estimate
    assert (estimate.source, estimate.kv_bytes, estimate.compute_bytes) == ("probe", 7 * MIB, 3 * MIB)


def test_a_broken_model_is_not_probed(advisor, monkeypatch):
    monkeypatch.setattr(advisor_module, "probe_memory", None)
    assert advisor.probe(ModelEntry("Broken", "Broken", Path("/b.gguf"), fault="It is broken.")) is None


def test_bandwidth_is_measured_once_and_gives_a_speed(advisor, monkeypatch):
    measured = []

    def measure():
        measured.append(1)
        return 12e9

    monkeypatch.setattr(advisor_module, "measure_bandwidth", measure)
    assert advisor.fit(ENTRY).decode_tokens_per_s is None
    assert advisor.learn_bandwidth() == 12e9
    assert advisor.learn_bandwidth() == 12e9
    assert measured == [1]
    assert 0 < advisor.fit(ENTRY).decode_tokens_per_s < 12e9 / (60 * MIB) + 1


def test_an_answer_raises_a_bandwidth_that_was_measured_too_low_and_never_lowers_it(advisor, library):
    library.speed = 1e9
    advisor.learn_from_answer(ENTRY, 50.0)
    assert library.speed == 50 * 60 * MIB
    advisor.learn_from_answer(ENTRY, 10.0)
    assert library.speed == 50 * 60 * MIB


def test_the_last_load_with_these_params_is_what_was_measured(advisor, library):
    def record(context_tokens, kv_type):
        return Measured("llama_cpp", "CPU", context_tokens, kv_type, 512, "chat", 1, PROBED)

    library.records = [record(2048, "f16"), record(1024, "q8_0"), record(1024, "f16")]
    assert advisor.measured(ENTRY) is library.records[2]
    assert advisor.measured(ENTRY, LoadParams(context_tokens=0)) is library.records[0]
    assert advisor.measured(ENTRY, LoadParams(context_tokens=4096)) is None
