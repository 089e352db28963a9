"""The wall between the program and an engine: every command and event, and how they travel.

A worker process and its client exchange these messages over one inherited pipe, encoded as msgpack and validated
when they arrive. Commands are imperative and go to the worker; events are past tense and come back. Nothing here
knows a model, a thread or a window, and no message ever holds a tensor or a pickle.

Rules for change: a field may be added with a default; no field is ever renamed, retyped or removed within one
PROTOCOL_VERSION. A reader ignores fields it does not know, so an older reader survives a newer writer.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

PROTOCOL_VERSION = 1

# One message. A 128k-token prompt is under 1 MB; the largest honest one is a window of per-token results (Score).
MAX_MESSAGE_BYTES = 64 * 1024 * 1024

RequestId = NewType("RequestId", int)


class LifeCycle(enum.Enum):
    """Where an engine stands. The only such enum in the program."""

    STARTING = "starting"  # the process was started and has not said Hello
    LOADING = "loading"  # a model is being read
    READY = "ready"  # a model is loaded and nothing is asked of it
    BUSY = "busy"  # at least one request is unfinished
    STOPPING = "stopping"  # the process was asked to end
    DEAD = "dead"  # the process is gone


class StopReason(enum.Enum):
    """Why a request ended."""

    END_OF_TEXT = "end_of_text"  # the model ended its turn
    STOP_STRING = "stop_string"  # one of the requested stop strings appeared
    MAX_TOKENS = "max_tokens"  # the requested number of tokens was reached
    CONTEXT_FULL = "context_full"  # no room is left in the context
    ABORTED = "aborted"  # the person pressed Stop


class _Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of everything that crosses the pipe."""


# ---------------------------------------------------------------------------------------------- prompts


class TemplatePart(_Message, frozen=True):
    """A piece of a rendered prompt that the chat template wrote: special tokens in it count."""

    text: str


class PlainPart(_Message, frozen=True):
    """A piece of a rendered prompt that a person or a model wrote: special tokens in it stay text."""

    text: str


class TokenPart(_Message, frozen=True):
    """A piece of a rendered prompt whose exact token ids are known, such as an earlier answer."""

    token_ids: tuple[int, ...]


class RenderedPrompt(_Message, frozen=True):
    """A dialogue after the chat template, cut where trusted and untrusted text meet."""

    parts: tuple[TemplatePart | PlainPart | TokenPart, ...]


class Text(_Message, frozen=True):
    """Raw text; special tokens count only if parse_special is set."""

    text: str
    parse_special: bool = False


class TokenIds(_Message, frozen=True):
    """Token ids as they are, nothing added."""

    token_ids: tuple[int, ...]


Prompt = RenderedPrompt | Text | TokenIds


# ----------------------------------------------------------------------------------------------- params


