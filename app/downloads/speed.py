"""How fast bytes come, over the last seconds, and how long the rest will take. Says nothing it does not know.

Knows no download; time is handed in.
"""

from __future__ import annotations

from collections import deque

_WINDOW_S = 5.0
_FIRST_S = 1.0  # below it a speed is mostly chance
_MAX_LEFT_S = 30 * 86_400.0  # "in two years" helps nobody
_SPACING_S = 0.1


class SpeedMeter:
    """A speed over a sliding window. Each value is the number of bytes that are here at a time."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()
        self._last = (0.0, 0)

    def restart(self) -> None:
        """Forget everything: what follows has nothing to do with what was."""
        self._points.clear()

    def add(self, now_s: float, here_bytes: int) -> None:
        """Note how much is here."""
        self._last = (now_s, here_bytes)
        if not self._points or here_bytes < self._points[-1][1]:
            self._points.clear()
            self._points.append(self._last)
        elif now_s - self._points[-1][0] >= _SPACING_S:
            self._points.append(self._last)
        self._forget(now_s)

    def bytes_per_s(self, now_s: float) -> float | None:
        """Return the speed over the last seconds; None while there is nothing to go by."""
        if not self._points:
            return None
        self._forget(now_s)
        start_s, start_bytes = self._points[0]
        passed_s = now_s - start_s
        return None if passed_s < _FIRST_S else max(0.0, (self._last[1] - start_bytes) / passed_s)

    def left_s(self, now_s: float, missing_bytes: int) -> float | None:
        """Return how long the rest takes at this speed; None where nobody can say."""
        speed = self.bytes_per_s(now_s)
        if not speed:
            return None
        left = max(0, missing_bytes) / speed
        return left if left <= _MAX_LEFT_S else None

    def _forget(self, now_s: float) -> None:
        """Leave out what is older than the window, but for the point where the window begins."""
        while len(self._points) > 1 and self._points[1][0] <= now_s - _WINDOW_S:
            self._points.popleft()
