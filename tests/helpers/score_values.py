"""Token scores and results with known figures, for the tests of statistics, front and verdict."""

from __future__ import annotations

import numpy as np

from app.compare.plan import ComparisonPlan, RunSpec, WorkloadSpec
from app.compare.results import ComparisonResult, Memory, Quality, RunResult
from app.compare.token_scores import TokenScores
from backends import protocol

MIB = 2**20


def scores(kl, window=None, *, logprobs=None, reference=None, best=None, reference_best=None, non_finite=None):
    """Return scores with these KL values; all else is equal on both sides unless given."""
    count = len(kl)
    logprobs = np.full(count, -1.0) if logprobs is None else logprobs
    reference = logprobs if reference is None else reference
    best = np.zeros(count) if best is None else best
    return TokenScores(
        logprobs=np.asarray(logprobs, np.float32),
        reference_logprobs=np.asarray(reference, np.float32),
        kl=np.asarray(kl, np.float32),
        cosine=np.ones(count, np.float32),
        best_ids=np.asarray(best, np.int32),
        reference_best_ids=np.asarray(best if reference_best is None else reference_best, np.int32),
        non_finite=np.zeros(count, np.bool_) if non_finite is None else np.asarray(non_finite, np.bool_),
        window=np.zeros(count, np.int32) if window is None else np.asarray(window, np.int32),
    )


def random_scores(windows: int = 4, tokens: int = 255, seed: int = 0, noise: float = 0.3) -> TokenScores:
    """Return scores of random distributions over 11 tokens, the run's a noisy copy of the reference's."""
    generator = np.random.default_rng(seed)
    count = windows * tokens
    reference = _log_softmax(generator.normal(0, 2, (count, 11)))
    ours = _log_softmax(reference + generator.normal(0, noise, reference.shape))
    targets = generator.integers(0, 11, count)
    rows = np.arange(count)
    centred = [one - one.mean(axis=1, keepdims=True) for one in (ours, reference)]
    lengths = [np.sqrt((one * one).sum(axis=1)) for one in centred]
    return TokenScores(
        logprobs=ours[rows, targets].astype(np.float32),
        reference_logprobs=reference[rows, targets].astype(np.float32),
        kl=(np.exp(reference) * (reference - ours)).sum(axis=1).astype(np.float32),
        cosine=((centred[0] * centred[1]).sum(axis=1) / lengths[0] / lengths[1]).astype(np.float32),
        best_ids=ours.argmax(axis=1).astype(np.int32),
        reference_best_ids=reference.argmax(axis=1).astype(np.int32),
        non_finite=np.zeros(count, np.bool_),
        window=np.repeat(np.arange(windows, dtype=np.int32), tokens),
        token_ids=targets.astype(np.int32),
    )


def event_of(one: TokenScores, request_id: int = 1) -> protocol.ScoreDone:
    """Return the event that a worker would have sent for these scores."""
    return protocol.ScoreDone(
        request_id=protocol.RequestId(request_id),
        token_ids=one.token_ids.astype("<i4").tobytes(),
        logprobs=one.logprobs.astype("<f4").tobytes(),
        best_ids=one.best_ids.astype("<i4").tobytes(),
        non_finite=one.non_finite.astype(np.uint8).tobytes(),
        reference_logprobs=one.reference_logprobs.astype("<f4").tobytes(),
        reference_best_ids=one.reference_best_ids.astype("<i4").tobytes(),
        kl=one.kl.astype("<f4").tobytes(),
        cosine=one.cosine.astype("<f4").tobytes(),
    )


def quality_of(kl: float, *, spread: float = 0.1, same_top: float = 0.95, non_finite: int = 0, **fields) -> Quality:
    """Return a quality with this mean KL and an interval of this share around it."""
    values = {
        "tokens": 1020,
        "non_finite": non_finite,
        "perplexity": 10.0,
        "perplexity_error": 0.5,
        "reference_perplexity": 9.9,
        "perplexity_ratio": 1.01,
        "perplexity_ratio_error": 0.002,
        "log_perplexity_correlation": 0.99,
        "kl_mean": kl,
        "kl_error": kl * spread / 2,
        "kl_interval": (kl * (1 - spread), kl * (1 + spread)),
        "kl_median": kl / 2,
        "kl_p90": kl * 2,
        "kl_p95": kl * 3,
        "kl_p99": kl * 5,
        "kl_p999": None,
        "kl_max": kl * 9,
        "delta_p_mean": -0.001,
        "delta_p_rms": 0.03,
        "same_top": same_top,
        "same_top_error": 0.007,
        "cosine_mean": 0.995,
        "cosine_worst": 0.8,
    }
    return Quality(**{**values, **fields})


def memory_of(mib: float, predicted_mib: float | None = None) -> Memory:
    """Return a memory split of so many MiB, all weights."""
    total = round(mib * MIB)
    predicted = None if predicted_mib is None else round(predicted_mib * MIB)
    return Memory(
        weights_bytes=total,
        kv_reserved_bytes=0,
        kv_used_bytes=0,
        compute_bytes=0,
        rest_bytes=0,
        total_bytes=total,
        predicted_bytes=predicted,
    )


def ladder(points: dict[str, tuple[float, float]], *, limit_kl: float = 0.05, bits=None, **fields):
    """Return a plan and its result: candidates by name with (MiB on disk, mean KL), the reference F16 of 1,000 MiB."""
    bits = bits or {}
    specs = [
        RunSpec(
            run_id=name,
            label=name,
            path=f"{name}.gguf",
            size_bytes=round(mib * MIB),
            bits_per_weight=bits.get(name, 5.0),
        )
        for name, (mib, _kl) in points.items()
    ]
    reference = RunSpec(run_id="F16", label="F16", path="F16.gguf", size_bytes=1000 * MIB, bits_per_weight=16.0)
    plan = ComparisonPlan(
        comparison_id="one",
        created_s=0.0,
        title="Model",
        reference=reference,
        candidates=tuple(specs),
        workload=WorkloadSpec(amount="normal", texts=()),
        limit_kl=limit_kl,
    )
    runs = [RunResult(run_id="F16")]
    runs += [RunResult(run_id=name, quality=quality_of(kl)) for name, (_mib, kl) in points.items()]
    values = {"comparison_id": "one", "state": "done", "runs": tuple(runs)}
    return plan, ComparisonResult(**{**values, **fields})


def _log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
