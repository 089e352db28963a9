"""The functions of ggml that are called by hand are there, and tensors are laid out as we think."""

from __future__ import annotations

import ctypes
import os

import pytest

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.ggml_calls import GgmlTensor, InitParams, checked_tensor, ggml_calls
from tests.helpers.small_llama import write_small_llama


def test_a_tensor_read_by_hand_has_the_name_and_shape_that_the_file_gives_it(tmp_path) -> None:
    path = write_small_llama(tmp_path / "small.gguf")
    calls, context = ggml_calls(), ctypes.c_void_p()
    header = calls["gguf_init_from_file"](os.fsencode(path), InitParams(True, ctypes.pointer(context)))
    tensor = checked_tensor(calls, calls["ggml_get_first_tensor"](context))
    assert (tensor.name, tuple(tensor.ne)) == (b"token_embd.weight", (256, 384, 1, 1))
    assert tensor.nb[1] == 256 * 2
    calls["gguf_free"](header)
    calls["ggml_free"](context)


def test_another_layout_is_refused(tmp_path) -> None:
    tensor = GgmlTensor(name=b"one")
    calls = {"ggml_get_name": lambda _address: b"other"}
    with pytest.raises(EngineError) as caught:
        checked_tensor(calls, ctypes.addressof(tensor))
    assert caught.value.code is ErrorCode.ENGINE_MISSING
