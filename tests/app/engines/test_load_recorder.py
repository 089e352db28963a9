"""What a load took is written down once it was read, and its speed once it has written."""

from __future__ import annotations

import pytest

from app.engines.load_recorder import LoadRecorder
from app.engines.supervisor import LoadRequest, StateChanged
from backends import protocol
from backends.client import EngineDied
from backends.protocol import LifeCycle, MemorySplit, RequestId

SPLIT = MemorySplit(weights_bytes=95, kv_reserved_bytes=180, compute_bytes=97)
REQUEST = LoadRequest("/models/m.gguf", "llama_cpp", protocol.LoadParams(kv_type="q8_0", micro_batch_tokens=256))
LOADED = protocol.ModelLoaded(
    backend="llama_cpp", model_path="/models/m.gguf", context_tokens=512, kv_type="q8_0", memory=SPLIT
)


@pytest.fixture
def told():
    return []


@pytest.fixture
def recorder(told):
    return LoadRecorder(lambda: REQUEST, lambda request, measured: told.append((request, measured)))


def reading(anonymous, file=0):
    return protocol.MemoryRead(read_s=1.0, anonymous_bytes=anonymous, file_bytes=file)


def finished(new_tokens, decode_s, **figures):
    return protocol.RequestFinished(
        RequestId(1),
        protocol.StopReason.MAX_TOKENS,
        protocol.RequestFigures(new_tokens=new_tokens, decode_s=decode_s, **figures),
    )


def test_a_load_is_told_with_its_floor_and_the_first_reading_after_it(recorder, told):
    for event in (StateChanged(LifeCycle.STARTING), reading(40, 10), reading(300, 100), LOADED):
        recorder.on_event(event)
    assert told == []
    recorder.on_event(reading(320, 110))
    recorder.on_event(reading(999))
    assert len(told) == 1
    request, measured = told[0]
    assert request is REQUEST
    assert (measured.floor_bytes, measured.process_bytes, measured.split) == (50, 430, SPLIT)
    assert (measured.context_tokens, measured.kv_type, measured.micro_batch_tokens) == (512, "q8_0", 256)
    assert measured.decode_tokens_per_s == 0


def test_a_long_answer_adds_its_speed_and_a_short_or_drafted_one_does_not(recorder, told):
    for event in (reading(40), LOADED, reading(400), finished(8, 0.1), finished(30, 1.0, draft_accepted=9)):
        recorder.on_event(event)
    assert len(told) == 1
    recorder.on_event(reading(430))
    recorder.on_event(finished(31, 2.0))
    assert told[-1][1].decode_tokens_per_s == 15
    assert told[-1][1].process_bytes == 430


def test_what_the_first_answer_touched_is_told_too_and_nothing_twice(recorder, told):
    for event in (reading(40), LOADED, reading(400), reading(404), finished(2, 0.1), reading(404), finished(2, 0.1)):
        recorder.on_event(event)
    assert [measured.process_bytes for _request, measured in told] == [400, 404]


@pytest.mark.parametrize(
    "end", [StateChanged(LifeCycle.STARTING), EngineDied(0, None, (), "exited")], ids=["another load", "a death"]
)
def test_another_engine_begins_anew(recorder, told, end):
    for event in (reading(40), LOADED, end, reading(70)):
        recorder.on_event(event)
    assert told == []
    recorder.on_event(LOADED)
    recorder.on_event(reading(500))
    assert told[0][1].floor_bytes == 70


def test_an_engine_without_a_file_leaves_no_record(told):
    recorder = LoadRecorder(lambda: LoadRequest("", "echo"), lambda *record: told.append(record))
    for event in (reading(40), LOADED, reading(400)):
        recorder.on_event(event)
    assert told == []
