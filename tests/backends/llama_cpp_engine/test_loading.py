"""What is asked for becomes what llama.cpp is given, and its refusals become codes."""

from __future__ import annotations

import ctypes

import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.loading import (
    DEFAULT_CONTEXT_TOKENS,
    MAX_CONTEXT_TOKENS,
    check_file,
    context_error,
    context_params,
    context_tokens,
    failed_buffer_bytes,
    free_memory_bytes,
    load_error,
    model_params,
)
from backends.protocol import LoadParams


@pytest.mark.parametrize(
    ("asked", "trained", "given"),
    [(0, 131072, DEFAULT_CONTEXT_TOKENS), (0, 2048, 2048), (4096, 8192, 4096), (100_000, 8192, 8192), (0, 0, 8192)],
)
def test_the_context_is_what_was_asked_but_never_longer_than_trained(asked, trained, given) -> None:
    assert context_tokens(LoadParams(context_tokens=asked), trained) == given


@pytest.mark.parametrize(("asked", "given"), [(0, 2048), (1024, 1024), (32768, 32768), (2**31 - 1, MAX_CONTEXT_TOKENS)])
def test_a_longer_context_than_trained_is_given_to_who_insists_up_to_a_bound(asked, given) -> None:
    assert context_tokens(LoadParams(context_tokens=asked, allow_long_context=True), 2048) == given


def test_a_lie_about_the_trained_context_is_bounded_too() -> None:
    assert context_tokens(LoadParams(context_tokens=2**31 - 1), 2**31 - 1) == MAX_CONTEXT_TOKENS


def test_streams_may_have_the_trained_context_each_and_unified_cells_are_shared() -> None:
    streams = LoadParams(context_tokens=100_000, kv_mode="streams", max_sequences=4)
    assert context_tokens(streams, 8192) == 4 * 8192
    assert context_tokens(LoadParams(context_tokens=100_000, max_sequences=4), 8192) == 8192


class FakeLlama:
    """llama.cpp's functions that params are made with, and defaults that can be changed."""

    LLAMA_LOAD_MODE_AUTO = -1
    ggml_abort_callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)

    class Params:
        n_batch, n_ubatch = 2048, 512
        load_mode, use_extra_bufts, no_alloc, n_gpu_layers = -1, True, False, -1

    def llama_context_default_params(self):
        return self.Params()

    def llama_model_default_params(self):
        return self.Params()

    def llama_model_n_ctx_train(self, _model) -> int:
        return 8192

    def llama_max_parallel_sequences(self) -> int:
        return 256


@pytest.fixture
def fake_llama(monkeypatch) -> FakeLlama:
    fake = FakeLlama()
    fake.Params = type("Params", (FakeLlama.Params,), {})
    monkeypatch.setattr(loading, "llama", fake)
    return fake


def made(**wanted: object):
    return context_params(None, LoadParams(**wanted), ctypes.create_string_buffer(2))


def test_what_is_asked_for_is_what_llama_cpp_gets(fake_llama) -> None:
    params = made(context_tokens=4096, kv_type="q8_0", threads=3, micro_batch_tokens=128, batch_tokens=1024)
    assert (params.n_ctx, params.n_batch, params.n_ubatch, params.n_threads) == (4096, 1024, 128, 3)
    assert (params.type_k, params.type_v, params.swa_full) == (8, 8, False)
    assert (params.n_seq_max, params.n_outputs_max, params.kv_unified) == (1, 1, True)


def test_batches_are_never_longer_than_the_context(fake_llama) -> None:
    params = made(context_tokens=256)
    assert (params.n_batch, params.n_ubatch) == (256, 256)


def test_streams_have_cells_of_their_own(fake_llama) -> None:
    params = made(context_tokens=8192, kv_mode="streams", max_sequences=4)
    assert (params.n_seq_max, params.n_outputs_max, params.kv_unified) == (4, 4, False)


@pytest.mark.parametrize("wanted", [{"kv_type": "f4"}, {"max_sequences": 0}, {"max_sequences": 257}])
def test_params_that_make_no_sense_are_refused(fake_llama, wanted) -> None:
    with pytest.raises(EngineError) as caught:
        made(**wanted)
    assert caught.value.code is ErrorCode.BAD_PARAMS


