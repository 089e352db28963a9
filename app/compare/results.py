"""What a comparison found: the values that comparison.json holds, and that screen and command line show.

A figure that could not be measured is None, never 0. Plain values; the statistics are made in statistics.py, the words
in verdict.py, the file in report.py.
"""

from __future__ import annotations

import msgspec


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """How near a run is to the reference over all scored tokens; natural logarithms, probabilities as shares of 1.

    Attributes:
        tokens: scored, non-finite ones left out.
        non_finite: scored tokens whose logits were not all finite.
        perplexity: exp of the mean negative log-likelihood of this run.
        perplexity_error: one standard error of it, as llama.cpp prints it.
        reference_perplexity: of the reference on the same tokens.
        perplexity_ratio: this run's over the reference's.
        perplexity_ratio_error: one standard error, paired on the same tokens.
        perplexity_ratio_interval: 95 %, by the same bootstrap as kl_interval.
        log_perplexity_correlation: Pearson's, of the two series of log-likelihoods.
        kl_mean: mean Kullback-Leibler divergence of the reference's distribution to this run's, nats.
        kl_error: one naive standard error, as llama.cpp prints it.
        kl_interval: 95 %, by a bootstrap over windows.
        kl_median, kl_p90, kl_p95, kl_p99, kl_p999, kl_max: percentiles; None with too few tokens for it.
        delta_p_mean, delta_p_rms: of the probability of the right token, this run's less the reference's.
        same_top: share of tokens at which both find the same token likeliest.
        same_top_error: one standard error.
        cosine_mean, cosine_worst: of the two rows of log-probabilities, each less its mean; None where not measured.
    """

    tokens: int
    non_finite: int
    perplexity: float
    perplexity_error: float
    reference_perplexity: float
    perplexity_ratio: float
    perplexity_ratio_error: float
    log_perplexity_correlation: float
    kl_mean: float
    kl_error: float
    kl_interval: tuple[float, float]
    kl_median: float | None
    kl_p90: float | None
    kl_p95: float | None
    kl_p99: float | None
    kl_p999: float | None
    kl_max: float
    delta_p_mean: float
    delta_p_rms: float
    same_top: float
    same_top_error: float
    cosine_mean: float | None
    cosine_worst: float | None
    perplexity_ratio_interval: tuple[float, float] | None = None
    is_one_window: bool = False  # the intervals know one window only, and nothing of how windows differ


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure measured in several rounds: the median, a 95 % interval, and each value in order."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a run is, tokens a second; the ratios are to the reference, from rounds that took turns with it."""

    prefill_tokens_per_s: Measure
    decode_tokens_per_s: Measure
    ttft_s: float
    prefill_ratio: Measure | None = None
    decode_ratio: Measure | None = None
    is_noisy: bool = False  # the machine did something else meanwhile


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What a run takes with the workload's context, bytes by owner; the keys are those of `cutaway bench --json`."""

    weights_bytes: int
    kv_reserved_bytes: int
    kv_used_bytes: int
    compute_bytes: int
    rest_bytes: int
    total_bytes: int
    predicted_bytes: int | None = None


class AnswerToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token of an answer, and what else was likely there: (text, probability) each, the likeliest first."""

    token_id: int
    text: str
    top: tuple[tuple[str, float], ...] = ()


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run's greedy answer to a prompt.

    Attributes:
        prompt_id: of the plan.
        text: what it wrote.
        token_ids: of it.
        first_divergence: the first token that is another one than the reference's; None where none is.
        agreed: of the reference's answer, teacher-forced: how many tokens this run would have chosen too.
        forced: the reference's answer, token by token, with what this run found likely there.
    """

    prompt_id: str
    text: str
    token_ids: tuple[int, ...] = ()
    first_divergence: int | None = None
    agreed: int = 0
    forced: tuple[AnswerToken, ...] = ()


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The multiple-choice questions: what was chosen, and how that compares with the reference."""

    picked: tuple[int, ...]
    right: int
    accuracy: float
    accuracy_interval: tuple[float, float]
    right_to_wrong: int = 0
    wrong_to_right: int = 0

    @property
    def flips(self) -> int:
        """Questions whose answer was right with the one and wrong with the other (Dutta et al. 2024)."""
        return self.right_to_wrong + self.wrong_to_right


class RunResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one run came to. A run that failed keeps what it had measured until then.

    Attributes:
        run_id: of the plan.
        quality: None for the reference, and with fewer than two finite tokens.
        non_finite: scored tokens whose logits were not all finite, also where that leaves no quality.
        perplexity: of the run by itself.
        speed, memory, load_s: None where not measured.
        answers, choices: what it said.
        failure: why it ended, in words; "" for a run that is whole.
        verdict: in words, such as "small differences"; "" without quality.
        verdict_code: the band's name, see verdict.py.
        on_front: nothing smaller is as good, nothing as good is smaller.
        device, engine_variant, threads, tokenizer_hash: what the engine said.
    """

    run_id: str
    quality: Quality | None = None
    non_finite: int = 0
    perplexity: float | None = None
    speed: Speed | None = None
    memory: Memory | None = None
    load_s: float | None = None
    answers: tuple[Answer, ...] = ()
    choices: Choices | None = None
    failure: str = ""
    verdict: str = ""
    verdict_code: str = ""
    on_front: bool = False
    device: str = ""
    engine_variant: str = ""
    threads: int = 0
    tokenizer_hash: str = ""

    @property
    def broken_tokens(self) -> int:
        """How many of the scored tokens came out as no number."""
        return max(self.non_finite, self.quality.non_finite if self.quality is not None else 0)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Whether two runs really differ: mean KL of the first less the second's, paired on the same tokens."""

    first: str
    second: str
    kl: float
    interval: tuple[float, float]
    is_real: bool  # the interval has no 0 in it, and the larger of both is above three times the noise floor


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A comparison so far.

    Attributes:
        comparison_id: of the plan.
        state: "planned", "running", "stopped", "done".
        runs: one a run of the plan that was begun, the reference first.
        noise_floor: mean KL of the reference against itself with another batch size; None where it was not run.
        self_check: mean KL of the reference against its own stored windows; must round to 0.0000.
        differences: neighbours by size, whether they really differ.
        recommended: run_id of the smallest within the limit; "" for none.
        sentence: the verdict on the whole, in words.
        took_s: measured time of all work so far.
        warnings: what a person must know of the conditions.
    """

    comparison_id: str
    state: str = "planned"
    runs: tuple[RunResult, ...] = ()
    noise_floor: float | None = None
    self_check: float | None = None
    differences: tuple[Difference, ...] = ()
    recommended: str = ""
    sentence: str = ""
    took_s: float = 0.0
    warnings: tuple[str, ...] = ()

    def run(self, run_id: str) -> RunResult | None:
        """Return the result of a run; None where it was not begun."""
        return next((one for one in self.runs if one.run_id == run_id), None)
