"""The few functions of ggml that llama_cpp gives no binding for, found through the library that it has loaded.

Shared by what reads headers (quantizing.py) and by what looks into a running graph (importance.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import llama_cpp as llama

from backends.errors import EngineError, ErrorCode

_pointer = ctypes.c_void_p
_MAX_DIMS, _MAX_OP_PARAMS, _MAX_SOURCES, _MAX_NAME = 4, 16, 10, 64


class InitParams(ctypes.Structure):
    """How a GGUF is opened: gguf_init_params."""

    _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.POINTER(_pointer))]


class GgmlTensor(ctypes.Structure):
    """The beginning of ggml_tensor, up to its name; checked_tensor() tells whether this library's is the same."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("buffer", _pointer),
        ("ne", ctypes.c_int64 * _MAX_DIMS),
        ("nb", ctypes.c_size_t * _MAX_DIMS),
        ("op", ctypes.c_int),
        ("op_params", ctypes.c_int32 * _MAX_OP_PARAMS),
        ("flags", ctypes.c_int32),
        ("src", _pointer * _MAX_SOURCES),
        ("view_src", _pointer),
        ("view_offs", ctypes.c_size_t),
        ("data", _pointer),
        ("name", ctypes.c_char * _MAX_NAME),
    ]


_SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = MappingProxyType(
    {
        "ggml_free": (None, (_pointer,)),
        "ggml_get_first_tensor": (_pointer, (_pointer,)),
        "ggml_get_next_tensor": (_pointer, (_pointer, _pointer)),
        "ggml_get_name": (ctypes.c_char_p, (_pointer,)),
        "ggml_op_desc": (ctypes.c_char_p, (_pointer,)),
        "ggml_nbytes": (ctypes.c_size_t, (_pointer,)),
        "ggml_type_name": (ctypes.c_char_p, (ctypes.c_int,)),
        "ggml_row_size": (ctypes.c_size_t, (ctypes.c_int, ctypes.c_int64)),
        "ggml_backend_buffer_is_host": (ctypes.c_bool, (_pointer,)),
        "ggml_backend_tensor_get": (None, (_pointer, _pointer, ctypes.c_size_t, ctypes.c_size_t)),
        "gguf_init_from_file": (_pointer, (ctypes.c_char_p, InitParams)),
        "gguf_init_empty": (_pointer, ()),
        "gguf_free": (None, (_pointer,)),
        "gguf_find_key": (ctypes.c_int64, (_pointer, ctypes.c_char_p)),
        "gguf_get_kv_type": (ctypes.c_int, (_pointer, ctypes.c_int64)),
        "gguf_get_val_u32": (ctypes.c_uint32, (_pointer, ctypes.c_int64)),
        "gguf_get_val_str": (ctypes.c_char_p, (_pointer, ctypes.c_int64)),
        "gguf_set_kv": (None, (_pointer, _pointer)),
        "gguf_set_val_u32": (None, (_pointer, ctypes.c_char_p, ctypes.c_uint32)),
        "gguf_set_val_str": (None, (_pointer, ctypes.c_char_p, ctypes.c_char_p)),
        "gguf_remove_key": (ctypes.c_int64, (_pointer, ctypes.c_char_p)),
        "gguf_add_tensor": (None, (_pointer, _pointer)),
        "gguf_get_meta_size": (ctypes.c_size_t, (_pointer,)),
    }
)


def ggml_calls() -> Mapping[str, Any]:
    """Return the functions by name; raises EngineError, ENGINE_MISSING, where this library lacks one."""
    library = llama.llama_cpp._lib
    found: dict[str, Any] = {}
    for name, (result, arguments) in _SIGNATURES.items():
        try:
            function = found[name] = library[name]  # an own object: nobody else's signature is touched
        except AttributeError as error:
            raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail=str(error)) from error
        function.restype, function.argtypes = result, list(arguments)
    return found


def checked_tensor(calls: Mapping[str, Any], address: int) -> GgmlTensor:
    """Return the tensor at this address; raises EngineError where this library's tensors are laid out otherwise."""
    tensor = GgmlTensor.from_address(address)
    if tensor.name != calls["ggml_get_name"](address):
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="the library and its bindings differ")
    return tensor
