"""What comparing takes: scoring against reading, and whole comparisons of the three amounts against their prediction.

Scoring is a window of 512 tokens, the second half compared with a reference's window on disk, as every candidate of a
comparison does it; reading is a prompt of 512 tokens, of which only the last one gives logits. Both go through one
worker and take turns. Scoring computes the logits of 256 tokens more: with the starter's vocabulary that alone is a
tenth of the work, and `forward_share` tells what is ours.

A comparison is the program's own runner over quantizations of the starter, made from its F16, with all that an amount
has: windows, answers, the noise floor, speed rounds, questions. Quick takes all seven, the others fewer: they take
longer a run. Each is predicted beforehand as the program does it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import cast

from app.bench.engine_run import EngineRun
from app.compare import texts
from app.compare.duration import Probe, predicted_s
from app.compare.folder import ComparisonFolder
from app.compare.plan import FIRST_SCORED, WINDOW_TOKENS, Amount, ComparisonPlan, RunSpec
from app.compare.probe_speed import probe_speed
from app.compare.runner import ComparisonRunner, RunnerServices
from app.compare.workload import preset, with_windows
from app.engines.supervisor import LoadRequest
from backends import client, protocol
from backends.renderer_client import RendererClient
from tests.benchmarks.engine import NullSink, random_prompt
from tests.benchmarks.measure import Bench, Figures, physical_threads, starter_model, tell
from tests.helpers.ladder_model import QUANTIZATIONS, starter_quantized

_ROUNDS, _QUICK_ROUNDS = 7, 1
_SEED = 5
_PATIENCE_S = 120.0
_COMPARISON_TIMEOUT_S = 3600.0
_CANDIDATES: dict[Amount, int] = {"quick": len(QUANTIZATIONS), "normal": 3, "thorough": 1}


def measure(bench: Bench) -> Figures:
    """Return the ratio of both speeds, and the times of comparisons against their predictions."""
    found = bench.child("compare", "scoring", bench.pick(_ROUNDS, _QUICK_ROUNDS))
    for amount in _CANDIDATES if not bench.is_quick else ("quick",):
        count = bench.pick(_CANDIDATES[amount], 1)
        found |= bench.child("compare", amount, count, timeout_s=_COMPARISON_TIMEOUT_S)
    return found


# ------------------------------------------------------------------------------------------------ scoring


class ScoringSink(NullSink):
    """A loaded worker that is also asked for scores.

    Attributes:
        _scored: the last answer; None before it.
        _is_scored: set by the answer, or by what came in its place.
    """

    def __init__(self, log: Path, threads: int) -> None:
        super().__init__(log, threads)
        self._scored: protocol.ScoreDone | None = None
        self._is_scored = threading.Event()

    def score(self, token_ids: tuple[int, ...], write_path: str = "", reference_path: str = "") -> protocol.ScoreDone:
        """Score a window's second half and wait for it."""
        self._scored = None
        self._is_scored.clear()
        self._client.send(
            protocol.Score(
                request_id=protocol.RequestId(0),
                token_ids=token_ids,
                first_scored=FIRST_SCORED,
                write_path=write_path,
                reference_path=reference_path,
            )
        )
        if not self._is_scored.wait(_PATIENCE_S) or self._scored is None:
            raise RuntimeError("the window was not scored")
        return self._scored

    def _on_event(self, origin: client.EngineClient, event: client.ClientEvent) -> None:
        if isinstance(event, protocol.ScoreDone):
            self._scored = event
        super()._on_event(origin, event)
        if isinstance(event, protocol.ScoreDone | protocol.EngineFailed | client.EngineDied):
            self._is_scored.set()


