"""What a comparison's folder keeps while it runs: the tokens, and of each run what was measured so far. Plain values.

Everything that a result is made of stands in these, so that a comparison goes on after any death where it was.
"""

from __future__ import annotations

import msgspec


class WindowTokens(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a text: WINDOW_TOKENS ids; `number` counts within the text, from 0."""

    text_id: str
    number: int
    token_ids: tuple[int, ...]


class PromptTokens(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as every run reads it, chat template included."""

    prompt_id: str
    token_ids: tuple[int, ...]


class ChoiceTokens(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answers as ids; answer_bytes are the lengths of the answers' texts."""

    choice_id: str
    question_ids: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]
    answer_bytes: tuple[int, ...]


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """All that every run is given, tokenized once by the reference.

    Attributes:
        tokenizer_hash: of the vocabulary that these ids belong to.
        vocabulary_tokens: how many tokens it has.
        architecture: of the reference, such as "llama".
        parameters_count: of the reference; 0 when unknown.
        windows, prompts, choices: in the order in which they are done.
        sha256: of all these ids.
        notes: what a person must know of them, such as a text that is too short.
    """

    tokenizer_hash: str
    vocabulary_tokens: int
    architecture: str = ""
    parameters_count: int = 0
    windows: tuple[WindowTokens, ...] = ()
    prompts: tuple[PromptTokens, ...] = ()
    choices: tuple[ChoiceTokens, ...] = ()
    sha256: str = ""
    notes: tuple[str, ...] = ()


class RunFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the engine said of a run when it had loaded it.

    Attributes:
        engine_version: of the library that computes.
        context_tokens: that the run really had.
        notices: codes of app/errors.py: fallbacks a person must be told of.
        reserved_bytes: what the engine set up: weights, KV cache, compute, outputs.
        The others are those of protocol.ModelLoaded.
    """

    backend: str = ""
    engine_version: str = ""
    engine_variant: str = ""
    device: str = ""
    threads: int = 0
    context_tokens: int = 0
    kv_type: str = ""
    attention_path: str = ""
    attention_kernel: str = ""
    quantization: str = ""
    architecture: str = ""
    parameters_count: int = 0
    tokenizer_hash: str = ""
    load_s: float = 0.0
    notices: tuple[str, ...] = ()
    reserved_bytes: int = 0


class SpeedRound(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a run: its speeds, tokens a second, and what else the machine did before."""

    number: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    ttft_s: float
    is_noisy: bool = False


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ended before its end; a lasting reason is there again at the next attempt."""

    message: str
    hint: str = ""
    is_lasting: bool = False


class MachineReading(msgspec.Struct, frozen=True, kw_only=True):
    """What else the machine did at one moment.

    Attributes:
        moment: "before", "round 1", ..., "after".
        busy_share: of all cores' time, over half a second in which no engine worked.
        load_average: over a minute; None where the system has none.
    """

    moment: str
    busy_share: float
    load_average: float | None = None


class Conditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Under which conditions all runs were measured.

    Attributes:
        processor, cores, memory_bytes, system: of the machine.
        program_version: of Cutaway.
        tokens_sha256: of the ids that every run was given.
        threads: of every run; 0 before the first load.
        kept_tokens: of each row of the reference only so many of the likeliest are kept; 0: all.
        keeps_loaded: during the speed rounds all runs stay loaded and take turns; None before them.
        machine: what else the machine did.
        self_check: mean KL of the reference against its own stored window, nats.
        took_s: of all work so far.
    """

    processor: str = ""
    cores: int = 0
    memory_bytes: int = 0
    system: str = ""
    program_version: str = ""
    tokens_sha256: str = ""
    threads: int = 0
    kept_tokens: int = 0
    keeps_loaded: bool | None = None
    machine: tuple[MachineReading, ...] = ()
    self_check: float | None = None
    took_s: float = 0.0
