"""What an engine said goes before what a header lets expect."""

from __future__ import annotations

import pytest

from app.models.fit_records import from_history, from_probe, near_history, nearest_record, rest_bytes
from app.models.fit_types import FitQuestion, Measured, MemoryEstimate
from backends.protocol import LoadParams, MemorySplit

HEADER = MemoryEstimate(1000, 200, 50, 4, 0, 0, 90, "header", tables_bytes=30)
ASKED = FitQuestion(params=LoadParams(context_tokens=8192))
SPLIT = MemorySplit(weights_bytes=1010, kv_reserved_bytes=201, compute_bytes=55, output_bytes=4, tables_bytes=33)
LOAD = Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, SPLIT, process_bytes=1400, floor_bytes=80)


def test_a_probe_tells_buffers_and_tables():
    found = from_probe(HEADER, ASKED, SPLIT, 90)
    assert (found.kv_bytes, found.compute_bytes, found.output_bytes, found.tables_bytes) == (201, 55, 4, 33)
    assert (found.weights_bytes, found.copied_bytes, found.source, found.floor_bytes) == (1010, 10, "probe", 90)


def test_a_probe_without_tables_leaves_those_of_the_header():
    assert from_probe(HEADER, ASKED, MemorySplit(kv_reserved_bytes=5), 90).tables_bytes == 30
    assert from_probe(HEADER, ASKED, MemorySplit(kv_reserved_bytes=5), 90).weights_bytes == 1000
    assert from_probe(None, ASKED, MemorySplit(weights_bytes=5), 90).total_bytes == 95


def test_an_equal_load_tells_everything_and_adds_up_to_the_process():
    found = from_history(HEADER, ASKED, [LOAD], 8192, 90)
    assert (found.source, found.total_bytes, found.floor_bytes, found.tables_bytes) == ("measured", 1400, 80, 50)


def test_a_load_whose_process_was_not_read_keeps_the_header_s_tables():
    load = Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, SPLIT)
    found = from_history(HEADER, ASKED, [load], 8192, 90)
    assert (found.floor_bytes, found.tables_bytes) == (90, 30)


@pytest.mark.parametrize(
    "change",
    [
        {"context_tokens": 4096},
        {"kv_type": "q8_0"},
        {"micro_batch_tokens": 128},
        {"kv_mode": "streams"},
        {"max_sequences": 2},
        {"backend": "torch"},
    ],
)
def test_a_load_that_differs_is_no_equal(change):
    values = {"backend": "llama_cpp", "context_tokens": 8192, "kv_type": "f16", "micro_batch_tokens": 512}
    values |= {"kv_mode": "chat", "max_sequences": 1, "device": "CPU", "split": SPLIT} | change
    assert from_history(HEADER, ASKED, [Measured(**values)], 8192, 90) is None


def test_the_newest_of_equal_loads_counts():
    older = Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, MemorySplit(kv_reserved_bytes=7))
    assert from_history(HEADER, ASKED, [LOAD, older], 8192, 90).kv_bytes == 201


def test_the_nearest_context_sets_the_rest_right():
    far = Measured("llama_cpp", "CPU", 32_768, "f16", 512, "chat", 1, SPLIT)
    near = nearest_record(ASKED, [far, LOAD], 4096)
    assert near is LOAD
    predicted = MemoryEstimate(1000, 400, 52, 4, 0, 0, 90, "header", tables_bytes=35)
    found = near_history(HEADER, LOAD, predicted)
    assert (found.kv_bytes, found.source) == (200, "header")  # KV is computed
    assert found.compute_bytes == 50 + (55 - 52)
    assert found.floor_bytes + found.tables_bytes == 90 + 30 + (130 - 90 - 35)
    assert (found.weights_bytes, found.copied_bytes) == (1010, 10)


def test_without_a_load_of_this_kind_there_is_no_nearest():
    assert nearest_record(FitQuestion(params=LoadParams(kv_type="q4_0")), [LOAD], 8192) is None


def test_the_rest_of_a_process_is_what_no_buffer_explains():
    assert rest_bytes(LOAD) == 1400 - 1270
    small = Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, SPLIT, process_bytes=5)
    assert rest_bytes(small) == 0
    assert rest_bytes(Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, SPLIT)) is None