def _scoring(rounds: int) -> None:
    reading, scoring, shares = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="cutaway-bench-") as folder,
        ScoringSink(Path(os.devnull), physical_threads()) as sink,
    ):
        window = random_prompt(_SEED, WINDOW_TOKENS, sink.vocabulary_tokens).token_ids
        place = f"{folder}/0.cwin"
        sink.score(window, write_path=place)
        for number in range(-1, rounds):  # the first round only warms
            prompt = random_prompt(_SEED + 1 + number, WINDOW_TOKENS, sink.vocabulary_tokens)
            timed = sink.run(prompt, 1)
            assert timed.figures.reused_tokens == 0
            began_s = time.monotonic()
            done = sink.score(window, reference_path=place)
            score_s = time.monotonic() - began_s
            if number >= 0:
                reading.append(WINDOW_TOKENS / (timed.ended_s - timed.sent_s))
                scoring.append(WINDOW_TOKENS / score_s)
                shares.append(done.prefill_s / done.score_s)
    ratios = [score / read for score, read in zip(scoring, reading, strict=True)]
    tell(
        {
            "compare.score_tokens_per_s": statistics.median(scoring),
            "compare.read_tokens_per_s": statistics.median(reading),
            "compare.score_to_prefill": statistics.median(ratios),
            "compare.forward_share": statistics.median(shares),
        }
    )


# ---------------------------------------------------------------------------------------------- comparing


def _comparison(amount: Amount, candidates: int) -> None:
    with tempfile.TemporaryDirectory(prefix="cutaway-bench-") as made:
        folder = Path(made)
        plan = _plan(amount, candidates)
        context_tokens = plan.workload.context_tokens
        probes = {run.run_id: _probe(folder, run, context_tokens) for run in (plan.reference, plan.candidates[-1])}
        predicted = predicted_s(plan, probes).total_s
        renderer = RendererClient()
        services = RunnerServices(open_log=lambda: folder / "worker.log", renderer=renderer, read_text=texts.read_text)
        began_s = time.monotonic()
        try:
            result = ComparisonRunner(ComparisonFolder.create(folder, plan), services).run(lambda _event: None)
        finally:
            renderer.close()
        took_s = time.monotonic() - began_s
    failures = [run.failure for run in result.runs if run.failure]
    if result.state != "done" or failures:
        raise RuntimeError(f"the comparison ended as {result.state}: {failures or result.warnings}")
    found = {
        f"compare.{amount}_s": took_s,
        f"compare.{amount}_predicted_s": predicted,
        f"compare.{amount}_off_percent": 100 * abs(predicted / took_s - 1),
        f"compare.{amount}_self_check": result.self_check or 0.0,
    }
    found |= {f"compare.{amount}_kl_{run.run_id}": run.quality.kl_mean for run in result.runs if run.quality}
    tell(found)


def _plan(amount: Amount, candidates: int) -> ComparisonPlan:
    """Return a comparison of the starter's F16 with some quantizations; the smallest stands last."""
    workload = preset(amount, texts.bundled_texts())
    if candidates < len(QUANTIZATIONS):
        workload = with_windows(workload, 1)
    return ComparisonPlan(
        comparison_id="bench",
        created_s=time.time(),
        title="SmolLM2 135M",
        reference=_run_spec("F16"),
        candidates=tuple(_run_spec(name) for name in QUANTIZATIONS[-candidates:]),
        workload=workload,
    )


def _run_spec(quantization: str) -> RunSpec:
    path = starter_quantized(starter_model(), quantization)
    return RunSpec(
        run_id=quantization,
        label=quantization,
        path=str(path),
        quantization=quantization,
        size_bytes=path.stat().st_size,
    )


def _probe(folder: Path, run: RunSpec, context_tokens: int) -> Probe:
    engine = EngineRun(lambda: folder / "probe.log")
    try:
        params = protocol.LoadParams(context_tokens=context_tokens, kv_mode="streams")
        return probe_speed(engine, LoadRequest(run.path, run.backend, params))
    finally:
        engine.close()


if __name__ == "__main__":
    asked, number = sys.argv[1], int(sys.argv[2])
    if asked == "scoring":
        _scoring(number)
    else:
        _comparison(cast(Amount, asked), number)
