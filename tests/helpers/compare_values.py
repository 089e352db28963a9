"""An invented comparison: a plan, results and events that agree with each other. The figures are of quant.md 1.2."""

from __future__ import annotations

import msgspec

from app.compare.plan import ComparisonPlan, PromptSpec, RunSpec, TextSpec, WorkloadSpec
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
from app.compare.verdict import band, sentence

GIB = 2**30

# Quantization, bits per weight, GiB, mean KL, same token, how many times as fast.
LADDER = (
    ("Q8_0", 8.5, 7.95, 0.00136, 0.9767, 1.7),
    ("Q6_K", 6.56, 6.14, 0.00545, 0.9603, 2.0),
    ("Q5_K_M", 5.7, 5.33, 0.01076, 0.949, 2.3),
    ("Q4_K_M", 4.89, 4.58, 0.0313, 0.919, 2.4),
    ("Q4_0", 4.67, 4.34, 0.0719, 0.881, 2.5),
    ("Q2_K", 3.16, 2.95, 0.445, 0.7114, 2.7),
)
PROMPT = "How does a lighthouse keeper end the day?"
WORDS = ("The", " tide", " turned", " at", " four", ",", " and", " the", " keeper", " climbed", " the", " stairs", ".")
ENDINGS = {"Q4_K_M": (11, " steps to wind the light."), "Q2_K": (4, " the turn, and the keeper turned the light.")}
FAILURE = "The system ended the engine, probably because memory ran out. Try a smaller context."


def spec(quantization: str, bits: float, gib: float, **fields: object) -> RunSpec:
    made: dict[str, object] = {
        "run_id": quantization,
        "label": quantization,
        "key": f"Llama-3.1-8B-Instruct:{quantization}",
        "path": f"/models/{quantization}.gguf",
        "quantization": quantization,
        "bits_per_weight": bits,
        "size_bytes": int(gib * GIB),
        **fields,
    }
    return RunSpec(**made)  # type: ignore[arg-type]


def plan(**fields: object) -> ComparisonPlan:
    """Return a plan of six candidates against F16."""
    made: dict[str, object] = {
        "comparison_id": "2026-11-30-llama",
        "created_s": 1_796_000_000.0,
        "title": "Llama-3.1-8B-Instruct",
        "reference": spec("F16", 16.0, 14.96),
        "reference_reason": "F16: 16 bits for a weight, as models are published.",
        "candidates": tuple(spec(name, bits, gib) for name, bits, gib, *_rest in LADDER),
        "workload": WorkloadSpec(
            amount="normal",
            texts=(
                TextSpec(text_id="encyclopaedia", title="Encyclopaedia", windows=2, licence="CC BY-SA 4.0"),
                TextSpec(text_id="chat", title="Chat", windows=1, licence="CC0"),
                TextSpec(text_id="code", title="Code and tables", windows=1, licence="MIT"),
            ),
            prompts=(PromptSpec(prompt_id="one", text=PROMPT),),
        ),
        **fields,
    }
    return ComparisonPlan(**made)  # type: ignore[arg-type]


def quality(kl: float, same: float, **fields: object) -> Quality:
    made: dict[str, object] = {
        "tokens": 1020,
        "non_finite": 0,
        "perplexity": 6.23 * (1 + kl),
        "perplexity_error": 0.21,
        "reference_perplexity": 6.23,
        "perplexity_ratio": 1 + kl,
        "perplexity_ratio_error": kl / 5,
        "log_perplexity_correlation": 0.99,
        "kl_mean": kl,
        "kl_error": kl / 12,
        "kl_interval": (kl * 0.9, kl * 1.1),
        "kl_median": kl / 3,
        "kl_p90": kl * 2.4,
        "kl_p95": kl * 4,
        "kl_p99": kl * 11,
        "kl_p999": None,
        "kl_max": kl * 40,
        "delta_p_mean": -kl / 5,
        "delta_p_rms": kl**0.5 / 3,
        "same_top": same,
        "same_top_error": 0.009,
        "cosine_mean": 1 - kl / 5,
        "cosine_worst": 1 - kl * 2,
        "perplexity_ratio_interval": (1 + kl * 0.7, 1 + kl * 1.3),
        **fields,
    }
    return Quality(**made)  # type: ignore[arg-type]