class SamplingParams(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the next token is chosen. Temperature 0 is greedy. Defaults follow llama.cpp's own."""

    temperature: float = 0.8
    top_k: int = 40  # 0 keeps all
    top_p: float = 0.95  # 1 keeps all
    min_p: float = 0.05  # 0 keeps all
    repeat_penalty: float = 1.0  # 1 is off
    repeat_last_tokens: int = 64
    seed: int | None = None  # None draws a fresh one, reported in RequestFinished
    max_tokens: int | None = None  # None: until the context is full
    stop: tuple[str, ...] = ()


class LoadParams(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a model is loaded."""

    context_tokens: int = 0  # 0: the engine's choice, reported in ModelLoaded
    kv_type: str = "f16"
    threads: int = 0  # 0: the physical cores this process may use
    batch_tokens: int = 2048
    micro_batch_tokens: int = 512
    gpu_layers: int = 0
    device: str = ""  # "" lets the engine choose
    kv_mode: str = "chat"  # "chat": unified cells; "streams": one stream a sequence
    max_sequences: int = 1
    draft_model_path: str = ""
    allow_long_context: bool = False  # more context than the model was trained for, where it is asked for


# --------------------------------------------------------------------------------------------- commands


class LoadModel(_Message, frozen=True):
    """Load the model file at this path; answered by ModelLoaded or EngineFailed."""

    model_path: str
    params: LoadParams = LoadParams()


class Generate(_Message, frozen=True, kw_only=True):
    """Answer a prompt; answered by StepDone events and one RequestFinished.

    parent_token_ids are the ids of an unfinished answer that is to be continued: they follow the prompt and are
    not sent back.
    """

    request_id: RequestId
    prompt: Prompt
    params: SamplingParams = SamplingParams()
    parent_token_ids: tuple[int, ...] = ()


class Abort(_Message, frozen=True):
    """End a request now, in the middle of a step if need be; its RequestFinished still comes."""

    request_id: RequestId


class CountTokens(_Message, frozen=True):
    """Count a prompt's tokens; answered by TokensCounted, even while a step runs."""

    request_id: RequestId
    prompt: Prompt


class Score(_Message, frozen=True, kw_only=True):
    """Score known tokens, teacher-forced; answered by Progress and one ScoreDone."""

    request_id: RequestId
    token_ids: tuple[int, ...]
    first_scored: int = 0  # positions before this one give context only
    top: int = 0  # how many of the likeliest alternatives to return at each position


class Quantize(_Message, frozen=True, kw_only=True):
    """Write source_path's model to target_path in another quantization; answered by Progress events."""

    request_id: RequestId
    source_path: str
    target_path: str
    quantization: str
    importance_path: str = ""
    threads: int = 0
    dry_run: bool = False


class ProbeMemory(_Message, frozen=True, kw_only=True):
    """Say what loading would take, without loading; answered by Progress with a MemorySplit."""

    request_id: RequestId
    model_path: str
    params: LoadParams = LoadParams()


class UnloadModel(_Message, frozen=True):
    """Give the model's memory back and wait for another LoadModel."""


class Shutdown(_Message, frozen=True):
    """End the process after the step in progress."""


Command = LoadModel | Generate | Abort | CountTokens | Score | Quantize | ProbeMemory | UnloadModel | Shutdown


# ----------------------------------------------------------------------------------------------- events


class MemorySplit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A loaded model's memory by owner, in bytes. KV used is in StepStats, since it moves."""

    weights_bytes: int = 0
    kv_reserved_bytes: int = 0
    compute_bytes: int = 0
    output_bytes: int = 0
    draft_bytes: int = 0
    tables_bytes: int = 0  # vocabulary, graph and the like, as a probe measured them; 0 after a load: part of the rest
    device: str = "CPU"  # where the weights' buffers really lie, as the engine says


class Capabilities(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a loaded engine can do; ask before use."""

    can_roll_back: bool = False  # the end of a sequence can be cut off and rewritten
    can_share_prefix: bool = False
    can_score: bool = False
    can_quantize: bool = False
    can_probe_memory: bool = False
    kv_types: tuple[str, ...] = ()
    drafters: tuple[str, ...] = ()


class Hello(_Message, frozen=True):
    """The first event of every worker."""

    protocol_version: int
    engine_version: str
    pid: int
    backend: str = ""


class ModelLoaded(_Message, frozen=True, kw_only=True):
    """A model is ready. The chat template comes along; the program renders it, never the engine."""

    backend: str
    model_path: str
    context_tokens: int
    train_context_tokens: int = 0
    tokenizer_hash: str = ""
    architecture: str = ""
    quantization: str = ""
    parameters_count: int = 0
    vocabulary_tokens: int = 0
    chat_template: str = ""
    bos_text: str = ""
    eos_text: str = ""
    device: str = "CPU"
    engine_variant: str = ""  # which build of the engine runs, e.g. its CPU instruction sets
    threads: int = 0
    load_s: float = 0.0
    kv_bytes_per_token: float = 0.0
    kv_type: str = "f16"
    memory: MemorySplit = MemorySplit()
    capabilities: Capabilities = Capabilities()
    notices: tuple[str, ...] = ()  # codes of app/errors.py: fallbacks a person must be told of


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one step added to one request: whole characters only, and every id, in order."""

    request_id: RequestId
    text: str
    token_ids: tuple[int, ...]
    drafted_tokens: int = 0  # how many of the ids were proposed by a draft


class StepStats(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The figures of one step; times are of the worker's monotonic clock, in seconds."""

    step: int
    ended_s: float
    duration_s: float
    prefill_tokens: int = 0
    decode_tokens: int = 0
    running: int = 0
    waiting: int = 0
    kv_used_tokens: int = 0
    kv_used_bytes: int = 0
    draft_proposed: int = 0
    draft_accepted: int = 0


class StepDone(_Message, frozen=True):
    """One engine step: all its text and its figures together, so that they cannot disagree."""

    stats: StepStats
    pieces: tuple[Piece, ...] = ()


class RequestFigures(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an answer took. Reading and writing are timed apart and never mixed."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    reuse_note: str = ""  # a code: why less than everything was reused
    new_tokens: int = 0
    ttft_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    draft_proposed: int = 0
    draft_accepted: int = 0
    seed: int = 0

    @property
    def prefill_tokens_per_s(self) -> float:
        """Prompt tokens read (not reused) per second of reading."""
        read = self.prompt_tokens - self.reused_tokens
        return read / self.prefill_s if self.prefill_s > 0 and read > 0 else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens written after the first, per second of writing (the first one belongs to reading)."""
        return (self.new_tokens - 1) / self.decode_s if self.decode_s > 0 and self.new_tokens > 1 else 0.0


class RequestFinished(_Message, frozen=True):
    """A request ended; after this nothing more of it comes."""

    request_id: RequestId
    stop_reason: StopReason
    figures: RequestFigures = RequestFigures()


class TokensCounted(_Message, frozen=True):
    """The answer to CountTokens."""

    request_id: RequestId
    tokens: int


class ScoreDone(_Message, frozen=True, kw_only=True):
    """The answer to Score. Arrays are little-endian bytes of the stated type, one row a scored position."""

    request_id: RequestId
    logprobs: bytes = b""  # float32 [T]
    top_ids: bytes = b""  # int32 [T, top]
    top_logprobs: bytes = b""  # float32 [T, top]


class Progress(_Message, frozen=True, kw_only=True):
    """How far a long command is; request_id 0 means the load."""

    request_id: RequestId = RequestId(0)
    phase: str
    done: float
    total: float
    memory: MemorySplit | None = None


class MemoryRead(_Message, frozen=True, kw_only=True):
    """One reading of the worker's memory. The only event that may be dropped."""

    read_s: float  # the worker's monotonic clock
    anonymous_bytes: int = 0
    file_bytes: int = 0
    swap_bytes: int = 0
    device_used_bytes: int = 0
    device_total_bytes: int = 0
    device_name: str = ""
    step_age_s: float = 0.0  # 0 when no step is in progress
    state: LifeCycle = LifeCycle.READY


class LogRecorded(_Message, frozen=True):
    """A line of the engine's log worth showing; never a prompt or an answer."""

    level: str
    text: str


class EngineFailed(_Message, frozen=True, kw_only=True):
    """A command could not be done; the process lives on. The words for the code are made in app/errors.py."""

    code: str
    parameters: dict[str, str | int | float] = {}
    request_id: RequestId = RequestId(0)


Event = (
    Hello
    | ModelLoaded
    | StepDone
    | RequestFinished
    | TokensCounted
    | ScoreDone
    | Progress
    | MemoryRead
    | LogRecorded
    | EngineFailed
)
