"""How many tokens of context an engine would create, and how many cells its caches have for them.

Follows the engine's own loader and llama_context's constructor. Knows no bytes.
Reference: llama-context.cpp and llama-kv-cache-iswa.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from dataclasses import dataclass

from backends.protocol import LoadParams

DEFAULT_CONTEXT_TOKENS = 8192  # what the engine takes where nothing is asked for
MAX_CONTEXT_TOKENS = 2**24  # the engine creates no more
CELLS_STEP = 256  # llama.cpp pads contexts and windows to whole steps
MAX_SEQUENCES = 256  # LLAMA_MAX_SEQ


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """A context as an engine creates it.

    Attributes:
        cells: of one stream, for one sequence.
        streams: how many sequences have cells of their own; 1 where all share them.
        sequences: how many there may be at once.
        micro_batch_tokens: how many tokens are computed together.
    """

    cells: int
    streams: int
    sequences: int
    micro_batch_tokens: int

    def window_cells(self, window_tokens: int) -> int:
        """Return the cells of a layer that sees so far back: the window of every sequence and one micro-batch."""
        sharing = self.sequences if self.streams == 1 else 1
        return padded(min(self.cells, window_tokens * sharing + self.micro_batch_tokens))


def padded(tokens: int) -> int:
    """Return the number of cells for so many tokens."""
    return -(-tokens // CELLS_STEP) * CELLS_STEP


def largest_context(params: LoadParams, trained: int) -> int:
    """Return the most context tokens that the engine would create, whatever is asked for."""
    sequences = _sequences(params) if params.kv_mode == "streams" else 1
    most = (trained if trained > 0 else DEFAULT_CONTEXT_TOKENS) * sequences
    if params.allow_long_context:
        most = max(most, params.context_tokens)
    return max(1, min(most, MAX_CONTEXT_TOKENS))


def wanted_context(params: LoadParams, trained: int) -> int:
    """Return the context tokens that the engine would create for these params."""
    asked = params.context_tokens if params.context_tokens > 0 else DEFAULT_CONTEXT_TOKENS
    return min(asked, largest_context(params, trained))


def plan_context(params: LoadParams, context_tokens: int) -> ContextPlan:
    """Return what is created for a context of so many tokens, of all streams together."""
    sequences = _sequences(params)
    streams = sequences if params.kv_mode == "streams" else 1
    cells = padded(max(1, context_tokens))
    return ContextPlan(
        cells=padded(max(1, cells // streams)),
        streams=streams,
        sequences=sequences,
        micro_batch_tokens=max(1, min(params.micro_batch_tokens, params.batch_tokens, context_tokens)),
    )


def _sequences(params: LoadParams) -> int:
    return max(1, min(params.max_sequences, MAX_SEQUENCES))
