"""A probe tells to the last 0.01 MiB what a real load then takes, and reads no weight for it."""

from __future__ import annotations

import itertools
import os

import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading, memory_probe
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.memory_meter import read_process_memory
from tests.helpers.gguf_files import TinyGguf, header_of, split_model, write_header_only, write_parts

MIB = 2**20
CONTEXTS = (512, 4096, 32768)
KV_TYPES = {"f16": 16, "q8_0": 8.5, "q4_0": 4.5}  # bits an element


def probe(engine: LlamaCppEngine, path: object, **params: object) -> protocol.MemorySplit:
    command = protocol.ProbeMemory(
        request_id=protocol.RequestId(1), model_path=str(path), params=protocol.LoadParams(**params)
    )
    return engine.probe_memory(command, lambda _event: None)


def load(engine: LlamaCppEngine, path: object, **params: object) -> protocol.ModelLoaded:
    return engine.load(protocol.LoadModel(str(path), protocol.LoadParams(**params)), lambda _event: None)


@pytest.fixture
def engine():
    made = LlamaCppEngine()
    yield made
    made.unload()


@pytest.mark.parametrize(("context", "kv_type"), list(itertools.product(CONTEXTS, KV_TYPES)))
def test_a_probe_equals_the_load_that_follows_in_every_buffer(engine, starter_model, context, kv_type) -> None:
    # 32,768 tokens are four times what the model was trained for: only who insists gets them.
    params = {"context_tokens": context, "kv_type": kv_type, "allow_long_context": True}
    told = probe(engine, starter_model, **params)
    loaded = load(engine, starter_model, **params)
    assert loaded.context_tokens == context
    real = loaded.memory
    assert (told.kv_reserved_bytes, told.compute_bytes, told.output_bytes, told.weights_bytes, told.device) == (
        real.kv_reserved_bytes,
        real.compute_bytes,
        real.output_bytes,
        real.weights_bytes,
        real.device,
    )
    # 30 layers, 3 KV heads of 64 elements, K and V; llama.cpp rounds to 0.01 MiB
    assert told.kv_reserved_bytes == pytest.approx(context * 30 * 3 * 64 * 2 * KV_TYPES[kv_type] / 8, abs=0.01 * MIB)


@pytest.mark.parametrize("params", [{"micro_batch_tokens": 128}, {"kv_mode": "streams", "max_sequences": 2}])
def test_a_probe_follows_every_param_that_moves_a_buffer(engine, starter_model, params) -> None:
    told = probe(engine, starter_model, context_tokens=1024, **params)
    real = load(engine, starter_model, context_tokens=1024, **params).memory
    assert (told.kv_reserved_bytes, told.compute_bytes, told.output_bytes) == (
        real.kv_reserved_bytes,
        real.compute_bytes,
        real.output_bytes,
    )


def test_a_probe_takes_next_to_nothing_and_gives_it_back(starter_model) -> None:
    engine = LlamaCppEngine()
    probe(engine, starter_model, context_tokens=8192)  # the library's own start is not the probe's
    before = read_process_memory()
    for _ in range(5):
        assert probe(engine, starter_model, context_tokens=8192).kv_reserved_bytes == 180 * MIB
    after = read_process_memory()
    assert after.anonymous_bytes - before.anonymous_bytes < 8 * MIB
    assert after.file_bytes - before.file_bytes < 8 * MIB


def test_no_weight_is_read(engine, starter_model, tmp_path) -> None:
    # The header in front of a hole: a weight that was read would be zero, and the hole would fill the page cache.
    header = header_of(starter_model)
    path = write_header_only(header, starter_model.stat().st_size, tmp_path / "hole.gguf")
    told = probe(engine, path, context_tokens=4096)
    real = probe(engine, starter_model, context_tokens=4096)
    assert (told.weights_bytes, told.kv_reserved_bytes, told.compute_bytes) == (
        real.weights_bytes,
        real.kv_reserved_bytes,
        real.compute_bytes,
    )
    read_bytes = _read_bytes()
    if read_bytes is not None:
        probe(engine, path, context_tokens=4096)
        # llama.cpp and the count of rearranged weights each read the header, some blocks of it twice
        assert _read_bytes() - read_bytes < 4 * len(header) < 0.25 * starter_model.stat().st_size


