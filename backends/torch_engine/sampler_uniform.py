"""Random numbers that are a function of (seed, position, stream), and of nothing else.

No generator has a state, so batch mates, preemption, the device and the order of work cannot change a draw. The
numbers are those of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), of which
any member is found at once: start + position * gamma, mixed.
"""

from __future__ import annotations

import enum

_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd
_STREAM_GAMMA = 0xD1342543DE82EF95  # another odd constant, so that streams of one seed begin far apart


class Stream(enum.IntEnum):
    """What a number is for. Speculation needs numbers that are independent of each other at one position."""

    TOKEN = 0  # drawing a token from the model
    DRAFT = 1  # drawing a token from a draft
    ACCEPTANCE = 2  # accepting a drafted token
    RESIDUAL = 3  # drawing the token in place of a refused one


def uniform(seed: int, position: int, stream: Stream = Stream.TOKEN) -> float:
    """Return a number from 0 to below 1 with 53 random bits.

    Args:
        seed: the request's.
        position: the index in the sequence of the token that is drawn, the prompt counted.
        stream: what the number is for.
    """
    start = mix(seed * _GAMMA + stream * _STREAM_GAMMA)
    return (mix(start + (position + 1) * _GAMMA) >> 11) * 2.0**-53


def mix(word: int) -> int:
    """Return 64 bits that depend on all of the 64 given (SplitMix64's finalizer, a bijection)."""
    word &= _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)
