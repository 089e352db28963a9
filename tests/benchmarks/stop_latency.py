"""How long Stop takes: from Abort to RequestFinished, at moments spread over reading a prompt and writing an answer.

The promise is 0.2 s at any moment. Both ends are timed in the process that sends, so the pipe is counted.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from backends import protocol
from tests.benchmarks.engine import NullSink, random_prompt
from tests.benchmarks.measure import Bench, Figures, physical_threads, spread, tell

_MOMENTS, _QUICK_MOMENTS = 20, 2
_LONG_PROMPT_TOKENS, _SHORT_PROMPT_TOKENS = 4096, 16
_LONGEST_WAIT_S = 1.0
_MAX_TOKENS = 4000
_SEED = 5


def measure(bench: Bench) -> Figures:
    """Return median, p99 and worst in milliseconds, apart for reading and writing."""
    return bench.child("stop_latency", bench.pick(_MOMENTS, _QUICK_MOMENTS))


def _child(moments: int) -> None:
    rng = random.Random(_SEED)
    delays_ms: dict[str, list[float]] = {"reading": [], "writing": []}
    with NullSink(Path(os.devnull), physical_threads()) as sink:
        for number in range(10 * moments):
            kind = "reading" if len(delays_ms["reading"]) < moments else "writing"
            length = _LONG_PROMPT_TOKENS if kind == "reading" else _SHORT_PROMPT_TOKENS
            delay_ms = _stop_ms(sink, random_prompt(_SEED + number, length, sink.vocabulary_tokens), kind, rng.random())
            if delay_ms is not None:
                delays_ms[kind].append(delay_ms)
            if len(delays_ms["writing"]) == moments:
                break
    found = {f"stop.{kind}_{name}_ms": value for kind in delays_ms for name, value in spread(delays_ms[kind]).items()}
    tell(found | {"stop.moments": float(sum(map(len, delays_ms.values())))})


def _stop_ms(sink: NullSink, prompt: protocol.Prompt, kind: str, share: float) -> float | None:
    """Stop a request after a share of the longest wait; None when it was not in that state any more."""
    request_id, timed = sink.start(prompt, _MAX_TOKENS)
    if kind == "writing":
        timed.has_begun.wait()
    time.sleep(share * _LONGEST_WAIT_S)
    was_reading = not timed.has_begun.is_set()
    began_s = time.monotonic()
    sink.abort(request_id)
    timed.is_over.wait()
    assert timed.finished is not None, "the worker died"
    is_stopped = timed.finished.stop_reason is protocol.StopReason.ABORTED
    return (timed.ended_s - began_s) * 1000 if is_stopped and was_reading == (kind == "reading") else None


if __name__ == "__main__":
    import sys

    _child(int(sys.argv[1]))