@pytest.mark.parametrize(("field", "value"), [("n_ubatch", 2048), ("no_alloc", True), ("load_mode", 0)])
def test_a_shifted_struct_is_noticed_before_it_is_used(fake_llama, field, value) -> None:
    setattr(fake_llama.Params, field, value)
    with pytest.raises(EngineError) as caught:
        _ = made() if field == "n_ubatch" else model_params(LoadParams())
    assert caught.value.code is ErrorCode.ENGINE_MISSING


def test_a_file_is_looked_at_before_llama_cpp_is(tmp_path) -> None:
    (tmp_path / "good.gguf").write_bytes(b"GGUF and more")
    (tmp_path / "bad.gguf").write_bytes(b"GGU")
    check_file(tmp_path / "good.gguf")
    for name, code in (
        ("bad.gguf", ErrorCode.NOT_A_MODEL),
        ("none.gguf", ErrorCode.FILE_MISSING),
        ("", ErrorCode.FILE_UNREADABLE),  # the folder itself
    ):
        with pytest.raises(EngineError) as caught:
            check_file(tmp_path / name)
        assert caught.value.code is code


NO_ROOM = [
    "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 824633720832",
    "llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache",
]


def test_a_context_that_finds_no_memory_tells_of_the_buffer_that_was_too_large() -> None:
    assert failed_buffer_bytes(NO_ROOM) == 824633720832
    error = context_error(4096, NO_ROOM)
    assert error.code is ErrorCode.OUT_OF_MEMORY
    assert error.parameters["needed_bytes"] == 824633720832
    assert error.parameters["free_bytes"] > 0


def test_a_context_that_fails_otherwise_tells_the_last_reason() -> None:
    error = context_error(4096, ["first", "n_ctx_seq == 0"])
    assert (error.code, dict(error.parameters)) == (
        ErrorCode.CONTEXT_FAILED,
        {"context_tokens": 4096, "detail": "n_ctx_seq == 0"},
    )
    assert context_error(4096, []).parameters["detail"] == ""
    assert failed_buffer_bytes(["nothing of the kind"]) == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("error loading model: unknown model architecture: 'nonsense'", ErrorCode.UNKNOWN_ARCHITECTURE),
        ("llama_mmap: mmap failed: Cannot allocate memory", ErrorCode.OUT_OF_MEMORY),
        ("ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99", ErrorCode.OUT_OF_MEMORY),
        ("llama_model_load: error loading model: tensor 'x' data is not within the file bounds", ErrorCode.LOAD_FAILED),
        ("", ErrorCode.LOAD_FAILED),
    ],
)
def test_the_reason_of_a_refusal_is_read_from_the_log(tmp_path, line, code) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    error = load_error(path, [line] if line else [])
    assert error.code is code
    if code is ErrorCode.UNKNOWN_ARCHITECTURE:
        assert error.parameters["architecture"] == "nonsense"
    if code is ErrorCode.LOAD_FAILED:
        assert error.parameters["detail"]


def test_free_memory_is_a_number_of_bytes() -> None:
    assert free_memory_bytes() > 1024 * 1024


def load_starter(path) -> None:
    command = protocol.LoadModel(str(path), LoadParams(context_tokens=4096))
    LlamaCppEngine().load(command, lambda _event: None)


def no_room(*_arguments: object) -> object:
    raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=7, free_bytes=5)


def test_a_context_that_memory_cannot_hold_is_refused_with_all_that_the_load_needs(starter_model, monkeypatch) -> None:
    monkeypatch.setattr("backends.llama_cpp_engine.loading.create_context", no_room)
    with pytest.raises(EngineError) as caught:
        load_starter(starter_model)
    assert caught.value.code is ErrorCode.OUT_OF_MEMORY
    # 92 MiB of weights, 90 of KV cache, some 17 of compute: not only the buffer that was too large
    assert 190 * 2**20 < caught.value.parameters["needed_bytes"] < 210 * 2**20
    assert caught.value.parameters["free_bytes"] > 5


def test_where_a_probe_fails_too_the_buffer_that_was_too_large_is_told(starter_model, monkeypatch) -> None:
    def fail(*_arguments: object) -> protocol.MemorySplit:
        raise EngineError(ErrorCode.LOAD_FAILED, path="", detail="")

    monkeypatch.setattr("backends.llama_cpp_engine.loading.create_context", no_room)
    monkeypatch.setattr("backends.llama_cpp_engine.engine.probe_memory", fail)
    with pytest.raises(EngineError) as caught:
        load_starter(starter_model)
    assert caught.value.parameters == {"needed_bytes": 7, "free_bytes": 5}
