"""How long a comparison still takes, from what its own pieces took so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from app.compare.folder import NOISE_FLOOR_RUN, ComparisonFolder

# A piece of a kind that was not seen yet, in windows: only until the first one was measured.
_IN_WINDOWS = {"loading": 0.5, "windows": 1.0, "answers": 1.0, "choices": 0.3, "speed": 1.5}


class Progress:
    """Counts pieces of work by kind, and the time they took.

    Attributes:
        left: pieces that are still to be done, by kind.
        _spent: seconds and pieces of what was done, by kind.
        _piece: run, kind and number of the piece under way, and since when.
    """

    def __init__(self, left: Mapping[str, int] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.left = dict(left or {})
        self._spent: dict[str, tuple[float, int]] = {}
        self._piece: tuple[str, str, int, float] | None = None
        self._now = now

    def moved(self, run_id: str, phase: str, done: int) -> float | None:
        """Note that a piece begins, and so that the one before it has ended; returns the seconds that are left.

        Args:
            run_id: whose piece it is.
            phase: of which kind.
            done: how many of this kind this run has done.

        Returns:
            Seconds for everything that is left; None before anything was measured.
        """
        now_s = self._now()
        if self._piece is not None:
            other_id, kind, number, since_s = self._piece
            if kind == phase == "speed":  # its pieces go from run to run
                self._end("speed", now_s - since_s, done - number)
            elif (other_id, kind) == (run_id, phase):
                self._end(kind, now_s - since_s, done - number)
        self._piece = (run_id, phase, done, now_s)
        return self.remaining_s

    @property
    def remaining_s(self) -> float | None:
        """Seconds for everything that is left; None before anything was measured."""
        known = {kind: seconds / count for kind, (seconds, count) in self._spent.items() if count}
        if not known:
            return None
        window_s = known.get("windows") or max(seconds / _IN_WINDOWS.get(kind, 1.0) for kind, seconds in known.items())
        return sum(count * known.get(kind, window_s * _IN_WINDOWS.get(kind, 1.0)) for kind, count in self.left.items())

    def _end(self, kind: str, took_s: float, pieces: int) -> None:
        if pieces > 0:
            self.left[kind] = max(0, self.left.get(kind, 0) - pieces)
            seconds, count = self._spent.get(kind, (0.0, 0))
            self._spent[kind] = (seconds + took_s, count + pieces)


def work_left(folder: ComparisonFolder) -> dict[str, int]:
    """Return the pieces of a comparison that are not done yet, as far as its plan tells before tokens are known."""
    plan, work = folder.plan, folder.plan.workload
    left = {"loading": 0, "windows": 0, "answers": 0, "choices": 0}
    for run_id in [run.run_id for run in plan.runs] + [NOISE_FLOOR_RUN] * plan.with_noise_floor:
        own = {"windows": work.windows - len(folder.windows_done(run_id))}
        if run_id != NOISE_FLOOR_RUN:
            own["answers"] = len(work.prompts) - len(folder.answers(run_id))
            own["choices"] = len(work.choices) - len(folder.picks(run_id))
        own["loading"] = int(any(count > 0 for count in own.values()))
        left = {kind: left[kind] + max(0, own.get(kind, 0)) for kind in left}
    rounds = [work.speed.rounds - len(folder.rounds(run.run_id)) for run in plan.runs]
    left["speed"] = max(0, *rounds) * len(plan.runs)
    return left
