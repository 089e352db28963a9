"""The wall between the program and an engine: every command and event, and how they travel.

A worker process and its client exchange these messages over one inherited pipe, encoded as msgpack and validated
when they arrive. Commands are imperative and go to the worker; events are past tense and come back. Nothing here
knows a model, a thread or a window, and no message ever holds a tensor or a pickle.

Rules for change: a field may be added with a default; no field is ever renamed, retyped or removed within one
PROTOCOL_VERSION. A reader ignores fields it does not know, so an older reader survives a newer writer.
"""

from __future__ import annotations

import msgspec

from backends.protocol_values import (
    BlockMap,
    BlockOwner,
    Capabilities,
    LifeCycle,
    LoadParams,
    MemorySplit,
    Piece,
    RequestFigures,
    RequestId,
    SamplingParams,
    StepStats,
    StopReason,
    TokenChance,
    TokenChances,
)

__all__ = [
    "MAX_MESSAGE_BYTES", "PROTOCOL_VERSION", "Abort", "BlockDescribed", "BlockMap", "BlockOwner", "Capabilities",
    "Command", "CountTokens", "DescribeBlock", "EngineFailed", "Event", "Generate", "Hello", "LifeCycle", "LoadModel",
    "LoadParams", "LogRecorded", "MemoryRead", "MemorySplit", "ModelLoaded", "Piece", "PlainPart", "ProbeMemory",
    "Progress", "Prompt", "Quantize", "RenderedPrompt", "RequestFigures", "RequestFinished", "RequestId",
    "SamplingParams", "Score", "ScoreDone", "Shutdown", "StepDone", "StepStats", "StopReason", "TemplatePart", "Text",
    "TokenChance", "TokenChances", "TokenIds", "TokenPart", "TokensCounted", "UnloadModel",
]  # fmt: skip

PROTOCOL_VERSION = 1

# One message. A 128k-token prompt is under 1 MB; the largest honest one is a window of per-token results (Score).
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


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
    priority: int = 0  # higher is served first; the chat in front has more than what runs unattended


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


class DescribeBlock(_Message, frozen=True):
    """Say what lies in a KV block of the last BlockMap; answered by BlockDescribed."""

    request_id: RequestId
    block: int


class UnloadModel(_Message, frozen=True):
    """Give the model's memory back and wait for another LoadModel."""


class Shutdown(_Message, frozen=True):
    """End the process after the step in progress."""


Command = (
    LoadModel | Generate | Abort | CountTokens | Score | Quantize | ProbeMemory | DescribeBlock | UnloadModel | Shutdown
)


# ----------------------------------------------------------------------------------------------- events


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
    attention_path: str = ""  # "paged": KV in blocks; "plain": one cache a sequence; "": the engine has one way only
    attention_kernel: str = ""  # what computes attention, such as "sdpa"
    path_note: str = ""  # why the path is plain, for the log and for the words on the screen
    block_tokens: int = 0  # of a KV block; 0 where the engine has none
    blocks: int = 0  # how many there are


class StepDone(_Message, frozen=True):
    """One engine step: all its text and its figures together, so that they cannot disagree."""

    stats: StepStats
    pieces: tuple[Piece, ...] = ()
    block_map: BlockMap | None = None  # with some steps only: a few times a second, and when a request ends


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


class BlockDescribed(_Message, frozen=True, kw_only=True):
    """The answer to DescribeBlock: the text of the tokens that lie there; empty for a block that holds none."""

    request_id: RequestId
    block: int
    token_ids: tuple[int, ...] = ()
    text: str = ""
    users: int = 0  # sequences whose block table names it


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
    | BlockDescribed
    | Progress
    | MemoryRead
    | LogRecorded
    | EngineFailed
)
