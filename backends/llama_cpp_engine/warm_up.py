"""The first steps of a fresh context, which nobody asked for: they take at load what a long prompt takes later.

Without them the system hands out memory page by page as it is written to, so that a model that does not fit would load
and die of its first long prompt (field report 17), and a reading of the memory would tell too little.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import llama_cpp as llama

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.batch import Batch

# What llama_decode returns.
_DECODED, _ABORTED = 0, 2
# What the full micro-batch may take. All layers use the same buffers, and one layer of a large model on a slow
# processor is over by then, while the whole batch may take a minute there.
LIMIT_S = 0.25


def warm_up(
    context: Any, batch: Batch, token: int, abort_flag: ctypes.Array[ctypes.c_char], limit_s: float = LIMIT_S
) -> bool:
    """Compute one token, then a full micro-batch for at most limit_s; the caller empties the context.

    The token pages the weights in and shows a broken graph now; the micro-batch uses the compute buffer and the
    threads' scratch as a prompt does. Being cut off is no error.

    Args:
        context: a context whose abort callback looks at abort_flag.
        batch: as large as a micro-batch.
        token: any of the vocabulary.
        abort_flag: raised when the time is over, and lowered again.
        limit_s: how long the micro-batch may take.

    Returns:
        Whether the micro-batch was computed to its end.

    Raises:
        EngineError: DECODE_FAILED.
    """
    batch.fill_one(token, 0)
    _decode(context, batch, {_DECODED})
    llama.llama_memory_clear(llama.llama_get_memory(context), False)
    batch.fill([token] * batch.capacity, 0, wants_logits=True)

    def cut_off() -> None:
        abort_flag[0] = b"\1"

    timer = threading.Timer(limit_s, cut_off)
    timer.start()
    try:
        return _decode(context, batch, {_DECODED, _ABORTED}) == _DECODED
    finally:
        timer.cancel()
        timer.join()
        abort_flag[0] = b"\0"


def _decode(context: Any, batch: Batch, wanted: set[int]) -> int:
    code: int = llama.llama_decode(context, batch.handle)
    llama.llama_synchronize(context)
    if code not in wanted:
        raise EngineError(ErrorCode.DECODE_FAILED, detail=f"the first step returned {code}")
    return code
