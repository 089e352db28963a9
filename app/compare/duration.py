"""How long a comparison will take, from a probe of about two seconds a model. Pure: a prediction, never a measurement.

One forward pass of n tokens takes a fixed part and a part for each token. The fixed part is what reading all weights
once takes, which is the time of one written token; short texts, such as the answers of multiple-choice questions, are
made of little else. A run that was not probed is derived from those that were, by the size of its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from app.compare.plan import WINDOW_TOKENS, ChoiceSpec, ComparisonPlan, PromptSpec, RunSpec
from app.i18n import _, ngettext
from app.units import NBSP

# Of text in tokens that nobody has counted yet. A chat template adds its own to every prompt.
_CHARACTERS_PER_TOKEN = 4.2
_TEMPLATE_TOKENS = 30
_ANSWER_TOKENS = 130  # where the limit is higher: most answers to the bundled prompts end by themselves before 200
# What scoring takes beside reading, where no window was probed: the logits of its second half, compared row by row.
_SCORING_SHARE = 1 / 0.9
# A command and its answer through the pipe, and a piece of the result that is kept on the disk.
_COMMAND_S, _KEEP_S = 0.004, 0.01
# The machine is watched for so long before each turn and at both ends; a worker takes so long to end, and the process
# that renders the prompts so long to begin.
_WATCH_S, _END_S, _RENDERER_S = 0.5, 0.2, 0.5
_WARM_UP_TOKENS = 8  # written before the first turn of a load
# Runs that stay loaded together while they take turns: what each takes beside its weights, and what stays free.
_MOST_TOGETHER, _BESIDE_WEIGHTS_BYTES, _FREE_BYTES = 8, 2**29, 2**30
# Writing gets slower with the size of the weights, but less than in proportion: Llama-3.1-8B from Q4_K_M to F16 is 3.27
# times as large and 2.46 times as slow (llama.cpp, tools/quantize/README.md). Reading hardly changes.
_WRITING_POWER = 0.76

_MINUTE_S, _HOUR_S = 60, 3600
LONG_RUN_S = 90  # a normal amount that would take longer a run is made smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What a probe measured of a model.

    Attributes:
        prefill_tokens_per_s: reading a prompt of prefill_tokens.
        decode_tokens_per_s: writing.
        load_s: of the model, as the engine says.
        start_s: of the worker's process, until it begins to load and after it has loaded.
        prefill_tokens: how long the prompt was.
        window_s: scoring one window against a reference; 0 where it was not measured.
        write_s: scoring one window and writing it; 0 where it was not measured.
        size_bytes: of the model's file; 0 when unknown.
    """

    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    load_s: float = 0.0
    start_s: float = 0.0
    prefill_tokens: int = WINDOW_TOKENS
    window_s: float = 0.0
    write_s: float = 0.0
    size_bytes: int = 0

    @property
    def step_s(self) -> float:
        """The fixed part of a forward pass: one written token."""
        return 1 / self.decode_tokens_per_s if self.decode_tokens_per_s > 0 else 0.0

    def prefill_s(self, tokens: float) -> float:
        """Return what reading so many tokens takes, in seconds."""
        if self.prefill_tokens_per_s <= 0:
            return 0.0
        whole_s = self.prefill_tokens / self.prefill_tokens_per_s
        fixed_s = min(self.step_s, whole_s / 2)  # a probe that was disturbed must not make reading free of charge
        return fixed_s + tokens * (whole_s - fixed_s) / self.prefill_tokens

    @property
    def scored_window_s(self) -> float:
        """What scoring a window against a reference takes, in seconds."""
        return self.window_s or self.prefill_s(WINDOW_TOKENS) * _SCORING_SHARE

    @property
    def written_window_s(self) -> float:
        """What scoring a window and writing it takes, in seconds."""
        return self.write_s or self.scored_window_s


