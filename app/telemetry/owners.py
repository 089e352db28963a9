"""Whose memory it is: one reading of the total, split among the owners that the engine named.

The operating system says how much memory a process holds, not for what; the engine says how large its buffers are,
not how much of them is resident: mapped weights count as they are touched, and a buffer set up in advance counts page
by page. So the split is made here, and never claims more than was measured:

    growth      = max(0, measured - floor)          floor: the first reading, before the model was read
    kv_used     = min(KV used, KV reserved, growth)              held tokens were certainly touched
    weights     = min(weights, growth - kv_used)
    compute     = min(compute + output + draft, growth - kv_used - weights)
    kv_idle     = min(KV reserved - kv_used, growth - kv_used - weights - compute)   resident, no token in it
    rest        = measured - kv_used - weights - compute - kv_idle                   never negative

rest + weights + compute + kv_used + kv_idle is exactly what was measured. While the model is still being read and its
split is not known, all growth counts as weights. Where no reading preceded the load, the floor is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends import protocol


@dataclass(frozen=True, slots=True)
class Owned:
    """One reading by owner, in bytes; the five add up to the reading.

    Attributes:
        rest_bytes: the interpreter, libraries, and on a card what other programs hold.
        weights_bytes: the model's weights, as far as they are resident.
        compute_bytes: scratch and output buffers, and a draft model.
        kv_used_bytes: the part of the KV cache that holds tokens.
        kv_idle_bytes: reserved for the KV cache and resident, but without a token.
    """

    rest_bytes: float
    weights_bytes: float
    compute_bytes: float
    kv_used_bytes: float
    kv_idle_bytes: float


def attribute(
    measured_bytes: float, floor_bytes: float, split: protocol.MemorySplit | None, kv_used_bytes: float
) -> Owned:
    """Split a measured total among its owners; without a split, growth counts as weights being read."""
    growth = max(0.0, measured_bytes - floor_bytes)
    if split is None:
        return Owned(measured_bytes - growth, growth, 0.0, 0.0, 0.0)
    kv_used = min(kv_used_bytes, split.kv_reserved_bytes, growth)
    left = growth - kv_used
    weights = min(split.weights_bytes, left)
    left -= weights
    compute = min(split.compute_bytes + split.output_bytes + split.draft_bytes, left)
    left -= compute
    kv_idle = min(split.kv_reserved_bytes - kv_used, left)
    rest = measured_bytes - kv_used - weights - compute - kv_idle
    return Owned(rest, weights, compute, kv_used, kv_idle)


def is_on_device(split: protocol.MemorySplit | None, read: protocol.MemoryRead) -> bool:
    """Say whether the memory to draw is the card's: there is one, and the weights lie on it (or may, before a load)."""
    if not read.device_total_bytes:
        return False
    return split is None or not split.device.upper().startswith("CPU")


def measured_bytes(read: protocol.MemoryRead, on_device: bool) -> int:
    """Return the total that a reading measured: the card's, or the process's with what was swapped out."""
    if on_device:
        return read.device_used_bytes
    return read.anonymous_bytes + read.file_bytes + read.swap_bytes
