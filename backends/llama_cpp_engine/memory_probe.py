"""What loading a model would take, told by llama.cpp's own allocator without loading it.

llama.cpp can build a model and its context without taking memory for them (`no_alloc`): it lays out every buffer and
logs their sizes. Asked with the params of a real load, it answers for exactly that load. No weight is read: a file
that holds nothing behind its header will do.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import llama_cpp as llama
import msgspec

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading
from backends.llama_cpp_engine.engine_log import EngineLog, memory_split
from backends.llama_cpp_engine.repacking import resident_weights_bytes
from backends.memory_meter import read_process_memory

# What a worker takes on top by the time it has answered: pages of the library's code, scratch of its threads and of
# the memory meter, the sampler's list of candidates. Measured with both real models; it moves by less than 1 MiB.
_FIRST_STEP_BYTES = 6 * 2**20
_CANDIDATE_BYTES = ctypes.sizeof(llama.llama_token_data)


def probe_memory(model_path: str, wanted: protocol.LoadParams, log: EngineLog) -> protocol.MemorySplit:
    """Return what a load with these params would take; raises EngineError where that load would fail.

    Args:
        model_path: the model file; of a split set the first.
        wanted: how it would be loaded.
        log: takes llama.cpp's lines; what it held before is lost.
    """
    path = Path(model_path)
    loading.check_file(path)
    abort_flag = ctypes.create_string_buffer(2)  # outlives the context
    before = read_process_memory()
    log.clear()
    params = loading.model_params(wanted)
    params.no_alloc = True
    params.load_mode = llama.LLAMA_LOAD_MODE_NONE  # no_alloc and a mapped file exclude each other
    model = llama.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise loading.load_error(path, log.problems())
    context = None
    try:
        context = llama.llama_init_from_model(model, loading.context_params(model, wanted, abort_flag))
        if not context:
            raise loading.context_error(wanted.context_tokens, log.problems())
        if not log.says_no_alloc():
            raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="it allocates what it was not to")
        after = read_process_memory()
        weights_bytes = max(llama.llama_model_size(model), resident_weights_bytes(path, wanted.gpu_layers))
        split = memory_split(log.buffers(), weights_bytes)
        grown_bytes = after.anonymous_bytes + after.file_bytes - before.anonymous_bytes - before.file_bytes
        # llama.cpp allocates recurrent states even so; they are counted with the KV cache already.
        states_bytes = sum(buffer.size_bytes for buffer in log.buffers() if buffer.what == "RS")
        candidates = _CANDIDATE_BYTES * llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
        tables_bytes = max(0, grown_bytes - states_bytes) + _FIRST_STEP_BYTES + candidates
        return msgspec.structs.replace(split, tables_bytes=tables_bytes)
    finally:
        if context:
            llama.llama_free(context)
        llama.llama_model_free(model)
