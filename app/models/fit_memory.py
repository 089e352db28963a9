"""What a model would take in llama.cpp, by owner, computed from its shape.

Everything is a whole number of bytes, and no number makes it fail. Knows no machine beyond the floor it is told of.
Reference: quant.md 3 names the formulas; app/models/fit_cache.py and fit_compute.py hold them.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.models.architectures import SENTENCE_PIECE
from app.models.fit_cache import KV_TYPES, cache_of
from app.models.fit_compute import output_bytes, step_of
from app.models.fit_context import ContextPlan, plan_context, wanted_context
from app.models.fit_torch import KV_ELEMENT_BYTES, as_loaded, torch_memory
from app.models.fit_types import FitQuestion, MemoryEstimate
from app.models.shape import ModelShape
from backends.protocol import LoadParams
from backends.registry import BACKENDS

# What the worker needs beside the buffers, measured in fresh workers with both real models and nine made-up headers:
# pages of the library and scratch of its threads; each token's text and its place in the tables, with merges or
# without, and its 12 bytes in the sampler's list (llama_token_data); and what llama.cpp notes of every cell.
_FIXED_TABLES_BYTES = 19 * 2**19
_TOKEN_BYTES, _PLAIN_TOKEN_BYTES = 372, 182
_CELL_BYTES = 48
_SMALL_VOCABULARY = 33_000  # of this size nearly all are of SentencePiece, whatever the architecture

# A vision encoder works on some 4,096 patches of width 1,152 in F32, of which fourteen such results are alive at once.
PROJECTOR_COMPUTE_BYTES = 256 * 2**20

_MOST_BYTES = 2**62  # an amount that fits nowhere, and that every column of the library can hold


@dataclass(frozen=True, slots=True)
class Owners:
    """Bytes by owner on all devices together; see MemoryEstimate."""

    weights_bytes: int
    copied_bytes: int
    kv_bytes: int
    compute_bytes: int
    output_bytes: int
    draft_bytes: int
    projector_bytes: int
    tables_bytes: int

    @property
    def needed_bytes(self) -> int:
        """Everything but the pages that the system may take back, without the worker itself."""
        parts = (self.weights_bytes, self.kv_bytes, self.compute_bytes, self.output_bytes, self.draft_bytes)
        return bounded(sum(parts) + self.projector_bytes + self.tables_bytes - self.copied_bytes)

    def estimate(self, floor_bytes: int) -> MemoryEstimate:
        """Return the same as an estimate from the header."""
        return MemoryEstimate(
            weights_bytes=self.weights_bytes,
            kv_bytes=self.kv_bytes,
            compute_bytes=self.compute_bytes,
            output_bytes=self.output_bytes,
            draft_bytes=self.draft_bytes,
            projector_bytes=self.projector_bytes,
            floor_bytes=bounded(floor_bytes),
            source="header",
            copied_bytes=self.copied_bytes,
            tables_bytes=self.tables_bytes,
        )


def bounded(amount: int) -> int:
    """Return an amount of memory that no sum of owners takes out of bounds."""
    return max(0, min(amount, _MOST_BYTES))


class Sizes:
    """Tells the owners for any context and KV type; cheap to ask many times.

    Attributes:
        cache: what the model keeps; its draft's is in _draft_cache.
        _step: what a step takes; its draft's is in _draft_step.
        _token_tables_bytes: what the vocabulary's tables take.
    """

    def __init__(self, shape: ModelShape, question: FitQuestion) -> None:
        self.cache = cache_of(shape.layers)
        self._shape, self._question = shape, question
        self._step = step_of(shape, self.cache)
        vocabulary = max(0, shape.vocabulary_tokens)
        is_plain = shape.architecture in SENTENCE_PIECE or vocabulary <= _SMALL_VOCABULARY
        self._token_tables_bytes = vocabulary * (_PLAIN_TOKEN_BYTES if is_plain else _TOKEN_BYTES)
        self._copied = bounded(shape.copied_bytes) if question.params.gpu_layers == 0 else 0
        projector = bounded(question.projector_bytes)
        self._projector = projector + (PROJECTOR_COMPUTE_BYTES if projector else 0)
        draft = question.draft
        self._draft_cache = cache_of(draft.layers) if draft is not None else None
        self._draft_step = step_of(draft, self._draft_cache) if draft and self._draft_cache else None

    def can_store(self, kv_type: str) -> bool:
        """Say whether K and V can be kept as this type."""
        if self._question.backend == "torch":
            return kv_type in KV_ELEMENT_BYTES and BACKENDS["torch"].can_store(kv_type)
        return kv_type in KV_TYPES and self.cache.can_store(KV_TYPES[kv_type])

    def owners(self, kv_type: str, context_tokens: int) -> Owners:
        """Return what everything takes with a context of so many tokens; the type must be one that can_store()."""
        if self._question.backend == "torch":
            return self._torch_owners(kv_type, context_tokens)
        shape, plan = self._shape, plan_context(self._question.params, context_tokens)
        cells = plan.streams * sum(plan.window_cells(w) if w else plan.cells for w in self.cache.elements)
        return Owners(
            weights_bytes=bounded(shape.weights_bytes) + self._copied,
            copied_bytes=self._copied,
            kv_bytes=bounded(self.cache.kv_bytes(KV_TYPES[kv_type], plan)),
            compute_bytes=bounded(self._step.compute_bytes(plan)),
            output_bytes=bounded(output_bytes(shape, plan)),
            draft_bytes=self._draft_bytes(kv_type, plan),
            projector_bytes=self._projector,
            tables_bytes=bounded(_FIXED_TABLES_BYTES + self._token_tables_bytes + cells * _CELL_BYTES),
        )

    def _draft_bytes(self, kv_type: str, plan: ContextPlan) -> int:
        """Return everything that a draft model takes; it reads the same tokens as the model it drafts for."""
        draft = self._question.draft
        if draft is None or self._draft_cache is None or self._draft_step is None:
            return 0
        kv = self._draft_cache.kv_bytes(KV_TYPES[kv_type], plan)
        return bounded(draft.weights_bytes + kv + self._draft_step.compute_bytes(plan) + output_bytes(draft, plan))

    def _torch_owners(self, kv_type: str, context_tokens: int) -> Owners:
        shape, question = self._shape, self._question
        memory = torch_memory(shape, question.params, kv_type, context_tokens)
        draft = 0
        if question.draft is not None:
            drafting = torch_memory(question.draft, question.params, kv_type, context_tokens)
            weights = as_loaded(question.draft, question).weights_bytes
            draft = weights + drafting.kv_bytes + drafting.compute_bytes + drafting.output_bytes
        return Owners(
            weights_bytes=bounded(shape.weights_bytes),
            copied_bytes=0,
            kv_bytes=bounded(memory.kv_bytes),
            compute_bytes=bounded(memory.compute_bytes),
            output_bytes=bounded(memory.output_bytes),
            draft_bytes=bounded(draft),
            projector_bytes=self._projector,
            tables_bytes=bounded(memory.tables_bytes),
        )


def context_of(shape: ModelShape | None, params: LoadParams) -> int:
    """Return the context that the engine would create, as it reports it: that of one sequence, in whole cells."""
    trained = shape.context_tokens if shape is not None else 0
    return plan_context(params, wanted_context(params, trained)).cells
