"""From a path to a model and a context in llama.cpp, or to the reason why not.

The header was checked in the program before the worker saw the path; here llama.cpp's own refusals are put in codes.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from pathlib import Path
from typing import Any

import llama_cpp as llama
import psutil

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine_log import EngineLog

# ggml_type values of the KV types offered; a quantized V needs flash attention, which llama.cpp turns on by itself.
KV_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q5_1": 7, "q5_0": 6, "q4_1": 3, "q4_0": 2}

DEFAULT_CONTEXT_TOKENS = (
    8192  # room for a long talk; more is the person's choice, since the KV cache is reserved at once
)
_PROGRESS_INTERVAL_S = 0.05

_UNKNOWN_ARCHITECTURE = re.compile(r"unknown model architecture: '([^']+)'")
_OUT_OF_MEMORY = re.compile(
    r"cannot allocate memory|failed to allocate|out of memory|unable to allocate|bad_alloc|mmap failed|alloc.* failed",
    re.IGNORECASE,
)


def physical_cores() -> int:
    """Return how many physical cores this process may use; more threads than that slow decoding down."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def load_model(command: protocol.LoadModel, log: EngineLog, report: Report) -> Any:
    """Load the weights and return the model handle; raises EngineError."""
    path = Path(command.model_path)
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise EngineError(ErrorCode.NOT_A_MODEL, path=str(path), detail="it does not begin with GGUF")
    except FileNotFoundError as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=str(path)) from error
    except OSError as error:
        raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail=error.strerror or str(error)) from error
    params = llama.llama_model_default_params()
    params.n_gpu_layers = command.params.gpu_layers
    reported_s = 0.0

    def on_progress(done: float, _user_data: object) -> bool:
        nonlocal reported_s
        if done >= 1.0 or time.monotonic() - reported_s > _PROGRESS_INTERVAL_S:
            reported_s = time.monotonic()
            report(protocol.Progress(phase="load", done=done, total=1.0))
        return True

    params.progress_callback = callback = llama.llama_progress_callback(on_progress)
    log.clear()
    model = llama.llama_model_load_from_file(os.fsencode(path), params)
    del callback  # kept alive until here
    if not model:
        raise load_error(path, log.problems())
    return model


def load_error(path: Path, problems: list[str]) -> EngineError:
    """Return the error that llama.cpp's log lines tell of."""
    text = "\n".join(problems)
    if match := _UNKNOWN_ARCHITECTURE.search(text):
        return EngineError(ErrorCode.UNKNOWN_ARCHITECTURE, path=str(path), architecture=match[1])
    if _OUT_OF_MEMORY.search(text):
        return EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=path.stat().st_size, free_bytes=free_memory_bytes())
    detail = next((line.partition(": ")[2] or line for line in problems if "error" in line.lower()), "")
    return EngineError(ErrorCode.LOAD_FAILED, path=str(path), detail=detail or "llama.cpp gives no reason")


def free_memory_bytes() -> int:
    """Return the memory that is free for use now, in bytes."""
    return int(psutil.virtual_memory().available)


def context_tokens(asked: int, trained: int) -> int:
    """Return the context length to create: what was asked, at most what the model was trained for."""
    trained = trained or DEFAULT_CONTEXT_TOKENS
    return min(asked or DEFAULT_CONTEXT_TOKENS, trained)


def create_context(
    model: Any, command: protocol.LoadModel, log: EngineLog, abort_flag: ctypes.Array[ctypes.c_char]
) -> Any:
    """Create the context with its KV cache and buffers and return its handle; raises EngineError.

    Args:
        model: the loaded model.
        command: how it is to be loaded.
        log: where the reason of a failure is read.
        abort_flag: [2] bytes, the second always 0. A first byte other than 0 ends llama_decode: llama.cpp asks libc's
            strlen for the flag's length before every graph node, without the GIL and at no measurable cost.
    """
    wanted = command.params
    kv_type = KV_TYPES.get(wanted.kv_type)
    if kv_type is None:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"unknown KV type {wanted.kv_type}")
    params = llama.llama_context_default_params()
    if (params.n_batch, params.n_ubatch) != (2048, 512):  # known defaults: a shifted struct would show here
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="the library and its bindings differ")
    length = context_tokens(wanted.context_tokens, llama.llama_model_n_ctx_train(model))
    threads = wanted.threads or physical_cores()
    params.n_ctx = length
    params.n_batch = max(1, min(wanted.batch_tokens, length))
    params.n_ubatch = max(1, min(wanted.micro_batch_tokens, length))
    params.n_seq_max = 1
    params.n_threads = params.n_threads_batch = threads
    params.type_k = params.type_v = kv_type
    params.swa_full = False
    params.no_perf = True
    params.abort_callback = strlen_callback()
    params.abort_callback_data = ctypes.addressof(abort_flag)
    context = llama.llama_init_from_model(model, params)
    if not context:
        text = "\n".join(log.problems())
        if _OUT_OF_MEMORY.search(text):
            raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=0, free_bytes=free_memory_bytes())
        raise EngineError(ErrorCode.CONTEXT_FAILED, context_tokens=length, detail=text.splitlines()[-1] if text else "")
    return context


def strlen_callback() -> Any:
    """Return libc's strlen as an abort callback: a C function that says whether a flag byte is set."""
    libc = ctypes.CDLL("msvcrt" if os.name == "nt" else None)
    return ctypes.cast(libc.strlen, llama.ggml_abort_callback)