def measure(median: float, spread: float = 0.04) -> Measure:
    return Measure(median=median, low=median * (1 - spread), high=median * (1 + spread), values=(median,) * 3)


def speed(ratio: float | None) -> Speed:
    times = ratio or 1.0
    return Speed(
        prefill_tokens_per_s=measure(92.0 * min(times, 1.1)),
        decode_tokens_per_s=measure(5.4 * times),
        ttft_s=0.84,
        prefill_ratio=measure(min(times, 1.1)) if ratio else None,
        decode_ratio=measure(ratio) if ratio else None,
    )


def memory(gib: float) -> Memory:
    weights, kv = int(gib * GIB), GIB
    total = weights + kv + GIB // 4
    return Memory(
        weights_bytes=weights,
        kv_reserved_bytes=kv,
        kv_used_bytes=kv // 2,
        compute_bytes=GIB // 4,
        rest_bytes=0,
        total_bytes=total,
        predicted_bytes=int(total * 0.98),
    )


def answer(quantization: str) -> Answer:
    """Return the answer of a run: the reference's, or one that leaves it somewhere."""
    tokens = tuple(
        AnswerToken(token_id=n, text=word, top=((word, 0.62), (" steps", 0.3))) for n, word in enumerate(WORDS)
    )
    divergence, ending = ENDINGS.get(quantization, (None, ""))
    text = "".join(WORDS) if divergence is None else "".join(WORDS[:divergence]) + ending
    return Answer(
        prompt_id="one",
        text=text,
        token_ids=tuple(range(len(WORDS))),
        first_divergence=divergence,
        agreed=len(WORDS) if divergence is None else len(WORDS) - 2,
        forced=tokens,
    )


def run(quantization: str, **fields: object) -> RunResult:
    """Return what a run of the ladder came to."""
    told = {"device": "CPU", "engine_variant": "llama.cpp AVX2", "threads": 8, "tokenizer_hash": "ab12cd34ef567890"}
    if quantization == "F16":
        made = {"perplexity": 6.2332, "speed": speed(None), "memory": memory(14.96), "load_s": 9.1}
        return RunResult(run_id="F16", answers=(answer("F16"),), **{**told, **made, **fields})  # type: ignore[arg-type]
    _name, _bits, gib, kl, same, times = next(row for row in LADDER if row[0] == quantization)
    found = band(kl)
    made = {
        "quality": quality(kl, same),
        "perplexity": 6.23 * (1 + kl),
        "speed": speed(times),
        "memory": memory(gib),
        "load_s": gib / 2,
        "answers": (answer(quantization),),
        "verdict": found.words,
        "verdict_code": found.code,
        **told,
        **fields,
    }
    return RunResult(run_id=quantization, **made)  # type: ignore[arg-type]


def choices() -> Choices:
    return Choices(
        picked=(0, 1) * 25, right=31, accuracy=0.62, accuracy_interval=(0.48, 0.74), right_to_wrong=3, wrong_to_right=1
    )


def result(of: ComparisonPlan | None = None, **fields: object) -> ComparisonResult:
    """Return a finished comparison; its sentence is the program's own."""
    made: dict[str, object] = {
        "comparison_id": "2026-11-30-llama",
        "state": "done",
        "runs": (run("F16"), *(run(row[0]) for row in LADDER)),
        "noise_floor": 0.0004,
        "self_check": 0.0,
        "differences": (
            Difference(first="Q8_0", second="Q6_K", kl=-0.004, interval=(-0.009, 0.001), is_real=False),
            Difference(first="Q6_K", second="Q5_K_M", kl=-0.005, interval=(-0.009, -0.001), is_real=True),
            Difference(first="Q5_K_M", second="Q4_K_M", kl=-0.02, interval=(-0.03, -0.01), is_real=True),
        ),
        "recommended": "Q4_K_M",
        "took_s": 541.0,
        **fields,
    }
    found = ComparisonResult(**made)  # type: ignore[arg-type]
    return msgspec.structs.replace(found, sentence=found.sentence or sentence(found, of or plan()))
