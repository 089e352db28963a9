"""The wall between the program and an engine: every command and event, and how they travel.

A worker process and its client exchange these messages over one inherited pipe, encoded as msgpack and validated
when they arrive. Commands are imperative and go to the worker; events are past tense and come back. Nothing here
knows a model, a thread or a window, and no message ever holds a tensor or a pickle.

Rules for change: a field may be added with a default; no field is ever renamed, retyped or removed within one
PROTOCOL_VERSION. A reader ignores fields it does not know, so an older reader survives a newer writer.
"""

from __future__ import annotations

import msgspec

from backends.protocol_prompts import (
    Message,
    PlainPart,
    Prompt,
    RenderedPrompt,
    TemplatePart,
    Text,
    TokenIds,
    TokenPart,
)
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
    "CollectImportance", "Command", "CountTokens", "DescribeBlock", "Detokenize", "Detokenized", "EngineFailed",
    "Event", "Generate", "Hello", "LifeCycle", "LoadModel", "LoadParams", "LogRecorded", "MemoryRead", "MemorySplit",
    "ModelLoaded", "Piece", "PlainPart", "ProbeMemory", "Progress", "Prompt", "Quantize", "Quantized",
    "RenderedPrompt", "RequestFigures", "RequestFinished", "RequestId", "SamplingParams", "Score", "ScoreDone",
    "Shutdown", "StepDone", "StepStats", "StopReason", "TemplatePart", "Text", "TokenChance", "TokenChances",
    "TokenIds", "TokenPart", "Tokenize", "Tokenized", "TokensCounted", "UnloadModel",
]  # fmt: skip

PROTOCOL_VERSION = 1

# One message. A 128k-token prompt is under 1 MB; the largest honest one is a window of per-token results (Score).
MAX_MESSAGE_BYTES = 64 * 1024 * 1024


# --------------------------------------------------------------------------------------------- commands


class LoadModel(Message, frozen=True):
    """Load the model file at this path; answered by ModelLoaded or EngineFailed."""

    model_path: str
    params: LoadParams = LoadParams()


class Generate(Message, frozen=True, kw_only=True):
    """Answer a prompt; answered by StepDone events and one RequestFinished.

    parent_token_ids are the ids of an unfinished answer that is to be continued: they follow the prompt and are
    not sent back.
    """

    request_id: RequestId
    prompt: Prompt
    params: SamplingParams = SamplingParams()
    parent_token_ids: tuple[int, ...] = ()
    priority: int = 0  # higher is served first; the chat in front has more than what runs unattended


class Abort(Message, frozen=True):
    """End a request now, in the middle of a step if need be; its RequestFinished still comes."""

    request_id: RequestId


class CountTokens(Message, frozen=True):
    """Count a prompt's tokens; answered by TokensCounted, even while a step runs."""

    request_id: RequestId
    prompt: Prompt


class Score(Message, frozen=True, kw_only=True):
    """Score known tokens, teacher-forced, in an empty context; answered by one ScoreDone.

    Without a prompt the rows are the positions first_scored to the last but one, each predicting the token behind it:
    a window of 512 tokens scored from 256 on has T = 255 rows. With a prompt they are those that predict token_ids,
    all of them: T = len(token_ids). A window of log-probabilities may be written, and compared with one written before
    (backends/reference_window.py).
    """

    request_id: RequestId
    token_ids: tuple[int, ...]
    first_scored: int = 0  # positions before this one give context only; 0 where there is a prompt
    top: int = 0  # how many of the likeliest alternatives to return at each position
    prompt: Prompt | None = None  # read before token_ids
    reference_path: str = ""  # a window to compare with
    write_path: str = ""  # where to write this window
    span_nats: float = 24.0  # how far below a row's likeliest token the written window reaches
    keep_top: int = 0  # write only so many of the likeliest tokens of a row, and the rest as one; 0 writes all


class Tokenize(Message, frozen=True):
    """Say which token ids a prompt is; answered by Tokenized."""

    request_id: RequestId
    prompt: Prompt


class Detokenize(Message, frozen=True):
    """Say what each of these tokens adds to a text; answered by Detokenized."""

    request_id: RequestId
    token_ids: tuple[int, ...]


class CollectImportance(Message, frozen=True, kw_only=True):
    """Run the loaded model over a text and write how strongly each input of each matrix is used.

    Answered by Progress events (phase "importance", in windows); the file is there when done equals total.
    """

    request_id: RequestId
    token_ids: tuple[int, ...]
    target_path: str
    window_tokens: int = 512
    text_name: str = ""  # what text that is, kept in the file


class Quantize(Message, frozen=True, kw_only=True):
    """Write source_path's model to target_path in another quantization; answered by Progress events and Quantized.

    Needs no loaded model. With dry_run nothing is written, and Quantized tells the exact size.
    """

    request_id: RequestId
    source_path: str
    target_path: str
    quantization: str
    importance_path: str = ""
    threads: int = 0
    dry_run: bool = False
    allow_requantize: bool = False  # also from a source that is no F32, F16 or BF16


