"""How smooth the window stays while the model takes every core, and what drawing the plots costs the model.

Answers of equal length are written with the plots open and closed in turn, A/B/A/B, so that what the machine does
besides falls on both alike. A 16 ms timer in the window's process measures the gaps; the engine reports its own speed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks.measure import Bench, Figures, spread, tell

_ANSWER_TOKENS, _QUICK_ANSWER_TOKENS = 320, 24
_PAIRS, _QUICK_PAIRS = 6, 1


def measure(bench: Bench) -> Figures:
    """Return gaps in milliseconds with plots open and closed, speeds in tokens/s, and the ratio of the speeds."""
    return bench.child("frame_gap", bench.pick(_PAIRS, _QUICK_PAIRS), bench.pick(_ANSWER_TOKENS, _QUICK_ANSWER_TOKENS))


def _child(pairs: int, answer_tokens: int) -> None:
    from tests.benchmarks import window

    gaps_ms: dict[str, list[float]] = {"open": [], "closed": []}
    speeds: dict[str, list[float]] = {"open": [], "closed": []}

    def scenario(stage: window.Stage) -> Iterator[window.Wait]:
        timer = window.GapTimer(stage.program)
        yield stage.is_ready
        stage.fix_params(answer_tokens)
        stage.fold(False)
        yield from stage.answer()  # warms the model, the fonts and the plots
        for number in range(2 * pairs):
            # A B, then B A: what slowly changes falls on both
            state = "open" if number % 4 in (0, 3) else "closed"
            stage.fold(state == "closed")
            yield 0.5  # the layout has settled
            timer.start()
            yield from stage.answer()
            gaps_ms[state] += timer.take()
            speeds[state].append(stage.finished[-1].figures.decode_tokens_per_s)

    window.run(scenario)
    found = {
        f"frame_gap.{state}_{name}_ms": value for state in gaps_ms for name, value in spread(gaps_ms[state]).items()
    }
    found |= {f"frame_gap.{state}_tokens_per_s": statistics.median(speeds[state]) for state in speeds}
    ratios = [a / b for a, b in zip(speeds["open"], speeds["closed"], strict=True)]
    found["frame_gap.open_to_closed"] = statistics.median(ratios)
    tell(found)


if __name__ == "__main__":
    import sys

    _child(int(sys.argv[1]), int(sys.argv[2]))
