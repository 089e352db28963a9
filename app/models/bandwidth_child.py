"""Measures how fast this machine reads weights from its memory, and writes bytes per second to its output.

A script of its own, run as `python -I <this file> BYTES THREADS`: it keeps the window's process free of numpy, of half
a gigabyte and of busy threads. Each thread reads its own array, again and again, and unpacks both halves of every byte,
as decoding with 4-bit weights does. On many cores the memory is what bounds that; on few cores the unpacking is, and
the engine's too: a plain sum reads twice as fast there as any decoding, and would promise twice the tokens. The best
pass counts: whatever else runs only slows it down.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np

# A pass reads a stretch of every array; by the time it comes round again, nothing of it is in the caches.
STRETCHES = 4
LEAST_PASSES, MOST_PASSES = STRETCHES, 64
PASSES_LIMIT_S = 0.6
# Read at a time: the unpacked halves stay in a core's own cache, so that only the weights come from memory.
PIECE_BYTES = 128 * 1024

_Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


def measure(total_bytes: int, threads: int) -> float:
    """Return the read bandwidth in bytes/s.

    Args:
        total_bytes: what all threads read in a pass; many times the processor's caches.
        threads: one a physical core.
    """
    stretch_bytes = max(1, total_bytes // threads // STRETCHES)
    arrays = [np.ones(stretch_bytes * STRETCHES, dtype=np.uint8) for _ in range(threads)]
    best_s, began_s = float("inf"), time.perf_counter()
    for number in range(MOST_PASSES):
        first = number % STRETCHES * stretch_bytes
        best_s = min(best_s, _pass_s([array[first : first + stretch_bytes] for array in arrays]))
        if number + 1 >= LEAST_PASSES and time.perf_counter() - began_s > PASSES_LIMIT_S:
            break
    return threads * stretch_bytes / best_s


def _pass_s(arrays: list[_Bytes]) -> float:
    """Return the seconds that all threads together take to read one array each."""
    gate = threading.Barrier(len(arrays) + 1)

    def read(array: _Bytes) -> None:
        low, high = np.empty(PIECE_BYTES, dtype=np.uint8), np.empty(PIECE_BYTES, dtype=np.uint8)
        gate.wait()
        for first in range(0, array.size, PIECE_BYTES):
            piece = array[first : first + PIECE_BYTES]
            np.bitwise_and(piece, 15, out=low[: piece.size])
            np.right_shift(piece, 4, out=high[: piece.size])
        gate.wait()

    readers = [threading.Thread(target=read, args=(array,)) for array in arrays]
    for reader in readers:
        reader.start()
    gate.wait()
    began_s = time.perf_counter()
    gate.wait()
    took_s = time.perf_counter() - began_s
    for reader in readers:
        reader.join()
    return took_s


if __name__ == "__main__":
    sys.stdout.write(f"{measure(int(sys.argv[1]), int(sys.argv[2])):.0f}\n")
