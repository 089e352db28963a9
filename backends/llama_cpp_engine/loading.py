"""From a path to a model and a context in llama.cpp, or to the reason why not.

The header was checked in the program before the worker saw the path; here llama.cpp's own refusals are put in codes.
What llama.cpp is asked for is made in one place, so that a probe (memory_probe.py) asks for what a load gets.
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
from backends.llama_cpp_engine.touching import touched_buffers
from backends.processors import physical_cores

# ggml_type values of the KV types offered; a quantized V needs flash attention, which llama.cpp turns on by itself.
KV_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q5_1": 7, "q5_0": 6, "q4_1": 3, "q4_0": 2}

DEFAULT_CONTEXT_TOKENS = (
    8192  # room for a long talk; more is the person's choice, since the KV cache is reserved at once
)
# llama.cpp notes sequence and position of every cell at once, whatever the model: 48 bytes each. The longest context
# that anything is trained for is 10 million tokens; beyond this a number is a mistake or a lie, and would exhaust
# the memory before a buffer is asked for.
MAX_CONTEXT_TOKENS = 2**24
_PROGRESS_INTERVAL_S = 0.05

_UNKNOWN_ARCHITECTURE = re.compile(r"unknown model architecture: '([^']+)'")
_OUT_OF_MEMORY = re.compile(
    r"cannot allocate memory|failed to allocate|out of memory|unable to allocate|bad_alloc|mmap failed|alloc.* failed",
    re.IGNORECASE,
)
_FAILED_BUFFER = re.compile(r"failed to allocate (?:buffer of size|\S+ buffer of size) (\d+)")


def load_model(command: protocol.LoadModel, log: EngineLog, report: Report) -> Any:
    """Load the weights and return the model handle; raises EngineError."""
    path = Path(command.model_path)
    check_file(path)
    params = model_params(command.params)
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


def check_file(path: Path) -> None:
    """Raise EngineError unless this is a readable file that begins as a GGUF does."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise EngineError(ErrorCode.NOT_A_MODEL, path=str(path), detail="it does not begin with GGUF")
    except FileNotFoundError as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=str(path)) from error
    except OSError as error:
        raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail=error.strerror or str(error)) from error


def model_params(wanted: protocol.LoadParams) -> Any:
    """Return what llama.cpp is asked for when it reads the file."""
    params = llama.llama_model_default_params()
    # Known defaults: a shifted struct would show here, and a probe would load the model instead.
    if (params.load_mode, params.use_extra_bufts, params.no_alloc) != (llama.LLAMA_LOAD_MODE_AUTO, True, False):
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="the library and its bindings differ")
    params.n_gpu_layers = wanted.gpu_layers
    return params


def load_error(path: Path, problems: list[str]) -> EngineError:
    """Return the error that llama.cpp's log lines tell of."""
    text = "\n".join(problems)
    if match := _UNKNOWN_ARCHITECTURE.search(text):
        return EngineError(ErrorCode.UNKNOWN_ARCHITECTURE, path=str(path), architecture=match[1])
    if is_out_of_memory(problems):
        return EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=path.stat().st_size, free_bytes=free_memory_bytes())
    detail = next((line.partition(": ")[2] or line for line in problems if "error" in line.lower()), "")
    return EngineError(ErrorCode.LOAD_FAILED, path=str(path), detail=detail or "llama.cpp gives no reason")


def is_out_of_memory(problems: list[str]) -> bool:
    """Say whether these log lines tell of memory that was not to be had."""
    return _OUT_OF_MEMORY.search("\n".join(problems)) is not None


def failed_buffer_bytes(problems: list[str]) -> int:
    """Return the size of the buffer that these log lines say could not be had; 0 when they name none."""
    match = _FAILED_BUFFER.search("\n".join(problems))
    return int(match[1]) if match else 0


def free_memory_bytes() -> int:
    """Return the memory that is free for use now, in bytes."""
    return int(psutil.virtual_memory().available)


