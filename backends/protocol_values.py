"""The values inside commands and events: enumerations, params and figures. The messages are in backends/protocol.py.

The same rules for change hold here: a field may be added with a default, and nothing else happens to one.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

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
    logprobs: int | None = None  # None: none; n: of the token drawn and of the n likeliest, from the unchanged model
    grammar: str = ""  # GBNF that the answer must follow; not together with json_schema
    json_schema: str = ""  # JSON text of a schema that the answer must follow
    ignore_eos: bool = False  # go on past the end of the text, for measurements of a fixed length


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
    dtype: str = ""  # torch: "float32", "float16", "bfloat16"; "": the file's own, where the device computes in it
    memory_share: float = 0.0  # torch: share of the free memory that KV blocks may take; 0: just what the context needs
    prefix_cache: bool = True  # torch: keep the blocks of ended requests until their room is needed
    reuse_kv: bool = True  # torch: False computes the whole text again for every token; to measure what the cache saves


# ------------------------------------------------------------------------------------- memory, capabilities


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


# ------------------------------------------------------------------------------------------------ figures


class TokenChance(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token that could stand at a position, with the natural logarithm of its probability."""

    token_id: int
    text: str
    logprob: float


class TokenChances(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was drawn at one position and what else was likely, the likeliest first."""

    chosen: TokenChance
    top: tuple[TokenChance, ...] = ()


class BlockOwner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request whose tokens lie in KV blocks, in the order of its text."""

    request_id: RequestId
    blocks: tuple[int, ...] = ()
    tokens: int = 0  # computed ones


class BlockMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every KV block of the engine at one moment."""

    block_tokens: int
    states: bytes  # one a block: 0 free, 1 kept for a later request with the same text, 2 used, 3 shared
    owners: tuple[BlockOwner, ...] = ()


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one step added to one request: whole characters only, and every id, in order."""

    request_id: RequestId
    text: str
    token_ids: tuple[int, ...]
    drafted_tokens: int = 0  # how many of the ids were proposed by a draft
    chances: tuple[TokenChances, ...] = ()  # one an id, where they were asked for


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
    preempted: int = 0  # sequences that gave their blocks back in this step and will be computed again


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
    preemptions: int = 0  # how often its blocks were taken away and computed again

    @property
    def prefill_tokens_per_s(self) -> float:
        """Prompt tokens read (not reused) per second of reading."""
        read = self.prompt_tokens - self.reused_tokens
        return read / self.prefill_s if self.prefill_s > 0 and read > 0 else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens written after the first, per second of writing (the first one belongs to reading)."""
        return (self.new_tokens - 1) / self.decode_s if self.decode_s > 0 and self.new_tokens > 1 else 0.0
