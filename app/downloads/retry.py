"""When to try again: which faults pass by themselves, how often, and how long to wait in between.

Knows neither HTTP nor clocks.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from app.models.http_faults import RemoteError, RemoteFault

_FIRST_WAIT_S = 1.0
_MAX_WAIT_S = 60.0
MAX_ASKED_WAIT_S = 600.0  # what a server may ask for; more than that is for a person to decide
_JITTER = 0.25  # of the wait, either way, so that a crowd does not return at once
_MANY, _FEW = 8, 3
# How often to try without a single new byte in between; what is not here is tried once.
_TRIES = {
    RemoteFault.UNREACHABLE: _MANY,
    RemoteFault.PROXY_UNREACHABLE: _MANY,
    RemoteFault.TOO_SLOW: _MANY,
    RemoteFault.BROKEN_OFF: _MANY,
    RemoteFault.BUSY: _MANY,
    RemoteFault.SERVER_FAULT: _MANY,
    RemoteFault.EXPIRED: _FEW,
    RemoteFault.RANGE_REFUSED: _FEW,
    RemoteFault.WRONG_RANGE: _FEW,
    RemoteFault.ENCODED: _FEW,
    RemoteFault.NOT_TLS: _FEW,
}


class RetryPlan:
    """Counts the tries of one file.

    Args:
        random_share: a number from 0 to 1, a new one each time.
    """

    def __init__(self, random_share: Callable[[], float] = random.random) -> None:
        self._random_share = random_share
        self._failed = 0

    def progressed(self) -> None:
        """Note that new bytes came: whatever happens next is a first fault again."""
        self._failed = 0

    def wait_s(self, error: RemoteError) -> float | None:
        """Return how long to wait before the next try; None when there should be none."""
        self._failed += 1
        if self._failed >= _TRIES.get(error.fault, 1):
            return None
        wait: float = min(_MAX_WAIT_S, _FIRST_WAIT_S * 2.0 ** (self._failed - 1))
        wait *= 1 + _JITTER * (2 * self._random_share() - 1)
        if error.retry_after_s is None:
            return wait
        return None if error.retry_after_s > MAX_ASKED_WAIT_S else max(wait, float(error.retry_after_s))
