"""Which weights llama.cpp would keep a second time, rearranged for this processor.

On the CPU llama.cpp copies matrices of some types into an order that its widest instructions like ("CPU_REPACK"). The
file stays mapped beside the copy, so these weights take their size twice. Which ones depends on the processor; only
the library knows, and under `no_alloc` it logs no size. So it is asked here as its own loader asks: can this buffer
type multiply by that matrix? Reads headers and no weights.
"""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp as llama

_SPLIT_NAME = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")
# Looked up a row at a time and never multiplied by; everything else with two or three dimensions is.
_LOOKED_UP = re.compile(r"(token_embd|position_embd|token_types|per_layer_token_embd)\.weight$")
_INPUT, _OUTPUT = "token_embd.weight", "output.weight"

_CPU_DEVICE = 0  # GGML_BACKEND_DEVICE_TYPE_CPU
_F32, _I32 = 0, 26
_ROWS = 512  # of the other factor; any number will do
_BUFFER_OFFSET = 8  # of ggml_tensor.buffer, behind its type
_MAX_DIMS = 4

_pointer = ctypes.c_void_p


class _InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", _pointer), ("no_alloc", ctypes.c_bool)]


class _FileParams(ctypes.Structure):
    _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", _pointer)]


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ggml_init": (_pointer, (_InitParams,)),
    "ggml_free": (None, (_pointer,)),
    "ggml_tensor_overhead": (ctypes.c_size_t, ()),
    "ggml_new_tensor": (_pointer, (_pointer, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))),
    "ggml_mul_mat": (_pointer, (_pointer, _pointer, _pointer)),
    "ggml_mul_mat_id": (_pointer, (_pointer, _pointer, _pointer, _pointer)),
    "ggml_backend_dev_by_type": (_pointer, (ctypes.c_int,)),
    "ggml_backend_dev_backend_reg": (_pointer, (_pointer,)),
    "ggml_backend_reg_get_proc_address": (_pointer, (_pointer, ctypes.c_char_p)),
    "ggml_backend_dev_supports_op": (ctypes.c_bool, (_pointer, _pointer)),
    "ggml_backend_buft_alloc_buffer": (_pointer, (_pointer, ctypes.c_size_t)),
    "ggml_backend_buffer_free": (None, (_pointer,)),
    "gguf_init_from_file": (_pointer, (ctypes.c_char_p, _FileParams)),
    "gguf_free": (None, (_pointer,)),
    "gguf_get_n_tensors": (ctypes.c_int64, (_pointer,)),
    "gguf_get_tensor_name": (ctypes.c_char_p, (_pointer, ctypes.c_int64)),
    "gguf_get_tensor_ne": (ctypes.POINTER(ctypes.c_int64), (_pointer, ctypes.c_int64)),
    "gguf_get_tensor_type": (ctypes.c_int, (_pointer, ctypes.c_int64)),
    "gguf_get_tensor_size": (ctypes.c_size_t, (_pointer, ctypes.c_int64)),
    "gguf_get_tensor_offset": (ctypes.c_size_t, (_pointer, ctypes.c_int64)),
}


@dataclass(frozen=True, slots=True)
class _Weight:
    """One tensor of a file.

    Attributes:
        dims: its four dimensions, the unused ones 1.
        offset: where it begins, counted from the first tensor.
    """

    name: str
    type: int
    dims: tuple[int, ...]
    size_bytes: int
    offset: int


def resident_weights_bytes(path: Path, gpu_layers: int = 0) -> int:
    """Return what a model's weights take on the CPU: the mapped stretch of each file, and the rearranged copies.

    Args:
        path: the model file; of a split set any.
        gpu_layers: how many layers go elsewhere.

    Returns:
        The bytes; 0 where this library does not tell, or where layers go to a GPU.
    """
    if gpu_layers and llama.llama_supports_gpu_offload():
        return 0
    try:
        ggml = _Ggml()
    except AttributeError:  # another version without one of the functions
        return 0
    files = [ggml.weights(part) for part in split_parts(path)]
    names = {weight.name for weights in files for weight in weights}
    total_bytes = 0
    for weights in files:
        mapped: list[_Weight] = []
        for weight in weights:
            is_copied = not _LOOKED_UP.search(weight.name) and ggml.is_rearranged(weight)
            if not is_copied:
                mapped.append(weight)
            is_tied = weight.name == _INPUT and _OUTPUT not in names  # multiplied by as the output matrix too
            if is_copied or (is_tied and ggml.is_rearranged(weight)):
                total_bytes += weight.size_bytes
        if mapped:
            total_bytes += max(weight.offset + weight.size_bytes for weight in mapped)
            total_bytes -= min(weight.offset for weight in mapped)
    return total_bytes


