"""How much scratch memory one step of llama.cpp takes, from the shape alone.

llama.cpp lays out every intermediate result of a micro-batch in one buffer, each in the place of one that is no longer
needed (ggml-alloc.c). So the buffer is as large as the results that are alive together at the worst moment of the
widest layer. Modelled here, in F32 elements a token of the micro-batch:

    feed-forward   gate, up and their product of `feed_forward_length` each; on top of them the four results of model
                   width that attention left: the layer's input, attention's result, their sum and its norm. The place
                   of the last is that of the queries where they are wider. Without a gate one matrix is alive, since
                   an activation is written over its input. Where attention runs beside the feed-forward layer its
                   result is a fifth.
    experts        the same for all experts that a token uses, and, where experts are so narrow that it finds no room
                   in the place of gate and up, each expert's own result of model width. Most models use eight.
    latent         (MLA) for each head the query, the query in the latent space, and the two joined: two and a half
                   times the latent key; on top of the four of model width.
    recurrent      a state space layer works on an inner width of twice the model's (Falcon H1: one and a half): its
                   input and gate, convolution's result, and output, six inner widths; with two of model width. RWKV 7
                   shifts six copies of its input and projects thirteen. A copy of each sequence's state is alive
                   meanwhile.
    layer inputs   Gemma 3n and 4 look up an embedding for every layer and keep them all; one scaled copy of model
                   width is alive with them, and in Gemma 3n three more streams, each predicted and corrected.

and beside them, all the time: which cells each token may see (F16, one mask for the full cache and one for the
windows), and its number and places.

Logits are asked for one row a sequence, so the vocabulary counts only as often. Flash attention is on; it keeps no
scores. Checked against llama.cpp's allocator (`no_alloc`) in tests/app/models/test_fit_shapes.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.models.architectures import PARALLEL_RESIDUAL, PLAIN_FEED_FORWARD
from app.models.fit_cache import CacheShape
from app.models.fit_context import ContextPlan
from app.models.shape import ModelShape

_ELEMENT_BYTES = 4  # F32
_MASK_BYTES = 2  # F16
_PLACES_BYTES = 20  # a token's number, and where its K and V go; for each cache
_EXPERTS_USED = 8
_MODEL_WIDTHS = 4
_RECURRENT_WIDTHS = {"rwkv7": 19, "arwkv7": 19, "falcon-h1": 2 + 6 * 3 // 2}
_STATE_SPACE_WIDTHS = 2 + 6 * 2
_LAYER_INPUTS = {"gemma3n": 256, "gemma4": 256}
_STREAMS = {"gemma3n": 6}


@dataclass(frozen=True, slots=True)
class StepShape:
    """What one step of a model takes, apart from the context.

    Attributes:
        token_elements: F32 results alive at the worst moment, for each token of the micro-batch.
        sequence_elements: likewise for each sequence: a row of logits and what it is made of.
        state_bytes: a layer's recurrent state of one sequence.
        cache: whose masks are needed.
    """

    token_elements: int
    sequence_elements: int
    state_bytes: int
    cache: CacheShape

    def compute_bytes(self, plan: ContextPlan) -> int:
        """Return the size of the compute buffer for a micro-batch of this plan."""
        a_token = self.token_elements * _ELEMENT_BYTES + _masks_bytes(self.cache, plan)
        tokens_bytes = plan.micro_batch_tokens * a_token + self.state_bytes * plan.sequences
        return max(tokens_bytes, _ELEMENT_BYTES * plan.sequences * self.sequence_elements)


def step_of(shape: ModelShape, cache: CacheShape) -> StepShape:
    """Return what a step of this model takes.

    Args:
        shape: of the model.
        cache: of all its layers.
    """
    recurrent = _recurrent(shape) if cache.state_elements else 0
    return StepShape(
        token_elements=max(_feed_forward(shape), _attention(shape), recurrent),
        sequence_elements=max(0, shape.vocabulary_tokens) + 2 * max(0, shape.embedding_length),
        state_bytes=cache.state_bytes // max(1, len(shape.layers)),
        cache=cache,
    )


def output_bytes(shape: ModelShape, plan: ContextPlan) -> int:
    """Return what the logits take that a person's program reads: one row for each sequence."""
    return _ELEMENT_BYTES * plan.sequences * max(0, shape.vocabulary_tokens)


def _masks_bytes(cache: CacheShape, plan: ContextPlan) -> int:
    """Return what a token's masks and numbers take: one set for the full cache and one for each kind of window."""
    windows = [window for window in cache.elements if window]
    cells = sum(plan.window_cells(window) for window in windows)
    if 0 in cache.elements or windows:  # the full cache has a mask though no layer may use it
        cells += plan.cells
    return cells * _MASK_BYTES + _PLACES_BYTES * (1 + len(windows))


def _feed_forward(shape: ModelShape) -> int:
    width, inner = max(0, shape.embedding_length), max(0, shape.feed_forward_length)
    queries = _queries(shape)
    base = (_MODEL_WIDTHS - 1) * width + max(width, queries)
    if shape.architecture in PARALLEL_RESIDUAL:
        base += width
    if shape.architecture in _LAYER_INPUTS:
        base += _LAYER_INPUTS[shape.architecture] * len(shape.layers) + _STREAMS.get(shape.architecture, 1) * width
    if shape.architecture in PLAIN_FEED_FORWARD:
        return inner + base
    is_sparse = any(0 < layer.read_bytes < layer.weights_bytes for layer in shape.layers)
    if is_sparse and 2 * inner < _EXPERTS_USED * width:
        return 3 * inner + _EXPERTS_USED * width + base
    return 3 * inner + base


def _attention(shape: ModelShape) -> int:
    width, heads = max(0, shape.embedding_length), max(0, shape.head_count)
    key = max((layer.key_length for layer in shape.layers), default=0)
    if shape.is_mla:
        return heads * key * 5 // 2 + _MODEL_WIDTHS * width
    return 2 * _queries(shape) + _MODEL_WIDTHS * width


def _recurrent(shape: ModelShape) -> int:
    return _RECURRENT_WIDTHS.get(shape.architecture, _STATE_SPACE_WIDTHS) * max(0, shape.embedding_length)


def _queries(shape: ModelShape) -> int:
    """Return the width of all query heads together; of latent ones that is counted with attention."""
    if shape.is_mla:
        return 0
    return max(0, shape.head_count) * max((layer.key_length for layer in shape.layers), default=0)
