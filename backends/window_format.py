"""How a window of log-probabilities lies in its file: what its writer and its reader share.

A header, the rows, then the tables: all token ids; of each row the likeliest token, the log-probability of the token
that came, and a check. Everything is little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SUFFIX = ".cwin"
LLAMA_CPP_SPAN_NATS = 16.0
MAX_SPAN_NATS = 64.0

MAGIC = b"CUTAWIN1"
# magic, rows, vocabulary, tokens, tokens kept of a row (0: all), span in nats; CRC-32 of the tables, of all before it.
HEADER = struct.Struct("<8sIIIIfII")
LARGEST_CODE = 65535

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]
Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Rows as they are kept.

    Attributes:
        codes: [n, V] uint16.
        steps: [n] float32, nats of one code.
        lowest: [n] float32, the log-probability of code 0.
    """

    codes: NDArray[np.uint16]
    steps: Floats
    lowest: Floats


@dataclass(frozen=True, slots=True)
class TopRows:
    """Rows of a compact window.

    Attributes:
        ids: [n, k] int32, the likeliest first.
        logprobs: [n, k] float32.
        rest: [n] float32, the logarithm of the sum of all other tokens' probabilities; -inf for none.
    """

    ids: Ids
    logprobs: Floats
    rest: Floats


def record_words(vocabulary_tokens: int, keep_top: int) -> int:
    """Return the 32-bit words of a row: the codes with their step and lowest, or the rest with ids and logprobs."""
    return 1 + 2 * keep_top if keep_top else 2 + (vocabulary_tokens + 1) // 2


def row_check(record: Words, row: int) -> int:
    """Return a sum over a row's record that a changed or a moved row does not have."""
    return (int(np.add.reduce(record, dtype=np.uint32)) + row * 2654435761) & 0xFFFFFFFF
