"""What a comparison is to do, decided before it starts and kept with its results. Plain values.

A comparison is the same work done by several runs: the reference first, then each candidate. It lives in a folder of
its own, `comparisons/<id>/`: `plan.json` (this file's ComparisonPlan), `comparison.json` (what was found), `runs/`
(each run's per-token figures, answers, speeds), `reference/` (the reference's windows, freed when nothing needs them).
"""

from __future__ import annotations

from typing import Literal

import msgspec

WINDOW_TOKENS = 512  # of a scored window; its second half is scored, 255 tokens, as llama.cpp's perplexity tool does
FIRST_SCORED = 256
SCORED_TOKENS = WINDOW_TOKENS - 1 - FIRST_SCORED

Amount = Literal["quick", "normal", "thorough"]


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run: a model as it is loaded.

    Attributes:
        run_id: a short name that is a file name too, such as "Q4_K_M" or "F16-kv-q8_0"; unique in a plan.
        label: for people, such as "Q4_K_M" or "F16 · KV q8_0".
        key: the library's key of the model; "" for a path that is not in it.
        path: what the engine is given.
        backend: by which backend.
        quantization: such as "Q4_K_M"; "" when unknown.
        kv_type: how K and V are kept.
        micro_batch_tokens: tokens a forward takes at a time; another number than the reference's gives the noise floor.
        size_bytes: of the model on disk.
        bits_per_weight: effective; 0 when unknown.
        fallback_tensors: tensors stored in another type than the name promises.
        note: what a person must know of it, such as that it was made from a quantized source; "" for nothing.
    """

    run_id: str
    label: str
    path: str
    key: str = ""
    backend: str = "llama_cpp"
    quantization: str = ""
    kv_type: str = "f16"
    micro_batch_tokens: int = 512
    size_bytes: int = 0
    bits_per_weight: float = 0.0
    fallback_tensors: int = 0
    note: str = ""


class TextSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A text that windows are cut from.

    Attributes:
        text_id: such as "encyclopaedia", "chat", "code", "multilingual", "own".
        title: for people.
        path: a file of UTF-8 text; "" for a bundled one, found by its text_id.
        windows: how many windows of WINDOW_TOKENS are cut, one behind the other from the beginning.
        sha256: of the text as it was when the plan was made; a text that has changed since is another comparison.
        licence: and where it is from; "" for a person's own.
    """

    text_id: str
    title: str = ""
    path: str = ""
    windows: int = 1
    sha256: str = ""
    licence: str = ""


class PromptSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that every run answers greedily.

    Attributes:
        prompt_id: unique in a plan.
        text: what is asked.
        max_tokens: where the answer is cut.
    """

    prompt_id: str
    text: str
    max_tokens: int = 64


class ChoiceSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question with several answers, one of them right; a run chooses the likeliest by log-probability per byte.

    Attributes:
        choice_id: unique in a plan.
        question: what stands before the answer.
        answers: what may follow, each beginning with a space.
        right: the number of the right one, from 0.
    """

    choice_id: str
    question: str
    answers: tuple[str, ...]
    right: int


class SpeedSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How speed is measured; rounds of all runs take turns.

    Attributes:
        prompt_tokens: of the prompt that is read.
        new_tokens: of the answer that is written.
        rounds: that count; one more warms up.
    """

    prompt_tokens: int = 512
    new_tokens: int = 64
    rounds: int = 3


class WorkloadSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every run does.

    Attributes:
        amount: the preset it was made from.
        texts: what is scored, window by window.
        prompts: what is answered.
        choices: the multiple-choice questions; none in small presets.
        speed: how speed is measured.
        context_tokens: memory is stated for a context of this length.
    """

    amount: Amount
    texts: tuple[TextSpec, ...]
    prompts: tuple[PromptSpec, ...] = ()
    choices: tuple[ChoiceSpec, ...] = ()
    speed: SpeedSpec = SpeedSpec()
    context_tokens: int = 8192

    @property
    def windows(self) -> int:
        """How many windows are scored."""
        return sum(text.windows for text in self.texts)

    @property
    def scored_tokens(self) -> int:
        """How many tokens are scored."""
        return self.windows * SCORED_TOKENS


class ComparisonPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A comparison, as it was asked for.

    Attributes:
        comparison_id: the name of its folder.
        created_s: seconds since 1970.
        title: the model's name.
        reference: what the candidates are compared with.
        reference_reason: why this one, in words.
        candidates: the other runs, in the order in which they are done.
        workload: what each does.
        with_noise_floor: whether the reference is run a second time with another batch size.
        limit_kl: the person's limit: the smallest candidate below it is recommended.
        threads: 0 for the engine's choice; the same for all.
        reference_import: a folder of exported windows that takes the reference's place; "" for none.
    """

    comparison_id: str
    created_s: float
    title: str
    reference: RunSpec
    candidates: tuple[RunSpec, ...]
    workload: WorkloadSpec
    reference_reason: str = ""
    with_noise_floor: bool = True
    limit_kl: float = 0.05
    threads: int = 0
    reference_import: str = ""
    schema: int = 1

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """The reference, then the candidates."""
        return (self.reference, *self.candidates)

    def run(self, run_id: str) -> RunSpec | None:
        """Return the run of this id; None for an unknown one."""
        return next((run for run in self.runs if run.run_id == run_id), None)
