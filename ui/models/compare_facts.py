"""Everything that is known of one run, and the conditions of a comparison, as titled facts.

Knows no widget. References for the measures: quant.md 1.1 and 7; the same definitions as llama.cpp's perplexity tool.
"""

from __future__ import annotations

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import Choices, ComparisonResult, Quality, RunResult
from app.i18n import _, ngettext
from app.units import NBSP, count_text, number_text, percent_text, seconds_text
from ui.models.compare_words import (
    NOT_KNOWN,
    Fact,
    amount_words,
    kl_text,
    limit_words,
    measure_text,
    ratio_text,
    share_text,
    size_text,
)


def run_facts(spec: RunSpec, run: RunResult) -> list[Fact]:
    """Return what is known of a run beyond its row of the table; what was not measured is left out."""
    facts = _quality_facts(run.quality) if run.quality is not None else _reference_facts(run)
    facts += _choice_facts(run.choices) if run.choices is not None else []
    facts += _speed_facts(run)
    if run.load_s is not None:
        about = _("From the start of a fresh worker to the model being ready, measured once.")
        facts.append(Fact(_("load time"), seconds_text(run.load_s), about))
    if run.memory is not None:
        facts += _memory_facts(run)
    if spec.fallback_tensors:
        about = _("Stored in a larger type, because their rows are no whole blocks of this one.")
        facts.append(Fact(_("tensors of another type"), count_text(spec.fallback_tensors), about))
    return facts


def _reference_facts(run: RunResult) -> list[Fact]:
    if run.perplexity is None:
        return []
    about = _("exp of the mean negative log-likelihood over the scored tokens.")
    return [Fact(_("perplexity"), number_text(run.perplexity), about)]


def _quality_facts(quality: Quality) -> list[Fact]:
    percentile = _("Of all scored tokens' divergences, by linear interpolation.")
    ratio = f"{quality.perplexity_ratio:.4f} ± {quality.perplexity_ratio_error:.4f}".replace(" ", NBSP)
    perplexity = f"{number_text(quality.perplexity)} ± {number_text(quality.perplexity_error)}".replace(" ", NBSP)
    facts = [
        Fact(_("KL median"), kl_text(quality.kl_median), percentile),
        Fact(_("KL 90 %"), kl_text(quality.kl_p90), percentile),
        Fact(_("KL 95 %"), kl_text(quality.kl_p95), percentile),
        Fact(_("KL 99 %"), kl_text(quality.kl_p99), percentile),
        Fact(_("KL 99.9 %"), kl_text(quality.kl_p999), _("Only with at least 4,000 scored tokens.")),
        Fact(_("KL largest"), kl_text(quality.kl_max), _("The one token at which both differ most.")),
        Fact(_("perplexity"), perplexity, _("± one standard error, as llama.cpp's perplexity tool prints it.")),
        Fact(_("perplexity ratio"), ratio, _("This run's over the reference's, paired on the same tokens.")),
        Fact(
            _("Δp mean"),
            percent_text(quality.delta_p_mean, signed=True),
            _("Probability of the right token: this run's less the reference's."),
        ),
        Fact(_("Δp RMS"), percent_text(quality.delta_p_rms), _("The root of the mean square of the same.")),
        Fact(
            _("same token"),
            f"{percent_text(quality.same_top)} ± {percent_text(quality.same_top_error)}".replace(" ", NBSP),
            _("Share of tokens at which both find the same token likeliest; ± one standard error."),
        ),
    ]
    return [fact for fact in facts if fact.value != NOT_KNOWN]


def _choice_facts(choices: Choices) -> list[Fact]:
    low, high = choices.accuracy_interval
    interval = _("({low} to {high})").format(low=share_text(low), high=share_text(high))
    flips = _("{count} ({worse} worse, {better} better)").format(
        count=count_text(choices.flips),
        worse=count_text(choices.right_to_wrong),
        better=count_text(choices.wrong_to_right),
    )
    return [
        Fact(
            _("questions right"),
            f"{share_text(choices.accuracy)} {interval}".replace(" ", NBSP),
            _("Multiple choice, by log-probability per byte; 95 % interval. Few questions prove little."),
        ),
        Fact(_("flips"), flips, _("Questions whose answer was right with the one and wrong with the other.")),
    ]


def _speed_facts(run: RunResult) -> list[Fact]:
    speed = run.speed
    if speed is None:
        return []
    about = _("Median of the rounds, which took turns with all other runs; 95 % interval.")
    if speed.is_noisy:
        about += " " + _("The machine did something else meanwhile.")
    facts = [
        Fact(_("writing"), measure_text(speed.decode_tokens_per_s), about),
        Fact(_("reading"), measure_text(speed.prefill_tokens_per_s), about),
        Fact(_("time to first token"), seconds_text(speed.ttft_s), _("With the prompt of the speed rounds.")),
    ]
    if speed.prefill_ratio is not None:
        facts.append(Fact(_("reading, against the reference"), ratio_text(speed.prefill_ratio), about))
    return facts


def _memory_facts(run: RunResult) -> list[Fact]:
    memory = run.memory
    if memory is None:
        return []
    about = _("Measured in the run's own worker: what it took more than before the load.")
    return [
        Fact(_("memory, weights"), size_text(memory.weights_bytes), about),
        Fact(_("memory, KV cache"), size_text(memory.kv_reserved_bytes), about),
        Fact(_("memory, compute"), size_text(memory.compute_bytes), about),
    ]


