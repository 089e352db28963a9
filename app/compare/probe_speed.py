"""Measures a model for about two seconds, so that the time of a comparison can be told before it begins.

A short request warms up and says how much can be asked within the time; then a longer one is read and written, and a
window is scored as the comparison will score it, where the engine can; a part of one where all of it takes too long.
Knows no plan and no words.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.bench.engine_run import EngineRefusedError, EngineRun
from app.bench.workload import Workload, requests_of
from app.compare.duration import Probe
from app.compare.plan import FIRST_SCORED, WINDOW_TOKENS
from app.engines.supervisor import LoadRequest
from backends import protocol

PROBE_S = 2.0  # what is asked after the load takes about this long
_FIRST = Workload(prompt_tokens=32, new_tokens=4)
_MOST_NEW_TOKENS = 64
_FEWEST_TOKENS, _FEWEST_SCORED = 8, 64
_SHARE = 0.4  # of the time, for the request; as much for scoring, which is done twice
_SCORE_ID, _SCORE_ROUND = protocol.RequestId(900), 3


def probe_speed(
    run: EngineRun, request: LoadRequest, on_progress: Callable[[float], None] = lambda _fraction: None
) -> Probe:
    """Load a model, measure it for about PROBE_S and return what was seen; blocks.

    Args:
        run: a worker that holds nothing yet; whoever made it closes it.
        request: what to load and how; its context holds a window.
        on_progress: told how far the load is.

    Raises:
        AppError: the model cannot be loaded, or the engine ends.
    """
    began_s = time.monotonic()
    loaded = run.load(request, on_progress)
    start_s = max(0.0, time.monotonic() - began_s - loaded.load_s)
    vocabulary = max(1, loaded.vocabulary_tokens)
    room = max(_FEWEST_TOKENS, loaded.context_tokens - 1)
    figures = _figures(run, vocabulary, room)
    window_s, write_s = (
        _window_s(run, _Rate(figures), vocabulary, room) if loaded.capabilities.can_score else (0.0, 0.0)
    )
    path = Path(request.path)
    return Probe(
        prefill_tokens_per_s=figures.prefill_tokens_per_s,
        decode_tokens_per_s=figures.decode_tokens_per_s,
        load_s=loaded.load_s,
        start_s=start_s,
        prefill_tokens=figures.prompt_tokens - figures.reused_tokens,
        window_s=window_s,
        write_s=write_s,
        size_bytes=path.stat().st_size if path.is_file() else 0,
    )


def _figures(run: EngineRun, vocabulary_tokens: int, room: int) -> protocol.RequestFigures:
    """Return what the longest request took that the time is enough for.

    The first request is disturbed by whatever the first one always is; the second one may still have been asked for too
    little because of it.
    """
    began_s = time.monotonic()
    work = _fitting(_FIRST, room)
    figures = _measured(run, work, vocabulary_tokens, number=0)
    for number in (1, 2):
        before, work = work, _fitting(_Rate(figures).workload(PROBE_S * _SHARE), room)
        is_longer = work.longest_tokens > 2 * before.longest_tokens
        if number > 1 and (not is_longer or time.monotonic() - began_s > PROBE_S):
            break
        figures = _measured(run, work, vocabulary_tokens, number)
    return figures


class _Rate:
    """How fast a request was, and what that leaves time for."""

    def __init__(self, figures: protocol.RequestFigures) -> None:
        self._read_per_s = figures.prefill_tokens_per_s or 1.0
        self._write_per_s = figures.decode_tokens_per_s or 1.0

    def tokens_in(self, seconds: float) -> int:
        """Return how many tokens can be read in this time."""
        return int(seconds * self._read_per_s)

    def window_s(self, seconds: float, tokens: int) -> float:
        """Return what a whole window takes, from what scoring so many tokens took: a part of it is always the same."""
        fixed_s = min(1 / self._write_per_s, seconds / 2)
        return fixed_s + (seconds - fixed_s) * WINDOW_TOKENS / tokens

    def workload(self, seconds: float) -> Workload:
        """Return a request that takes so long, half of it for reading, and no longer than a window is."""
        prompt = int(seconds / 2 * self._read_per_s)
        new = int(seconds / 2 * self._write_per_s)
        return Workload(
            prompt_tokens=min(WINDOW_TOKENS, max(_FIRST.prompt_tokens, prompt)),
            new_tokens=min(_MOST_NEW_TOKENS, max(_FEWEST_TOKENS, new)),
        )


def _fitting(work: Workload, room: int) -> Workload:
    """Return a request that fits into a context of so many tokens."""
    new = min(work.new_tokens, max(2, room // 2))
    return Workload(prompt_tokens=min(work.prompt_tokens, max(1, room - new)), new_tokens=new)


def _measured(run: EngineRun, work: Workload, vocabulary_tokens: int, number: int) -> protocol.RequestFigures:
    return run.run(requests_of(work, vocabulary_tokens, number, first_id=number + 1)).figures[0]


def _window_s(run: EngineRun, rate: _Rate, vocabulary_tokens: int, room: int) -> tuple[float, float]:
    """Return what scoring a window takes, compared and written, in seconds; one figure for both where it takes long.

    An engine that says it can score and then cannot leaves both 0: they are estimated from reading instead.
    """
    count = min(WINDOW_TOKENS, room, max(_FEWEST_SCORED, rate.tokens_in(PROBE_S * _SHARE / 2)))
    work = Workload(prompt_tokens=count, new_tokens=1)
    prompt = requests_of(work, vocabulary_tokens, _SCORE_ROUND, first_id=1)[0].prompt
    assert isinstance(prompt, protocol.TokenIds)
    with contextlib.suppress(EngineRefusedError, OSError), tempfile.TemporaryDirectory(prefix="cutaway-") as folder:
        path = str(Path(folder) / "probe.cwin")
        write_s = compare_s = _scored_s(run, prompt.token_ids, write_path=path)
        if write_s < PROBE_S * _SHARE:
            compare_s = _scored_s(run, prompt.token_ids, reference_path=path)
        return rate.window_s(compare_s, count), rate.window_s(write_s, count)
    return 0.0, 0.0


def _scored_s(run: EngineRun, token_ids: tuple[int, ...], *, write_path: str = "", reference_path: str = "") -> float:
    began_s = time.monotonic()
    run.ask(
        protocol.Score(
            request_id=_SCORE_ID,
            token_ids=token_ids,
            first_scored=len(token_ids) * FIRST_SCORED // WINDOW_TOKENS,
            write_path=write_path,
            reference_path=reference_path,
        ),
        protocol.ScoreDone,
    )
    return time.monotonic() - began_s
