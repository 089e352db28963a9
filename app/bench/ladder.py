"""`cutaway bench --ladder`: what each part of an engine is worth, on the same requests, one rung after another.

Every rung is a load of its own in a fresh worker with one more part switched on: KV cache, batching, batching without
waiting, blocks on demand, shared beginnings. All rungs have room for the same number of KV places, so that they differ
in what they do with it. Prints nothing.

Wasted memory: without blocks on demand each running request has room for the longest one set aside from its beginning
(the scheme that Kwon et al. 2023 call pre-allocation); that much is counted for the rungs that serve so many at once.
With blocks it is what the blocks in use hold beside tokens. The engine itself always works in blocks: what the other
rungs would have set aside is computed from the most requests that ran at once, not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from app.bench.bench import WARM_UP_TOKENS, path_json
from app.bench.engine_run import BLOCK_TOKENS, EngineRun, Round
from app.bench.figures import Spread, spread_of
from app.bench.workload import Workload, requests_of
from app.chat.messages import JsonObject
from app.engines.supervisor import LoadRequest
from app.i18n import _
from backends import protocol

STATIC_SEQUENCES = 4  # requests that are served together on the rungs that set memory aside for each
SHARED_SHARE = 0.75  # of a prompt, which all requests begin with: a system prompt and an example or two


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to serve the requests.

    Attributes:
        name: its key in the JSON.
        reuse_kv: whether K and V are kept from token to token.
        sequences: requests that are served together; 0 for all.
        waits: whether the next ones begin only when all of these have ended.
        prefix_cache: whether beginnings that were computed are used again.
        has_blocks: whether memory is taken in blocks when it is needed, and not for the longest answer at once.
    """

    name: str
    reuse_kv: bool = True
    sequences: int = 1
    waits: bool = False
    prefix_cache: bool = False
    has_blocks: bool = False

    @property
    def title(self) -> str:
        """What the rung does, for a person."""
        titles: dict[str, str] = {
            "no_kv_cache": _("no KV cache, one request at a time"),
            "kv_cache": _("KV cache, one request at a time"),
            "static_batch": _("static batch: all begin and end together"),
            "continuous_batch": _("continuous batch: the next one begins when one ends"),
            "paged": _("blocks on demand: as many at once as have room"),
            "prefix_sharing": _("shared beginnings are computed once"),
        }
        return titles[self.name]


RUNGS = (
    Rung("no_kv_cache", reuse_kv=False),
    Rung("kv_cache"),
    Rung("static_batch", sequences=STATIC_SEQUENCES, waits=True),
    Rung("continuous_batch", sequences=STATIC_SEQUENCES),
    Rung("paged", sequences=0, has_blocks=True),
    Rung("prefix_sharing", sequences=0, prefix_cache=True, has_blocks=True),
)


@dataclass(frozen=True, slots=True)
class RungResult:
    """What a rung measured.

    Attributes:
        rung: which.
        loaded: what the engine said of itself.
        rounds: what became of the requests, the warm-up left out.
        longest_tokens: of the longest request, prompt and answer.
    """

    rung: Rung
    loaded: protocol.ModelLoaded
    rounds: tuple[Round, ...]
    longest_tokens: int

    @property
    def tokens_per_s(self) -> Spread:
        """Tokens of all answers a second, reading included."""
        return spread_of([done.total_tokens_per_s for done in self.rounds])

    @property
    def ttft_s(self) -> Spread:
        """Time from the first request's sending to the first token, of the median request of each round.

        By the program's clock and from the same moment for all, so that waiting for a place counts on every rung.
        """
        return spread_of([spread_of(done.first_tokens_s or [0.0]).median for done in self.rounds])

    @property
    def reused_tokens(self) -> int:
        """Tokens of prompts that were not computed again, in a round."""
        return max(sum(one.reused_tokens for one in done.figures) for done in self.rounds)

    @property
    def reserved_tokens(self) -> int:
        """Places taken for K and V when most were: blocks in use, or what pre-allocation would set aside."""
        done = self._fullest
        if not self.rung.reuse_kv:
            return 0
        return done.mapped_places or done.held_places if self.rung.has_blocks else done.running * self.longest_tokens

    @property
    def wasted_share(self) -> float:
        """The part of these places that held no token when most tokens were held."""
        reserved, done = self.reserved_tokens, self._fullest
        if not reserved:
            return 0.0
        if self.rung.has_blocks and done.mapped_places:
            return done.mapped_empty / reserved
        return max(0.0, 1 - done.held_tokens / reserved)

    @property
    def _fullest(self) -> Round:
        return max(self.rounds, key=lambda done: done.held_tokens)