def context_tokens(wanted: protocol.LoadParams, trained: int) -> int:
    """Return the context length to create.

    It is what was asked, at most what the model was trained for: for each sequence, where each has cells of its own.
    Only allow_long_context exceeds that, and nothing exceeds MAX_CONTEXT_TOKENS.
    """
    most = (trained or DEFAULT_CONTEXT_TOKENS) * (wanted.max_sequences if wanted.kv_mode == "streams" else 1)
    if wanted.allow_long_context:
        most = max(most, wanted.context_tokens)
    return min(wanted.context_tokens or DEFAULT_CONTEXT_TOKENS, most, MAX_CONTEXT_TOKENS)


def context_params(model: Any, wanted: protocol.LoadParams, abort_flag: ctypes.Array[ctypes.c_char]) -> Any:
    """Return what llama.cpp is asked for when it creates a context; raises EngineError.

    Logits are asked for one row a sequence at a time, the last one's of what was read. Saying so (n_outputs_max) keeps
    llama.cpp from reserving room for the logits of a whole micro-batch, which nobody reads: 81 of the 98 MiB of the
    starter's compute buffer, and more than the weights for a small model with a large vocabulary.

    Args:
        model: the loaded model.
        wanted: how it is to be loaded.
        abort_flag: [2] bytes, the second always 0. A first byte other than 0 ends llama_decode: llama.cpp asks libc's
            strlen for the flag's length before every graph node, without the GIL and at no measurable cost.
    """
    kv_type = KV_TYPES.get(wanted.kv_type)
    if kv_type is None:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"unknown KV type {wanted.kv_type}")
    most_sequences = llama.llama_max_parallel_sequences()
    if not 1 <= wanted.max_sequences <= most_sequences:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"the sequences must be 1 to {most_sequences}")
    params = llama.llama_context_default_params()
    if (params.n_batch, params.n_ubatch) != (2048, 512):  # known defaults: a shifted struct would show here
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="the library and its bindings differ")
    length = context_tokens(wanted, llama.llama_model_n_ctx_train(model))
    params.n_ctx = length
    params.n_batch = max(1, min(wanted.batch_tokens, length))
    params.n_ubatch = max(1, min(wanted.micro_batch_tokens, length))
    params.n_seq_max = params.n_outputs_max = wanted.max_sequences
    params.kv_unified = wanted.kv_mode != "streams"
    params.n_threads = params.n_threads_batch = wanted.threads or physical_cores()
    params.type_k = params.type_v = kv_type
    params.swa_full = False
    params.no_perf = True
    params.abort_callback = strlen_callback()
    params.abort_callback_data = ctypes.addressof(abort_flag)
    return params


def capabilities(model: Any) -> protocol.Capabilities:
    """Return what can be done with this model; recurrent states cannot be cut."""
    can_cut = not llama.llama_model_is_recurrent(model) and not llama.llama_model_is_hybrid(model)
    return protocol.Capabilities(
        can_roll_back=can_cut, can_score=True, can_quantize=True, can_probe_memory=True, kv_types=tuple(KV_TYPES)
    )


def create_context(
    model: Any, command: protocol.LoadModel, log: EngineLog, abort_flag: ctypes.Array[ctypes.c_char]
) -> Any:
    """Create the context with its KV cache and buffers, all of it resident, and return its handle.

    Raises:
        EngineError: OUT_OF_MEMORY, whose needed_bytes are those of the buffer that was not to be had; CONTEXT_FAILED
            or BAD_PARAMS.
    """
    params = context_params(model, command.params, abort_flag)
    with touched_buffers():
        context = llama.llama_init_from_model(model, params)
    if not context:
        raise context_error(params.n_ctx, log.problems())
    return context


def context_error(length: int, problems: list[str]) -> EngineError:
    """Return the error that llama.cpp's log lines tell of."""
    if is_out_of_memory(problems):
        needed_bytes = failed_buffer_bytes(problems)
        return EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=needed_bytes, free_bytes=free_memory_bytes())
    detail = problems[-1] if problems else ""
    return EngineError(ErrorCode.CONTEXT_FAILED, context_tokens=length, detail=detail)


def strlen_callback() -> Any:
    """Return libc's strlen as an abort callback: a C function that says whether a flag byte is set."""
    libc = ctypes.CDLL("msvcrt" if os.name == "nt" else None)
    return ctypes.cast(libc.strlen, llama.ggml_abort_callback)
