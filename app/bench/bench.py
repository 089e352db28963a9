"""`cutaway bench`: how fast an engine reads and writes, and what memory it takes, on requests of a fixed length.

One load, a warm-up that does not count, then several rounds of the same size, no two with the same prompt. Reading and
writing are timed apart by the engine itself, per request. Prints nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import psutil

from app.bench.engine_run import EngineRun, Round
from app.bench.figures import Spread, spread_of
from app.bench.workload import Workload, requests_of
from app.chat.messages import JsonObject
from app.engines.supervisor import LoadRequest
from backends import protocol

WARM_UP_TOKENS = 8  # of each answer before the first round: a step of every kind was made then
BUSY_SHARE = 0.2  # of the processor's cores: beyond this the figures are too low, and it is said
_SAMPLE_S = 0.5
_FIGURES = ("ttft_s", "prefill_tokens_per_s", "decode_tokens_per_s")

OnRound = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """What else the machine did before the first round.

    Attributes:
        busy_share: of all cores' time, over half a second, the worker being idle.
        load_average: the system's own, over a minute; None where there is none.
        cores: that there are.
    """

    busy_share: float
    load_average: float | None
    cores: int

    @property
    def is_busy(self) -> bool:
        """Whether the figures must be taken with a grain of salt."""
        return self.busy_share > BUSY_SHARE


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What was measured.

    Attributes:
        request: how the model was loaded.
        loaded: what the engine said of it.
        work: what was asked in each round.
        rounds: what became of them, the warm-up left out.
        memory: the most that was measured, by owner, in bytes.
        peak_bytes: their sum.
        machine: what else went on.
    """

    request: LoadRequest
    loaded: protocol.ModelLoaded
    work: Workload
    rounds: tuple[Round, ...]
    memory: JsonObject
    peak_bytes: int
    machine: MachineLoad

    @property
    def running(self) -> int:
        """The most requests that one step worked on."""
        return max(done.running for done in self.rounds)

    def spreads(self) -> dict[str, Spread]:
        """Return each figure over the rounds; of several requests the median of a round counts."""
        found = {name: spread_of([_median(done, name) for done in self.rounds]) for name in _FIGURES}
        found["total_tokens_per_s"] = spread_of([done.total_tokens_per_s for done in self.rounds])
        return found


def run_bench(
    run: EngineRun,
    request: LoadRequest,
    work: Workload,
    repetitions: int,
    on_progress: Callable[[float], None] = lambda _fraction: None,
    on_round: OnRound = lambda _number, _of: None,
) -> BenchResult:
    """Load, warm up, measure and return what was seen; blocks until it is done.

    Args:
        run: a worker that holds nothing yet.
        request: what to load and how.
        work: what to ask in each round.
        repetitions: how many rounds.
        on_progress: told how far the load is.
        on_round: told before each round which one of how many begins.

    Raises:
        AppError: the model cannot be loaded, a request is refused, or the engine ends.
    """
    loaded = run.load(request, on_progress)
    machine = machine_load()
    vocabulary = max(1, loaded.vocabulary_tokens)
    warm_up = replace(work, new_tokens=min(WARM_UP_TOKENS, work.new_tokens))
    run.run(requests_of(warm_up, vocabulary, 0, first_id=1))
    rounds = []
    for number in range(1, repetitions + 1):
        on_round(number, repetitions)
        rounds.append(run.run(requests_of(work, vocabulary, number, first_id=number * work.requests + 1)))
    return BenchResult(request, loaded, work, tuple(rounds), memory_json(run), run.peak_bytes, machine)


def machine_load() -> MachineLoad:
    """Return what the machine is doing; takes half a second."""
    busy = psutil.cpu_percent(interval=_SAMPLE_S) / 100
    try:
        average: float | None = os.getloadavg()[0]
    except (OSError, AttributeError):  # Windows has none
        average = None
    return MachineLoad(busy, average, os.cpu_count() or 1)


def memory_json(run: EngineRun) -> JsonObject:
    """Return the memory by the owners that `cutaway fit` names; what is used is a part of what is reserved."""
    owned = run.memory()
    return {
        "weights_bytes": round(owned.weights_bytes),
        "kv_reserved_bytes": round(owned.kv_used_bytes + owned.kv_idle_bytes),
        "kv_used_bytes": round(owned.kv_used_bytes),
        "compute_bytes": round(owned.compute_bytes),
        "rest_bytes": round(owned.rest_bytes),
        "total_bytes": run.peak_bytes,
    }


def bench_json(result: BenchResult, model: str) -> JsonObject:
    """Return the result with the keys of `cutaway bench --json`.

    Args:
        result: what was measured.
        model: the model's key in the library, or what the person called it.
    """
    loaded, spreads = result.loaded, result.spreads()
    figures = [figure for done in result.rounds for figure in done.figures]
    return {
        "model": model,
        "quantization": loaded.quantization,
        **path_json(loaded),
        "requests": result.work.requests,
        "served_at_once": result.running,
        "prompt_tokens": result.work.prompt_tokens,
        "new_tokens": result.work.new_tokens,
        "reused_tokens": max(figure.reused_tokens for figure in figures),
        "draft_proposed": sum(figure.draft_proposed for figure in figures),
        "draft_accepted": sum(figure.draft_accepted for figure in figures),
        **{name: round(spread.median, 6) for name, spread in spreads.items()},
        "runs": {"count": len(result.rounds), **{name: spread.as_json() for name, spread in spreads.items()}},
        "memory": result.memory,
        "peak_rss_bytes": result.peak_bytes,
        "load_s": round(loaded.load_s, 3),
        "preemptions": sum(done.preemptions for done in result.rounds),
        "machine": {
            "cores": result.machine.cores,
            "busy_share_before": round(result.machine.busy_share, 3),
            "load_average": result.machine.load_average,
        },
    }


def path_json(loaded: protocol.ModelLoaded) -> JsonObject:
    """Return which code computed, as JSON: every figure names its path."""
    return {
        "backend": loaded.backend,
        "device": loaded.device,
        "engine_variant": loaded.engine_variant,
        "attention_path": loaded.attention_path,
        "attention_kernel": loaded.attention_kernel,
        "path_note": loaded.path_note,
        "threads": loaded.threads,
        "context_tokens": loaded.context_tokens,
        "kv_type": loaded.kv_type,
    }


def _median(done: Round, name: str) -> float:
    return spread_of([getattr(figures, name) for figures in done.figures]).median
