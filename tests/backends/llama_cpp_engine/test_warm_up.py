"""The first steps: a whole token and a full micro-batch, cut off in time and no error then."""

from __future__ import annotations

import ctypes

import llama_cpp
import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import warm_up as module
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.warm_up import warm_up
from backends.memory_meter import read_process_memory


class FakeBatch:
    capacity = 512
    handle = "batch"

    def __init__(self) -> None:
        self.filled: list[tuple[int, bool]] = []

    def fill_one(self, token: int, position: int) -> None:
        self.filled.append((1, True))

    def fill(self, token_ids, first_position: int, *, wants_logits: bool) -> None:
        self.filled.append((len(token_ids), wants_logits))


class FakeLlama:
    """Decodes at once, or waits for the flag as a slow processor does."""

    def __init__(self, flag, codes: list[int], *, waits: bool = False) -> None:
        self.flag, self.codes, self.waits = flag, codes, waits
        self.cleared = 0

    def llama_decode(self, _context, _batch) -> int:
        code = self.codes.pop(0)
        while code == 2 and self.waits and self.flag[0] == b"\0":
            pass
        return code

    def llama_synchronize(self, _context) -> None:
        pass

    def llama_get_memory(self, _context) -> str:
        return "memory"

    def llama_memory_clear(self, _memory, _data) -> None:
        self.cleared += 1


def run(monkeypatch, codes: list[int], limit_s: float = 60.0, *, waits: bool = False):
    flag, batch = ctypes.create_string_buffer(2), FakeBatch()
    fake = FakeLlama(flag, codes, waits=waits)
    monkeypatch.setattr(module, "llama", fake)
    whole = warm_up("context", batch, 1, flag, limit_s)
    assert flag[0] == b"\0"
    return whole, batch.filled, fake.cleared


def test_a_token_then_a_full_micro_batch_are_computed(monkeypatch) -> None:
    assert run(monkeypatch, [0, 0]) == (True, [(1, True), (512, True)], 1)


def test_a_micro_batch_that_takes_too_long_is_cut_off_without_an_error(monkeypatch) -> None:
    whole, _filled, _cleared = run(monkeypatch, [0, 2], limit_s=0.01, waits=True)
    assert not whole


@pytest.mark.parametrize(("codes", "last"), [([1], 1), ([2], 2), ([0, 1], 1), ([0, -3], -3)])
def test_a_step_that_fails_is_an_error_and_leaves_no_timer(monkeypatch, codes, last) -> None:
    with pytest.raises(EngineError) as caught:
        run(monkeypatch, codes)
    assert caught.value.code is ErrorCode.DECODE_FAILED
    assert caught.value.parameters["detail"] == f"the first step returned {last}"


def test_a_load_reports_no_error_of_its_own_making_and_leaves_the_context_empty(starter_model) -> None:
    engine = LlamaCppEngine()
    events: list[protocol.Event] = []
    engine.load(protocol.LoadModel(str(starter_model), protocol.LoadParams(context_tokens=1024)), events.append)
    # The micro-batch is cut off on a slow processor, and llama.cpp calls that an error.
    assert [event for event in events if isinstance(event, protocol.LogRecorded) and event.level == "error"] == []
    assert llama_cpp.llama_memory_seq_pos_max(engine._memory, 0) == -1
    assert engine._abort_flag.raw == b"\0\0"
    engine.unload()


def test_after_a_load_its_buffers_are_in_memory_and_a_long_prompt_adds_next_to_nothing(starter_model) -> None:
    engine = LlamaCppEngine()
    params = protocol.LoadParams(context_tokens=4096, threads=1)
    loaded = engine.load(protocol.LoadModel(str(starter_model), params), lambda _event: None)
    before = read_process_memory().anonymous_bytes
    prompt = protocol.TokenIds(tuple(range(100, 612)))
    once = protocol.SamplingParams(temperature=0, max_tokens=1)
    engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=prompt, params=once))
    while engine.has_work:
        engine.step()
    grown_bytes = read_process_memory().anonymous_bytes - before
    engine.unload()
    assert loaded.memory.compute_bytes > 16 * 2**20
    assert grown_bytes < 4 * 2**20
