"""What a model would take in our torch backend: weights written out, KV in blocks, the activations of one step.

The same owners as for llama.cpp, so that one fit serves both. as_loaded() turns the bytes of a file into those of the
loaded weights; behind it nothing here asks how they were stored.
Reference: quant.md 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from app.models.fit_cache import cache_of
from app.models.fit_context import MAX_SEQUENCES
from app.models.fit_types import FitQuestion
from app.models.shape import ModelShape
from app.models.shape_scale import scaled_shape
from backends.protocol import LoadParams

BLOCK_TOKENS = 16  # of a KV block
# Bytes an element. Quantized in groups of 32 with a scale and a zero of 16 bits each: bits + 2 x 16 / 32.
KV_ELEMENT_BYTES: Mapping[str, Fraction] = MappingProxyType(
    {
        "f32": Fraction(4),
        "f16": Fraction(2),
        "bf16": Fraction(2),
        "q8_0": Fraction(9, 8),
        "int8": Fraction(9, 8),
        "q4_0": Fraction(5, 8),
        "int4": Fraction(5, 8),
        "int2": Fraction(3, 8),
    }
)
_HALF_BYTES, _FLOAT_BYTES = 2, 4
_DTYPE_BYTES: Mapping[str, int] = MappingProxyType({"float32": 4, "float16": 2, "bfloat16": 2})
_SPARE_BLOCKS = 1  # where what must go nowhere is written to
# What the process takes beside the model once it has answered: the model's code, compiled kernels, the tokenizer.
# Measured with vocabularies of 49,152 and 262,144 tokens, bf16 and fp32: 99 to 117 and 209 to 241 MiB.
_FIXED_TABLES_BYTES = 80 * 2**20
_TOKEN_TABLES_BYTES = 560


@dataclass(frozen=True, slots=True)
class TorchMemory:
    """Bytes by owner; the weights are the shape's own."""

    kv_bytes: int
    compute_bytes: int
    output_bytes: int
    tables_bytes: int


def as_loaded(shape: ModelShape, question: FitQuestion) -> ModelShape:
    """Return the shape with the weights' bytes as they lie in memory: torch computes with 16 or 32 bits a weight.

    A quantized file is written out when it is loaded; weights that are wider already stay so unless a dtype is asked
    for. For other backends the shape is returned as it is.
    """
    if question.backend != "torch" or shape.parameters_count <= 0 or shape.weights_bytes <= 0:
        return shape
    asked = _DTYPE_BYTES.get(question.params.dtype)
    weights_bytes = shape.parameters_count * asked if asked else max(shape.weights_bytes, shape.parameters_count * 2)
    return shape if weights_bytes == shape.weights_bytes else scaled_shape(shape, weights_bytes)


def torch_memory(shape: ModelShape, params: LoadParams, kv_type: str, context_tokens: int) -> TorchMemory:
    """Return what a context of so many tokens takes.

    A step's activations peak in the feed-forward layer, gate and up of the micro-batch in 16 bits, with four results of
    model width beside them; attention keeps no scores. Logits are computed of each sequence's last token only, in F32.
    Layers with a window keep their blocks all the same.
    """
    sequences = max(1, min(params.max_sequences, MAX_SEQUENCES))
    blocks = -(-max(1, context_tokens) // BLOCK_TOKENS) + _SPARE_BLOCKS
    cache = cache_of(shape.layers)
    cells = blocks * BLOCK_TOKENS * sum(cache.elements.values())
    tokens = max(1, min(params.micro_batch_tokens, context_tokens))
    widths = 2 * max(0, shape.feed_forward_length) + 4 * max(0, shape.embedding_length)
    return TorchMemory(
        kv_bytes=int(cells * KV_ELEMENT_BYTES.get(kv_type, Fraction(2))) + cache.state_bytes * sequences,
        compute_bytes=tokens * widths * _HALF_BYTES,
        output_bytes=sequences * max(0, shape.vocabulary_tokens) * _FLOAT_BYTES,
        tables_bytes=_FIXED_TABLES_BYTES + max(0, shape.vocabulary_tokens) * _TOKEN_TABLES_BYTES,
    )
