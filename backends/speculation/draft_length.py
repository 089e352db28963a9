"""How many tokens to draft: as many as give the most tokens a second by what was measured, none included.

The rule is the goodput rule of engine.md 5.3: of all lengths k take the one with the largest

    (tokens the step gives anyway + sum of the chances that i drafted tokens are accepted, i = 1..k)
        / (time of a step with k drafted tokens)

Both halves are measured while the engine works: the chances from what verification said of this request's drafts, the
times from the steps themselves, prompts included, since a drafted token costs what a token of a prompt costs. Where no
draft pays, none is verified; a drafter that costs nothing is still compared with what was written without it, another
one is tried again now and then, ever more seldom while it loses.
"""

from __future__ import annotations

import bisect
import statistics
from collections import deque
from collections.abc import Sequence
from typing import Final

NGRAM_LENGTHS: Final = (0, 2, 4, 8, 16, 24, 32, 48, 64)
MODEL_LENGTHS: Final = (0, 1, 2, 3, 5, 7)

# Chances are kept for positions 1, 2, 3 to 4, 5 to 8 and so on: later ones are nearly alike, and seldom reached.
_FIRST_POSITIONS: Final = (1, 2, 3, 5, 9, 17, 33)
_PRIOR: Final = 0.6  # a position that nothing is known of
_PRIOR_WEIGHT: Final = 1.5  # in observations
_FORGETTING: Final = 0.8  # an observation's weight a draft later
# What a draft must promise beyond plain decoding: measured times are never quite right.
_MARGIN: Final = 1.05
_FIRST_PAUSE_STEPS: Final = 16
_LONGEST_PAUSE_STEPS: Final = 512
_DRAFTS_BEFORE_OFF: Final = 4  # so many drafts in a row that were not worth verifying: the person is told
_KEPT_TIMES: Final = 9
_LONGEST: Final = 128
_GROUPS: Final = tuple(bisect.bisect_right(_FIRST_POSITIONS, position) - 1 for position in range(_LONGEST + 1))


class StepTimes:
    """What a step takes by how many tokens it computes; one for an engine, shared by its requests.

    Attributes:
        _times: seconds of the last steps, by number of tokens.
        _medians: of them; asked many times a step.
        _sizes: those numbers, in order.
    """

    def __init__(self) -> None:
        self._times: dict[int, deque[float]] = {}
        self._medians: dict[int, float] = {}
        self._sizes: list[int] = []

    def observe(self, tokens: int, seconds: float) -> None:
        """Take a step's time; one without tokens says nothing."""
        if tokens < 1 or seconds <= 0:
            return
        if tokens not in self._times:
            bisect.insort(self._sizes, tokens)
        times = self._times.setdefault(tokens, deque(maxlen=_KEPT_TIMES))
        times.append(seconds)
        self._medians[tokens] = statistics.median(times)

    def expect(self, tokens: int) -> float | None:
        """Return what a step of so many tokens takes, in seconds; None before any step was seen.

        A number that was never seen lies on the line between its neighbours, beyond them on the line from 0 through
        the nearest: more than it will take above, and no less than the smallest below.
        """
        if not self._sizes:
            return None
        at = bisect.bisect_left(self._sizes, tokens)
        if at < len(self._sizes) and self._sizes[at] == tokens:
            return self._medians[tokens]
        if at == 0:
            return self._medians[self._sizes[0]]
        below = self._sizes[at - 1]
        if at == len(self._sizes):
            return self._medians[below] * tokens / below
        above = self._sizes[at]
        share = (tokens - below) / (above - below)
        return self._medians[below] + share * (self._medians[above] - self._medians[below])


class Acceptance:
    """How likely each drafted token of one request is to be accepted, once those before it are.

    Attributes:
        _accepted, _tried: by group of positions; older drafts count less.
    """

    def __init__(self) -> None:
        self._accepted = [0.0] * len(_FIRST_POSITIONS)
        self._tried = [0.0] * len(_FIRST_POSITIONS)

    def observe(self, drafted: int, accepted: int) -> None:
        """Take what became of a draft: tokens behind the first that was not accepted were not tried."""
        assert 0 <= accepted <= drafted <= _LONGEST
        self._accepted = [_FORGETTING * count for count in self._accepted]
        self._tried = [_FORGETTING * count for count in self._tried]
        for position in range(1, min(accepted + 1, drafted) + 1):
            group = _GROUPS[position]
            self._tried[group] += 1
            self._accepted[group] += position <= accepted

    def chances(self) -> list[float]:
        """Return the chance of each group; one that was seldom reached is taken to be as the one before it."""
        chances, prior = [], _PRIOR
        for accepted, tried in zip(self._accepted, self._tried, strict=True):
            prior = (accepted + _PRIOR_WEIGHT * prior) / (tried + _PRIOR_WEIGHT)
            chances.append(prior)
        return chances

    def expected(self, most: int) -> list[float]:
        """Return how many tokens a draft of 0, 1, ... `most` tokens is expected to have accepted."""
        chances = self.chances()
        expected, reached = [0.0], 1.0
        for position in range(1, most + 1):
            reached *= chances[_GROUPS[position]]
            expected.append(expected[-1] + reached)
        return expected


class DraftLength:
    """Chooses the length for one request, step by step.

    Attributes:
        _times: of the engine.
        _lengths: that may be chosen, 0 first.
        _pause: steps until a drafter that loses is tried again.
        _waited: steps since it was tried.
        _lost: drafts in a row that were not worth it.
    """

    def __init__(self, times: StepTimes, lengths: Sequence[int] = NGRAM_LENGTHS) -> None:
        assert lengths[0] == 0
        self.acceptance = Acceptance()
        self._times = times
        self._lengths = tuple(lengths)
        self._pause = _FIRST_PAUSE_STEPS
        self._waited = self._lost = 0

    @property
    def is_off(self) -> bool:
        """Whether drafting has lost for a while, so that a person should be told that it is off."""
        return self._lost >= _DRAFTS_BEFORE_OFF

    def choose(self, most: int, others: int = 0, draft_s: float = 0.0) -> int:
        """Return how many tokens to draft in the next step.

        Args:
            most: that there can be; for a drafter that proposes first, how many it has.
            others: tokens that the step computes for other requests, which all wait for the drafted ones too.
            draft_s: what one drafted token takes the drafter, in seconds.
        """
        plain_s = self._times.expect(1 + others)
        if most < 1 or plain_s is None:  # a first step without a draft says what one takes
            return 0
        expected = self.acceptance.expected(most)
        best, best_rate = 0, _MARGIN * (1 + others) / plain_s
        for length in {min(length, most) for length in self._lengths[1:]}:
            step_s = (self._times.expect(1 + others + length) or plain_s) + length * draft_s
            rate = (1 + others + expected[length]) / step_s
            if rate > best_rate:
                best, best_rate = length, rate
        self._lost = 0 if best else self._lost + 1
        return best

    def is_due(self) -> bool:
        """Whether a drafter that loses should be tried once more; ask once a step in which nothing was chosen."""
        self._waited += 1
        if self._waited < self._pause:
            return False
        self._waited = 0
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_STEPS)
        return True

    def observe(self, drafted: int, accepted: int) -> None:
        """Take what became of a draft, verified or only compared with what was written without it."""
        if drafted:
            self.acceptance.observe(drafted, accepted)
            if accepted == drafted:
                self._pause = _FIRST_PAUSE_STEPS
