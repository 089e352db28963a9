"""How fast a model would write: every weight that a token uses is read once, so memory bandwidth decides.

Decoding one token at a time computes little for each byte (Kwon et al. 2023, section 2; Williams et al. 2009): the
time of a token is what is read, the weights of the experts it uses and the K and V before it, by the bandwidth of the
memory where it lies. Knows no clock and no engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.models.fit_types import Measured
from app.models.shape import ModelShape

# How far into a chat a prediction is for. More context than this costs little beside the weights in most models.
SPEED_AT_TOKENS = 1024


def predicted_speed(parts: Sequence[tuple[int, float]]) -> float | None:
    """Return tokens/s when each device reads so many bytes a token at so many bytes/s, one after the other.

    Returns:
        None where nothing is read, or a bandwidth is not known.
    """
    seconds = 0.0
    for read_bytes, read_bytes_per_s in parts:
        if read_bytes <= 0:
            continue
        if not math.isfinite(read_bytes_per_s) or read_bytes_per_s <= 0:
            return None
        seconds += read_bytes / read_bytes_per_s
    speed = 1 / seconds if seconds > 0 else 0.0
    return speed if math.isfinite(speed) and speed > 0 else None


def measured_speed(history: Sequence[Measured], backend: str, device: str, kv_type: str) -> float | None:
    """Return the speed of the latest load here on this device that wrote anything; one with this KV type before others.

    Args:
        history: earlier loads of this model, newest first.
        backend: which loads count.
        device: likewise.
        kv_type: which of them count first.
    """
    speeds = [
        (record.kv_type == kv_type, record.decode_tokens_per_s)
        for record in history
        if record.backend == backend
        and record.device == device
        and math.isfinite(record.decode_tokens_per_s)
        and record.decode_tokens_per_s > 0
    ]
    same = [speed for is_same, speed in speeds if is_same]
    return same[0] if same else speeds[0][1] if speeds else None


def weights_read(shape: ModelShape) -> int:
    """Return the bytes of weights that one token reads; all of them where the shape does not tell."""
    return max(0, shape.read_bytes or shape.weights_bytes)