class ProbeMemory(Message, frozen=True, kw_only=True):
    """Say what loading would take, without loading; answered by Progress with a MemorySplit."""

    request_id: RequestId
    model_path: str
    params: LoadParams = LoadParams()


class DescribeBlock(Message, frozen=True):
    """Say what lies in a KV block of the last BlockMap; answered by BlockDescribed."""

    request_id: RequestId
    block: int


class UnloadModel(Message, frozen=True):
    """Give the model's memory back and wait for another LoadModel."""


class Shutdown(Message, frozen=True):
    """End the process after the step in progress."""


Command = (
    LoadModel
    | Generate
    | Abort
    | CountTokens
    | Tokenize
    | Detokenize
    | Score
    | CollectImportance
    | Quantize
    | ProbeMemory
    | DescribeBlock
    | UnloadModel
    | Shutdown
)


# ----------------------------------------------------------------------------------------------- events


class Hello(Message, frozen=True):
    """The first event of every worker."""

    protocol_version: int
    engine_version: str
    pid: int
    backend: str = ""


class ModelLoaded(Message, frozen=True, kw_only=True):
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


class StepDone(Message, frozen=True):
    """One engine step: all its text and its figures together, so that they cannot disagree."""

    stats: StepStats
    pieces: tuple[Piece, ...] = ()
    block_map: BlockMap | None = None  # with some steps only: a few times a second, and when a request ends


class RequestFinished(Message, frozen=True):
    """A request ended; after this nothing more of it comes."""

    request_id: RequestId
    stop_reason: StopReason
    figures: RequestFigures = RequestFigures()


class TokensCounted(Message, frozen=True):
    """The answer to CountTokens."""

    request_id: RequestId
    tokens: int


class ScoreDone(Message, frozen=True, kw_only=True):
    """The answer to Score. Arrays are little-endian bytes of the stated type, one row a scored position.

    What compares with a reference is empty without one. A row whose logits are not all finite is flagged, and its
    figures are 0: it is counted, never averaged in.
    """

    request_id: RequestId
    token_ids: bytes = b""  # int32 [T], the tokens that were scored
    logprobs: bytes = b""  # float32 [T], of these tokens, natural logarithms
    best_ids: bytes = b""  # int32 [T], the likeliest token of each row
    non_finite: bytes = b""  # uint8 [T]
    top_ids: bytes = b""  # int32 [T, top]
    top_logprobs: bytes = b""  # float32 [T, top]
    reference_logprobs: bytes = b""  # float32 [T]
    reference_best_ids: bytes = b""  # int32 [T]
    kl: bytes = b""  # float32 [T], of the reference's distribution to this one, in nats
    cosine: bytes = b""  # float32 [T], of the two rows of log-probabilities, each less its mean
    prefill_s: float = 0.0  # what the forward passes took
    score_s: float = 0.0  # all that the command took, forward passes included


class Tokenized(Message, frozen=True):
    """The answer to Tokenize."""

    request_id: RequestId
    token_ids: tuple[int, ...]


class Detokenized(Message, frozen=True):
    """The answer to Detokenize: the bytes of each token, since one may be half a character.

    A token that adds nothing to a text, such as the end of a turn, is given by its name.
    """

    request_id: RequestId
    pieces: tuple[bytes, ...]


class Quantized(Message, frozen=True, kw_only=True):
    """The answer to Quantize: what was written, or would be."""

    request_id: RequestId
    size_bytes: int
    bits_per_weight: float
    tensors: int = 0
    fallback_tensors: int = 0  # stored in another type than asked for, because their rows are no whole blocks of it
    took_s: float = 0.0
    needs_importance: bool = False  # it cannot be made without an importance matrix
    requantized_from: str = ""  # what its weights were quantized to before; kept in the file's metadata


class BlockDescribed(Message, frozen=True, kw_only=True):
    """The answer to DescribeBlock: the text of the tokens that lie there; empty for a block that holds none."""

    request_id: RequestId
    block: int
    token_ids: tuple[int, ...] = ()
    text: str = ""
    users: int = 0  # sequences whose block table names it


class Progress(Message, frozen=True, kw_only=True):
    """How far a long command is; request_id 0 means the load."""

    request_id: RequestId = RequestId(0)
    phase: str
    done: float
    total: float
    memory: MemorySplit | None = None


class MemoryRead(Message, frozen=True, kw_only=True):
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


class LogRecorded(Message, frozen=True):
    """A line of the engine's log worth showing; never a prompt or an answer."""

    level: str
    text: str


class EngineFailed(Message, frozen=True, kw_only=True):
    """A command could not be done; the process lives on. The words for the code are made in app/errors.py."""

    code: str
    parameters: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    request_id: RequestId = RequestId(0)


Event = (
    Hello
    | ModelLoaded
    | StepDone
    | RequestFinished
    | TokensCounted
    | Tokenized
    | Detokenized
    | ScoreDone
    | Quantized
    | BlockDescribed
    | Progress
    | MemoryRead
    | LogRecorded
    | EngineFailed
)
