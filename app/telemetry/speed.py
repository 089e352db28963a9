"""Tokens per second from steps: writing smoothed over half a second, reading as separate marks.

Knows only the figures of steps; reading and writing are timed apart and never mixed.
"""

from __future__ import annotations

from collections import deque

from backends import protocol

# Shorter than a person notices, long enough that one slow step does not look like a fault.
SMOOTHING_S = 0.5
# A longer pause between two steps is not part of the speed: the engine had nothing to write.
PAUSE_S = 0.25


class WritingSpeed:
    """The speed of writing over the last half second of steps.

    Attributes:
        _steps: start, end and tokens of the steps in the window.
        _tokens: their tokens together.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[float, float, int]] = deque()
        self._tokens = 0

    def add(self, ended_s: float, stats: protocol.StepStats) -> float | None:
        """Take a step that ended at this time; return tokens per second, None if it wrote nothing.

        A step that reads a prompt belongs to reading; only when other sequences wrote beside it does it count here.
        """
        writes_beside_reading = stats.running > 1 and stats.decode_tokens > 0
        if stats.prefill_tokens and not writes_beside_reading:
            self.clear()
            return None
        if not stats.decode_tokens:
            return None
        began_s = ended_s - max(stats.duration_s, 0.0)
        if self._steps and began_s - self._steps[-1][1] > PAUSE_S:
            self.clear()
        self._steps.append((began_s, ended_s, stats.decode_tokens))
        self._tokens += stats.decode_tokens
        while self._steps[0][1] <= ended_s - SMOOTHING_S:
            self._tokens -= self._steps.popleft()[2]
        span_s = ended_s - self._steps[0][0]
        return self._tokens / span_s if span_s > 0 else None

    def clear(self) -> None:
        """Forget the steps: what comes is a new stretch of writing."""
        self._steps.clear()
        self._tokens = 0