@dataclass(frozen=True, slots=True)
class Duration:
    """Predicted seconds, by phase.

    Attributes:
        load_s: starting workers and loading models, the second load for the speed rounds included.
        score_s: windows, those of the reference against itself and of the noise floor included.
        answer_s: answers.
        force_s: the reference's answers, read with each run's eyes.
        choice_s: multiple-choice questions.
        speed_s: rounds and warm-up.
    """

    load_s: float = 0.0
    score_s: float = 0.0
    answer_s: float = 0.0
    force_s: float = 0.0
    choice_s: float = 0.0
    speed_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All phases together."""
        return self.load_s + self.score_s + self.answer_s + self.force_s + self.choice_s + self.speed_s

    def plus(self, other: Duration) -> Duration:
        """Return both together."""
        return Duration(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def predicted_s(plan: ComparisonPlan, probes: Mapping[str, Probe], free_bytes: int | None = None) -> Duration:
    """Return what a comparison will take.

    Args:
        plan: what is to be done.
        probes: by run_id; at least one. The nearer the others are in size, the better they are predicted.
        free_bytes: memory that is free; None where nobody knows. Where the runs do not fit into it together, each is
            loaded anew for every turn of the speed rounds.

    Raises:
        ValueError: there is no probe of any run of the plan.
    """
    known = [(run, probes[run.run_id]) for run in plan.runs if run.run_id in probes]
    if not known:
        raise ValueError("no run of the plan was probed")
    turn_loads = _turn_loads(plan, free_bytes)
    total = Duration(load_s=_RENDERER_S if plan.workload.prompts else 0.0, speed_s=2 * _WATCH_S)
    for run in plan.runs:
        probe = probes.get(run.run_id) or _derived(run, known)
        total = total.plus(run_s(plan, probe, is_reference=run is plan.reference, turn_loads=turn_loads))
    return total


def run_s(plan: ComparisonPlan, probe: Probe, *, is_reference: bool = False, turn_loads: int = 1) -> Duration:
    """Return what one run of a plan will take.

    Args:
        plan: what is to be done.
        probe: of the run.
        is_reference: then the check against itself and the noise floor are its, too.
        turn_loads: how often it is loaded for the speed rounds.
    """
    work = plan.workload
    is_written = is_reference and not plan.reference_import
    loads = 1 + (turn_loads if work.speed.rounds else 0)
    windows_s = work.windows * (_KEEP_S + (probe.written_window_s if is_written else probe.scored_window_s))
    if is_reference and work.windows:
        windows_s += probe.scored_window_s  # the first window against itself
        if plan.with_noise_floor:
            loads += 1
            windows_s += work.windows * (_KEEP_S + probe.scored_window_s)
    return Duration(
        load_s=loads * (probe.start_s + probe.load_s + _END_S),
        score_s=windows_s,
        answer_s=sum(_answer_s(prompt, probe) for prompt in work.prompts),
        force_s=sum(_forced_s(prompt, probe) for prompt in work.prompts),
        choice_s=sum(_choice_s(choice, probe) for choice in work.choices),
        speed_s=_speed_s(plan, probe, turn_loads),
    )


def fewer_windows(plan: ComparisonPlan, probes: Mapping[str, Probe], fewest: int) -> tuple[int, str]:
    """Return how many windows to score, and why they are fewer than asked for.

    A normal amount whose slowest run would take longer than LONG_RUN_S is made smaller; others are what was asked for.

    Args:
        plan: what is to be done.
        probes: by run_id; at least one.
        fewest: how many windows are left then.

    Returns:
        The number of windows, and the words for it; "" where nothing changes.
    """
    asked = plan.workload.windows
    known = [(run, probes[run.run_id]) for run in plan.runs if run.run_id in probes]
    if plan.workload.amount != "normal" or asked <= fewest or not known:
        return asked, ""
    slowest_s = max(run_s(plan, probes.get(run.run_id) or _derived(run, known)).total_s for run in plan.runs)
    if slowest_s <= LONG_RUN_S:
        return asked, ""
    words = ngettext(
        "A run would take {time}, so {count} window is scored instead of {asked}.",
        "A run would take {time}, so {count} windows are scored instead of {asked}.",
        fewest,
    )
    return fewest, words.format(time=duration_words(slowest_s), count=fewest, asked=asked)


def duration_words(seconds: float) -> str:
    """Return a predicted time in words, no more exact than it is: "about 4 minutes"."""
    if seconds < 8:
        return _("a few seconds")
    if seconds < 55:
        count = max(10, 5 * round(seconds / 5))
        return _counted(ngettext("about {count} second", "about {count} seconds", count), count)
    minutes = round(seconds / _MINUTE_S)
    if minutes < 60:
        return _counted(ngettext("about {count} minute", "about {count} minutes", minutes), minutes)
    hours, rest = divmod(round(seconds / 600) * 10, 60)
    told = _counted(ngettext("about {count} hour", "about {count} hours", hours), hours)
    if hours >= 10 or not rest:
        return told
    return _("{hours} and {minutes}").format(
        hours=told, minutes=_counted(ngettext("{count} minute", "{count} minutes", rest), rest)
    )


# ------------------------------------------------------------------------------------------------ phases


def _answer_s(prompt: PromptSpec, probe: Probe) -> float:
    return probe.prefill_s(_prompt_tokens(prompt)) + _new_tokens(prompt) * probe.step_s + _COMMAND_S + _KEEP_S


def _forced_s(prompt: PromptSpec, probe: Probe) -> float:
    return probe.prefill_s(_prompt_tokens(prompt) + _new_tokens(prompt)) * _SCORING_SHARE + _COMMAND_S


def _choice_s(choice: ChoiceSpec, probe: Probe) -> float:
    question = len(choice.question) / _CHARACTERS_PER_TOKEN
    lengths = (question + len(answer) / _CHARACTERS_PER_TOKEN for answer in choice.answers)
    return sum(probe.prefill_s(tokens) + _COMMAND_S for tokens in lengths) + _KEEP_S


def _speed_s(plan: ComparisonPlan, probe: Probe, turn_loads: int) -> float:
    speed = plan.workload.speed
    if not speed.rounds:
        return 0.0
    read_s = probe.prefill_s(speed.prompt_tokens) + _COMMAND_S
    turn_s = read_s + speed.new_tokens * probe.step_s + _WATCH_S + 3 * _KEEP_S
    return speed.rounds * turn_s + turn_loads * (read_s + min(_WARM_UP_TOKENS, speed.new_tokens) * probe.step_s)


def _turn_loads(plan: ComparisonPlan, free_bytes: int | None) -> int:
    """Return how often a run is loaded for the speed rounds: once, where all stay loaded together."""
    needed = sum(run.size_bytes + _BESIDE_WEIGHTS_BYTES for run in plan.runs) + _FREE_BYTES
    fits = free_bytes is None or needed <= free_bytes
    return 1 if fits and len(plan.runs) <= _MOST_TOGETHER else plan.workload.speed.rounds


def _new_tokens(prompt: PromptSpec) -> int:
    return min(prompt.max_tokens, _ANSWER_TOKENS)


def _prompt_tokens(prompt: PromptSpec) -> float:
    return len(prompt.text) / _CHARACTERS_PER_TOKEN + _TEMPLATE_TOKENS


# --------------------------------------------------------------------------------------------- derivation


def _derived(run: RunSpec, known: Sequence[tuple[RunSpec, Probe]]) -> Probe:
    """Return what a probe of a run would have measured: that of the run nearest in size, scaled."""
    nearest, probe = min(known, key=lambda one: abs(_size(one[0], one[1]) - run.size_bytes))
    before = _size(nearest, probe)
    ratio = run.size_bytes / before if run.size_bytes > 0 and before > 0 else 1.0
    return Probe(
        prefill_tokens_per_s=probe.prefill_tokens_per_s,
        decode_tokens_per_s=probe.decode_tokens_per_s / ratio**_WRITING_POWER,
        load_s=probe.load_s * ratio,
        start_s=probe.start_s,
        prefill_tokens=probe.prefill_tokens,
        window_s=probe.window_s,
        write_s=probe.write_s,
        size_bytes=run.size_bytes,
    )


def _size(run: RunSpec, probe: Probe) -> int:
    return run.size_bytes or probe.size_bytes


def _counted(words: str, count: int) -> str:
    return words.format(count=count).replace(f"{count} ", f"{count}{NBSP}")