def _read_bytes() -> int | None:
    """Return what this process has read from files so far, cached or not; None where nobody counts."""
    try:
        with open("/proc/self/io") as counts:  # noqa: PTH123 - a file of the kernel
            return next(int(line.split()[1]) for line in counts if line.startswith("rchar"))
    except (OSError, StopIteration):
        return None


def test_a_probe_works_beside_a_loaded_model_and_leaves_it_as_it_is(engine, starter_model) -> None:
    load(engine, starter_model, context_tokens=512, threads=1)
    request = protocol.Generate(
        request_id=protocol.RequestId(5),
        prompt=protocol.Text("Once upon a time"),
        params=protocol.SamplingParams(temperature=0, max_tokens=6),
    )

    def answer() -> list[int]:
        engine.add(request)
        events = [event for _step in range(20) if engine.has_work for event in engine.step()]
        return [
            i for event in events if isinstance(event, protocol.StepDone) for p in event.pieces for i in p.token_ids
        ]

    first = answer()
    assert probe(engine, starter_model, context_tokens=4096).kv_reserved_bytes == 90 * MIB
    assert answer() == first


def test_what_a_load_would_refuse_a_probe_refuses(engine, starter_model, tmp_path) -> None:
    (tmp_path / "text.gguf").write_text("no model")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\3\0\0\0" + b"\0" * 16)
    odd = TinyGguf().write(tmp_path / "tiny.gguf")
    for path, params, code in (
        (tmp_path / "none.gguf", {}, ErrorCode.FILE_MISSING),
        (tmp_path / "text.gguf", {}, ErrorCode.NOT_A_MODEL),
        (tmp_path / "cut.gguf", {}, ErrorCode.LOAD_FAILED),
        (odd, {}, ErrorCode.LOAD_FAILED),
        (starter_model, {"kv_type": "f4"}, ErrorCode.BAD_PARAMS),
        (starter_model, {"max_sequences": 100_000}, ErrorCode.BAD_PARAMS),
    ):
        with pytest.raises(EngineError) as caught:
            probe(engine, path, **params)
        assert caught.value.code is code


def test_a_set_with_a_missing_part_is_refused(engine, tmp_path) -> None:
    first, *others = write_parts(tmp_path, split_model())
    for path in others:
        os.remove(path)  # noqa: PTH107 - the plain call
    with pytest.raises(EngineError) as caught:
        probe(engine, first)
    assert caught.value.code is ErrorCode.LOAD_FAILED


def test_the_longest_context_that_can_be_asked_for_is_bounded(engine, starter_model, monkeypatch) -> None:
    monkeypatch.setattr(loading, "MAX_CONTEXT_TOKENS", 2**20)  # 2^24 takes 800 MB for llama.cpp's notes on its cells
    told = probe(engine, starter_model, context_tokens=2**31 - 1, allow_long_context=True, kv_type="q4_0")
    assert told.kv_reserved_bytes == pytest.approx(2**20 * 22.5 * 1024 * 4.5 / 16, abs=0.01 * MIB)
    assert probe(engine, starter_model, context_tokens=2**31 - 1).kv_reserved_bytes == 180 * MIB  # the model's own


def test_a_library_that_allocates_after_all_is_not_believed(engine, starter_model, monkeypatch) -> None:
    monkeypatch.setattr(memory_probe.EngineLog, "says_no_alloc", lambda _log: False)
    with pytest.raises(EngineError) as caught:
        probe(engine, starter_model, context_tokens=512)
    assert caught.value.code is ErrorCode.ENGINE_MISSING
