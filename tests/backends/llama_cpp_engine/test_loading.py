"""What is asked for becomes what llama.cpp is given, and its refusals become codes."""

from __future__ import annotations

import pytest

from backends.errors import ErrorCode
from backends.llama_cpp_engine.loading import (
    DEFAULT_CONTEXT_TOKENS,
    context_tokens,
    free_memory_bytes,
    load_error,
    physical_cores,
)


@pytest.mark.parametrize(
    ("asked", "trained", "given"),
    [(0, 131072, DEFAULT_CONTEXT_TOKENS), (0, 2048, 2048), (4096, 8192, 4096), (100_000, 8192, 8192), (0, 0, 8192)],
)
def test_the_context_is_what_was_asked_but_never_longer_than_trained(asked, trained, given) -> None:
    assert context_tokens(asked, trained) == given


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


def test_threads_are_at_least_one_and_at_most_the_cores_allowed() -> None:
    import os

    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))


def test_free_memory_is_a_number_of_bytes() -> None:
    assert free_memory_bytes() > 1024 * 1024
