"""How long a context is and how many KV blocks there are.

Both follow from what was asked, what the model was trained for and what is free, measured after a first forward.

The rule is the one that app/models/fit_torch.py predicts by: just the blocks that one context needs, shared by all
sequences, unless a share of the free memory is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends import protocol
from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.torch_engine.block_pool import BLOCK_TOKENS

DEFAULT_CONTEXT_TOKENS = 8192
MAX_CONTEXT_TOKENS = 2**24
_LEFT_FREE_BYTES = 64 * 2**20  # for what nobody counts: tables, the allocator's rounding


@dataclass(frozen=True, slots=True)
class Budget:
    """What a load may take.

    Attributes:
        context_tokens: the longest sequence.
        blocks: of the KV cache, without the trash block.
        notices: what a person must be told of.
    """

    context_tokens: int
    blocks: int
    notices: tuple[NoticeCode, ...] = ()


def step_tokens(params: protocol.LoadParams) -> int:
    """Return how many tokens a step computes at most: a piece that Stop need not wait for long."""
    return max(1, min(params.batch_tokens, params.micro_batch_tokens))


def context_tokens(params: protocol.LoadParams, trained: int) -> tuple[int, tuple[NoticeCode, ...]]:
    """Return the context to use and what is to be told of it.

    Args:
        params: what was asked; 0 tokens leaves the choice to us.
        trained: what the model was trained for; 0 when it does not say.
    """
    wanted = min(
        params.context_tokens or min(DEFAULT_CONTEXT_TOKENS, trained or DEFAULT_CONTEXT_TOKENS), MAX_CONTEXT_TOKENS
    )
    if not trained or wanted <= trained:
        return wanted, ()
    if params.allow_long_context:
        return wanted, (NoticeCode.CONTEXT_BEYOND_TRAINING,)
    return trained, (NoticeCode.CONTEXT_CLAMPED,)


def make_budget(params: protocol.LoadParams, trained: int, bytes_per_token: int, available_bytes: int) -> Budget:
    """Return the context and the number of blocks.

    Args:
        params: what was asked.
        trained: what the model was trained for; 0 when it does not say.
        bytes_per_token: KV of all layers.
        available_bytes: free on the device, less the measured peak of a step.

    Raises:
        EngineError: OUT_OF_MEMORY, not even one context's blocks fit; BAD_PARAMS, a share that is none.
    """
    if not 0.0 <= params.memory_share <= 1.0:
        raise EngineError(ErrorCode.BAD_PARAMS, detail="the share of memory lies between 0 and 1")
    tokens, notices = context_tokens(params, trained)
    block_bytes = max(1, bytes_per_token * BLOCK_TOKENS)
    blocks = -(-tokens // BLOCK_TOKENS)
    usable = max(0, available_bytes - _LEFT_FREE_BYTES)
    if params.memory_share > 0.0:
        shared = int(usable * params.memory_share) // block_bytes - 1
        if shared < 1:
            raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=2 * block_bytes, free_bytes=available_bytes)
        if shared < blocks:
            return Budget(min(tokens, shared * BLOCK_TOKENS), shared, (*notices, NoticeCode.CONTEXT_CLAMPED))
        return Budget(tokens, shared, notices)
    if (blocks + 1) * block_bytes > usable:
        raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=(blocks + 1) * block_bytes, free_bytes=available_bytes)
    return Budget(tokens, blocks, notices)
