"""A buffer that ggml allocates is in memory at once, and only for as long as that was asked for."""

from __future__ import annotations

import contextlib
import ctypes

import llama_cpp as llama
import pytest

from backends.llama_cpp_engine.touching import touched_buffers
from backends.memory_meter import read_process_memory

MIB = 2**20
SIZE_BYTES = 96 * MIB


@contextlib.contextmanager
def allocated(size_bytes: int):
    """A buffer of ordinary CPU memory, allocated as llama.cpp allocates its own; yields how far the process grew."""
    library = llama.llama_cpp._lib
    pointer = ctypes.c_void_p
    describe, allocate, free = (
        library[name]
        for name in ("ggml_backend_cpu_buffer_type", "ggml_backend_buft_alloc_buffer", "ggml_backend_buffer_free")
    )
    describe.restype = allocate.restype = pointer
    allocate.argtypes, free.argtypes, free.restype = [pointer, ctypes.c_size_t], [pointer], None
    before = read_process_memory().anonymous_bytes
    buffer = allocate(describe(), size_bytes)
    try:
        yield read_process_memory().anonymous_bytes - before
    finally:
        free(buffer)


def test_a_buffer_is_resident_at_once_while_it_is_asked_for_and_as_before_afterwards() -> None:
    with allocated(SIZE_BYTES) as grown_bytes:
        assert grown_bytes < SIZE_BYTES / 2
    with touched_buffers(), allocated(SIZE_BYTES) as grown_bytes:
        assert grown_bytes == pytest.approx(SIZE_BYTES, abs=4 * MIB)
    with allocated(SIZE_BYTES) as grown_bytes:
        assert grown_bytes < SIZE_BYTES / 2


def test_an_empty_buffer_and_one_that_cannot_be_had_are_passed_on(capfd) -> None:
    llama.llama_log_set(llama.llama_log_callback(), ctypes.c_void_p(0))  # ggml's own: it goes to stderr
    with touched_buffers():
        with allocated(0):
            pass
        with allocated(2**62):
            pass
    assert "failed to allocate" in capfd.readouterr().err


def test_the_function_is_put_back_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="broken"), touched_buffers():
        raise ValueError("broken")
    with allocated(SIZE_BYTES) as grown_bytes:
        assert grown_bytes < SIZE_BYTES / 2