def run_ladder(
    open_run: Callable[[], EngineRun],
    request: LoadRequest,
    work: Workload,
    repetitions: int,
    on_rung: Callable[[Rung], None] = lambda _rung: None,
) -> list[RungResult]:
    """Climb every rung and return what each measured; blocks for minutes.

    Args:
        open_run: starts nothing yet, returns a worker to be.
        request: what to load; how follows from the rung.
        work: the requests, the same on every rung.
        repetitions: rounds a rung, beside the warm-up.
        on_rung: told before each.

    Raises:
        AppError: the model cannot be loaded, a request is refused, or the engine ends.
    """
    results = []
    for rung in RUNGS:
        on_rung(rung)
        run = open_run()
        try:
            results.append(_climb(run, rung, request, work, repetitions))
        finally:
            run.close()
    return results


def rung_params(rung: Rung, work: Workload, params: protocol.LoadParams) -> protocol.LoadParams:
    """Return how the model is loaded for a rung: the same room for all, and the rung's own parts."""
    return msgspec.structs.replace(
        params,
        context_tokens=room_tokens(work),
        allow_long_context=True,  # room for several short requests, none of which is long
        max_sequences=rung.sequences or work.requests,
        prefix_cache=rung.prefix_cache,
        reuse_kv=rung.reuse_kv,
    )


def room_tokens(work: Workload) -> int:
    """Return the places for K and V that every rung has: for so many of the longest requests in whole blocks."""
    blocks = -(-work.longest_tokens // BLOCK_TOKENS) + 1
    return blocks * BLOCK_TOKENS * min(STATIC_SEQUENCES, work.requests)


def ladder_json(results: Sequence[RungResult], work: Workload, model: str) -> JsonObject:
    """Return the ladder with the keys of `cutaway bench --ladder --json`."""
    return {
        "model": model,
        "quantization": results[0].loaded.quantization,
        "requests": work.requests,
        "prompt_tokens": work.prompt_tokens,
        "shared_tokens": work.shared_tokens,
        "new_tokens": work.new_tokens,
        "room_tokens": room_tokens(work),
        "rungs": [_rung_json(result) for result in results],
    }


def gains(results: Sequence[RungResult]) -> list[float]:
    """Return how many times as many tokens a second each rung gives as the one below it; 1 for the first."""
    speeds = [result.tokens_per_s.median for result in results]
    below = speeds[:1] + speeds[:-1]
    return [speed / before if before > 0 else 0.0 for speed, before in zip(speeds, below, strict=True)]


def _climb(run: EngineRun, rung: Rung, request: LoadRequest, work: Workload, repetitions: int) -> RungResult:
    loaded = run.load(replace(request, params=rung_params(rung, work, request.params)), lambda _fraction: None)
    vocabulary = max(1, loaded.vocabulary_tokens)
    at_once = (rung.sequences or work.requests) if rung.waits else 0
    warm_up = replace(work, new_tokens=min(WARM_UP_TOKENS, work.new_tokens))
    run.run(requests_of(warm_up, vocabulary, 0, first_id=1), at_once)
    rounds = [
        run.run(requests_of(work, vocabulary, number, first_id=number * work.requests + 1), at_once)
        for number in range(1, repetitions + 1)
    ]
    return RungResult(rung, loaded, tuple(rounds), work.longest_tokens)


def _rung_json(result: RungResult) -> JsonObject:
    return {
        "rung": result.rung.name,
        **path_json(result.loaded),
        "served_at_once": max(done.running for done in result.rounds),
        "total_tokens_per_s": result.tokens_per_s.as_json(),
        "ttft_s": result.ttft_s.as_json(),
        "reused_tokens": result.reused_tokens,
        "kv_held_tokens": max(done.held_tokens for done in result.rounds),
        "kv_reserved_tokens": result.reserved_tokens,
        "wasted_share": round(result.wasted_share, 4),
        "preemptions": sum(done.preemptions for done in result.rounds),
    }
