"""What the chat store costs and how far it is behind while an answer is written at 200 tokens a second.

The lag is from handing a piece over to the moment it is on disk (an fsync later); the promise is 1 s. How much of an
answer survives a SIGKILL is asserted by the tests, not measured here.
"""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from app.chat.messages import MessageState, Role
from app.chat.store import open_store
from tests.benchmarks.measure import Bench, Figures, percentile, tell

_SECONDS, _QUICK_SECONDS = 8, 2
_TOKENS_PER_S = 200


def measure(bench: Bench) -> Figures:
    """Return the lag in milliseconds, the caller's cost in microseconds and the share of a core that it all takes."""
    return bench.child("store", bench.pick(_SECONDS, _QUICK_SECONDS))


def _child(seconds: int) -> None:
    store = open_store(Path(os.environ["CUTAWAY_HOME"]) / "chats.sqlite3").store
    chat = store.add_chat("lag")
    message = store.add_message(chat.chat_id, None, Role.ASSISTANT, "", state=MessageState.STREAMING)
    store.flush(10.0)
    lags_ms: list[float] = []
    costs_us: list[float] = []

    def note(asked_s: float, future: Future[None]) -> None:
        future.result()
        lags_ms.append((time.monotonic() - asked_s) * 1000)

    used_s, began_s = _cpu_s(), time.monotonic()
    for number in range(seconds * _TOKENS_PER_S):
        time.sleep(max(0.0, began_s + number / _TOKENS_PER_S - time.monotonic()))
        asked_s = time.monotonic()
        future = store.append_text(message.message_id, " token", (number % 40_000,))
        costs_us.append((time.monotonic() - asked_s) * 1e6)
        future.add_done_callback(partial(note, asked_s))
    store.flush(10.0)
    share = (_cpu_s() - used_s) / (time.monotonic() - began_s)
    store.close()
    tell(
        {
            "store.lag_median_ms": percentile(lags_ms, 50),
            "store.lag_worst_ms": max(lags_ms),
            "store.append_median_us": percentile(costs_us, 50),
            "store.append_p99_us": percentile(costs_us, 99),
            "store.core_percent": share * 100,
            "store.pieces": float(len(lags_ms)),
        }
    )


def _cpu_s() -> float:
    """Return the processor time of this process so far, in seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    import sys

    _child(int(sys.argv[1]))