# ------------------------------------------------------------------------------------------ conditions


def check_about(code: str) -> str:
    """Return how a check was made, by its name in app/compare/verdict.py."""
    told = {
        "finite": _("Counts tokens whose logits were no numbers; they are in no mean."),
        "accuracy": _("The interval of the perplexity ratio less 1, paired on the same tokens, against one percent."),
        "cosine": _("Of the two rows of log-probabilities, each less its mean; from 0.99 on good. Not for ranking."),
        "choices": _("Right answers less the reference's on the same questions. Few questions prove little."),
        "speed": _("Writing, in rounds that took turns with the reference: whether the interval lies above 1."),
        "memory": _("The peak of the run's own worker against what was predicted."),
        "quiet": _("Looked at before each round, while no engine worked."),
    }
    return told.get(code, "")


def check_title(code: str) -> str:
    """Return what a check is about, where its words do not say it; "" where they do."""
    return {"speed": _("writing"), "memory": _("memory")}.get(code, "")


def condition_facts(plan: ComparisonPlan, result: ComparisonResult) -> list[Fact]:
    """Return under what conditions a comparison was made: what makes its figures comparable, and with what."""
    work = plan.workload
    label, reason = plan.reference.label, plan.reference_reason
    reason = reason if reason.startswith(label) else f"{label}. {reason}".strip()
    facts = [
        Fact(_("Reference"), reason),
        Fact(_("Amount"), amount_words(work.amount)),
        Fact(_("Text"), _texts_words(plan)),
        Fact(_("Answers"), _answers_words(plan)),
    ]
    if work.choices:
        count = len(work.choices)
        words = ngettext("{count} multiple-choice question", "{count} multiple-choice questions", count)
        facts.append(Fact(_("Questions"), words.format(count=count_text(count))))
    facts += [
        Fact(_("Speed"), _speed_words(plan)),
        Fact(_("Limit"), _("KL {limit}").format(limit=limit_words(plan.limit_kl))),
    ]
    facts += _machine_facts(plan, result)
    facts += _check_facts(result)
    facts += [Fact(run.label, run.note) for run in plan.runs if run.note]
    facts.append(
        Fact(_("Equal for all"), _("The same tokens, a fresh worker for each run, an emptied cache, a warm-up."))
    )
    return facts


def _texts_words(plan: ComparisonPlan) -> str:
    texts = []
    for text in plan.workload.texts:
        words = ngettext("{title}, {count} window", "{title}, {count} windows", text.windows)
        told = words.format(title=text.title or text.text_id, count=count_text(text.windows))
        texts.append(f"{told} ({text.licence})" if text.licence else told)
    scored = plan.workload.scored_tokens
    tokens = ngettext("{count} scored token", "{count} scored tokens", scored).format(count=count_text(scored))
    return f"{'; '.join(texts)}. {tokens}."


def _answers_words(plan: ComparisonPlan) -> str:
    prompts = plan.workload.prompts
    if not prompts:
        return _("none")
    longest = max(prompt.max_tokens for prompt in prompts)
    words = ngettext(
        "{count} prompt, greedy, up to {tokens} tokens", "{count} prompts, greedy, up to {tokens} tokens", len(prompts)
    )
    return words.format(count=count_text(len(prompts)), tokens=count_text(longest))


def _speed_words(plan: ComparisonPlan) -> str:
    speed = plan.workload.speed
    words = ngettext(
        "{prompt} tokens read, {new} written, {count} round that counts; runs take turns",
        "{prompt} tokens read, {new} written, {count} rounds that count; runs take turns",
        speed.rounds,
    )
    return words.format(
        prompt=count_text(speed.prompt_tokens), new=count_text(speed.new_tokens), count=count_text(speed.rounds)
    )


def _machine_facts(plan: ComparisonPlan, result: ComparisonResult) -> list[Fact]:
    told = {
        _("Engine"): {run.engine_variant for run in result.runs},
        _("Device"): {run.device for run in result.runs},
        _("Threads"): {count_text(run.threads) if run.threads else "" for run in result.runs},
        _("KV cache"): {run.kv_type for run in plan.runs},
        _("Tokenizer"): {run.tokenizer_hash[:12] for run in result.runs},
    }
    facts = [Fact(title, ", ".join(sorted(filter(None, values)))) for title, values in told.items()]
    context = _("{count} tokens").format(count=count_text(plan.workload.context_tokens))
    return [*(fact for fact in facts if fact.value), Fact(_("Memory stated for"), context)]


def _check_facts(result: ComparisonResult) -> list[Fact]:
    facts = []
    if result.self_check is not None:
        about = _("The reference against its own stored windows: must be 0.0000.")
        facts.append(Fact(_("Self-check"), _("KL {kl}").format(kl=kl_text(result.self_check)), about))
    if result.noise_floor is not None:
        about = _("The reference against itself with another batch size: differences below it mean nothing.")
        facts.append(Fact(_("Noise floor"), _("KL {kl}").format(kl=f"{result.noise_floor:.6f}"), about))
    return facts
