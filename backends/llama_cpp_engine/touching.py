"""Buffers that are in memory from the moment they are allocated.

The system hands out memory page by page, when a page is written to; until then a buffer is a promise. llama.cpp
writes to its KV cache at once, but to its compute buffer only as far as prompts reach: a model that does not fit loads,
and dies of its first long chat (field report 17), and every reading of the memory before that tells too little.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

import llama_cpp as llama

_pointer = ctypes.c_void_p
_Allocate = ctypes.CFUNCTYPE(_pointer, _pointer, ctypes.c_size_t)
# ggml_backend_buffer_type.iface.alloc_buffer, behind get_name (ggml-backend-impl.h).
_ALLOCATE_OFFSET = ctypes.sizeof(_pointer)


@contextlib.contextmanager
def touched_buffers() -> Iterator[None]:
    """Have ggml fill each buffer it allocates on the CPU meanwhile with zeros.

    ggml has no setting for this. It allocates through a function pointer in the structure that describes ordinary CPU
    memory; for the time being that pointer leads through here.
    """
    library = llama.llama_cpp._lib
    describe, name, clear = (
        library[function]
        for function in ("ggml_backend_cpu_buffer_type", "ggml_backend_buft_name", "ggml_backend_buffer_clear")
    )
    describe.restype, describe.argtypes = _pointer, []
    name.restype, name.argtypes = ctypes.c_char_p, [_pointer]
    clear.restype, clear.argtypes = None, [_pointer, ctypes.c_uint8]
    kind = describe()
    assert name(kind) == b"CPU"
    place = _pointer.from_address(kind + _ALLOCATE_OFFSET)
    original = place.value
    assert original is not None
    allocate = _Allocate(original)

    def allocate_touched(kind: int, size_bytes: int) -> int | None:
        buffer: int | None = allocate(kind, size_bytes)
        if buffer and size_bytes:
            clear(buffer, 0)
        return buffer

    replaced = _Allocate(allocate_touched)
    place.value = ctypes.cast(replaced, _pointer).value
    try:
        yield
    finally:
        place.value = original
