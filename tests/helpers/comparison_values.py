"""A comparison's result with every kind of figure in it, of the plan that scoring_worker.make_plan(q4=...) makes."""

from __future__ import annotations

from app.compare.results import (
    Answer,
    AnswerToken,
    Choices,
    ComparisonResult,
    Difference,
    Measure,
    Memory,
    Quality,
    RunResult,
    Speed,
)

MEASURE = Measure(median=2.0, low=1.0, high=3.0, values=(1.0, 2.0, 3.0))
QUALITY = Quality(
    tokens=510, non_finite=0, perplexity=10.5, perplexity_error=0.1, reference_perplexity=10.0, perplexity_ratio=1.05,
    perplexity_ratio_error=0.01, log_perplexity_correlation=0.99, kl_mean=0.04, kl_error=0.001,
    kl_interval=(0.03, 0.05), kl_median=0.02, kl_p90=0.1, kl_p95=0.2, kl_p99=0.4, kl_p999=None, kl_max=1.0,
    delta_p_mean=-0.01, delta_p_rms=0.05,
    same_top=0.9, same_top_error=0.01, cosine_mean=0.99, cosine_worst=0.5,
)  # fmt: skip
MEMORY = Memory(
    weights_bytes=1, kv_reserved_bytes=2, kv_used_bytes=1, compute_bytes=3, rest_bytes=4, total_bytes=10,
    predicted_bytes=9,
)  # fmt: skip
FORCED = AnswerToken(token_id=1, text="x", top=(("x", 0.5),))
RESULT = ComparisonResult(
    comparison_id="test",
    state="done",
    runs=(
        RunResult(run_id="F16", perplexity=10.0, memory=MEMORY, load_s=0.5),
        RunResult(
            run_id="q4", quality=QUALITY, perplexity=10.5, memory=MEMORY, on_front=True, verdict="small differences",
            verdict_code="small_differences",
            speed=Speed(prefill_tokens_per_s=MEASURE, decode_tokens_per_s=MEASURE, ttft_s=0.1, decode_ratio=MEASURE),
            answers=(Answer(prompt_id="a", text="x", token_ids=(1,), forced=(FORCED,)),),
            choices=Choices(picked=(0, 1), right=2, accuracy=1.0, accuracy_interval=(0.3, 1.0)),
        ),
    ),
    noise_floor=0.0001,
    self_check=0.0,
    differences=(Difference(first="q8", second="q4", kl=-0.1, interval=(-0.2, -0.05), is_real=True),),
    recommended="q4",
    sentence="q4: good.",
    took_s=12.5,
    warnings=("a", "b"),
)  # fmt: skip