def split_parts(path: Path) -> list[Path]:
    """Return the files of the set that this file belongs to, in order, as far as they are there."""
    match = _SPLIT_NAME.search(path.name)
    if match is None:
        return [path]
    count, stem = match[1], path.name[: match.start()]
    parts = [path.with_name(f"{stem}-{number:05}-of-{count}.gguf") for number in range(1, int(count) + 1)]
    return [part for part in parts if part.is_file()]


class _Ggml:
    """The few functions of ggml that are needed, found through the library that llama_cpp has loaded.

    Attributes:
        _buffer_types: the extra ones of the CPU, the preferred first.
        _answers: what was asked before, by type and dimensions: a model has some ten kinds of matrices.
    """

    def __init__(self) -> None:
        library = llama.llama_cpp._lib
        self._functions: dict[str, Any] = {}
        for name, (result, arguments) in _SIGNATURES.items():
            function = self._functions[name] = library[name]  # an own object: nobody else's signature is touched
            function.restype, function.argtypes = result, list(arguments)
        self._device = self._functions["ggml_backend_dev_by_type"](_CPU_DEVICE)
        self._buffer_types = self._extra_buffer_types() if self._device else []
        self._answers: dict[tuple[int, tuple[int, ...]], bool] = {}

    def weights(self, path: Path) -> list[_Weight]:
        """Return a file's tensors; none when it cannot be read."""
        call = self._functions
        header = call["gguf_init_from_file"](os.fsencode(path), _FileParams(True, None))
        if not header:
            return []
        try:
            return [
                _Weight(
                    name=call["gguf_get_tensor_name"](header, number).decode(errors="replace"),
                    type=call["gguf_get_tensor_type"](header, number),
                    dims=tuple(call["gguf_get_tensor_ne"](header, number)[:_MAX_DIMS]),
                    size_bytes=call["gguf_get_tensor_size"](header, number),
                    offset=call["gguf_get_tensor_offset"](header, number),
                )
                for number in range(call["gguf_get_n_tensors"](header))
            ]
        finally:
            call["gguf_free"](header)

    def is_rearranged(self, weight: _Weight) -> bool:
        """Say whether an extra buffer type multiplies by this matrix, or by these matrices of experts."""
        key = weight.type, weight.dims
        if key not in self._answers:
            self._answers[key] = any(self._is_supported(weight, buffer_type) for buffer_type in self._buffer_types)
        return self._answers[key]

    def _extra_buffer_types(self) -> list[int]:
        call = self._functions
        registry = call["ggml_backend_dev_backend_reg"](self._device)
        address = call["ggml_backend_reg_get_proc_address"](registry, b"ggml_backend_dev_get_extra_bufts")
        if not address:
            return []
        list_all = ctypes.CFUNCTYPE(ctypes.POINTER(_pointer), _pointer)(address)
        kinds: list[int] = []
        found = list_all(self._device)
        while found and found[len(kinds)]:
            kinds.append(found[len(kinds)])
        return kinds

    def _is_supported(self, weight: _Weight, buffer_type: int) -> bool:
        call = self._functions
        num_dims = max(number for number in range(1, _MAX_DIMS + 1) if number == 1 or weight.dims[number - 1] > 1)
        if num_dims not in (2, 3):
            return False
        context = call["ggml_init"](_InitParams(8 * call["ggml_tensor_overhead"](), None, True))
        buffer = call["ggml_backend_buft_alloc_buffer"](buffer_type, 0)
        try:
            matrix = self._tensor(context, weight.type, weight.dims)
            _pointer.from_address(matrix + _BUFFER_OFFSET).value = buffer
            if num_dims == 2:
                product = call["ggml_mul_mat"](context, matrix, self._tensor(context, _F32, (weight.dims[0], _ROWS)))
            else:
                factor = self._tensor(context, _F32, (weight.dims[0], 1, _ROWS))
                chosen = self._tensor(context, _I32, (1, _ROWS))
                product = call["ggml_mul_mat_id"](context, matrix, factor, chosen)
            return bool(call["ggml_backend_dev_supports_op"](self._device, product))
        finally:
            call["ggml_backend_buffer_free"](buffer)
            call["ggml_free"](context)

    def _tensor(self, context: int, kind: int, dims: tuple[int, ...]) -> int:
        tensor: int = self._functions["ggml_new_tensor"](context, kind, len(dims), (ctypes.c_int64 * len(dims))(*dims))
        return tensor
