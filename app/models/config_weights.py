"""The tensors of a safetensors model, added up by what they are for: layers, input, output, experts.

Knows the names that transformers gives tensors, and no config.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d{1,4})\.")
_BESIDE = re.compile(r"(?:^|\.)(?:vision\w*|visual|audio\w*|multi_modal\w*|mm_projector|image_\w+|mtp)\.")
_INPUT = re.compile(r"(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in|embeddings|tok_embeddings)\.weight$")
_LOOKED_UP = re.compile(r"(?:^|\.)(?:embed_tokens_per_layer|wpe|position_embeddings)\.weight$")
_OUTPUT = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output)\.(?:weight|qweight|weight_packed)$")
_EXPERTS = re.compile(r"\.experts\.")


class Tensor(Protocol):
    """What must be known of a tensor."""

    @property
    def name(self) -> str:
        """Such as "model.layers.0.self_attn.q_proj.weight"."""

    @property
    def elements(self) -> int:
        """How many there are."""

    @property
    def size_bytes(self) -> int:
        """What it takes."""


@dataclass(frozen=True, slots=True)
class TensorWeights:
    """What the tensors take; see ModelShape."""

    total_bytes: int
    parameters_count: int
    layer_bytes: tuple[int, ...]
    layer_read_bytes: tuple[int, ...]
    input_bytes: int
    output_bytes: int
    other_bytes: int
    read_bytes: int


def weights_of_tensors(
    tensors: Sequence[Tensor], layers_count: int, used: int, experts: int, *, is_tied: bool
) -> TensorWeights:
    """Return what the tensors take, by owner.

    Args:
        tensors: all of the model.
        layers_count: how many layers there are; what lies in others counts as other.
        used: how many experts a token uses.
        experts: how many a layer has; 0 for a dense model.
        is_tied: whether the config says that the input is the output too.
    """
    layer_bytes, layer_read = [0] * layers_count, [0] * layers_count
    input_bytes = output_bytes = other_bytes = read_bytes = 0
    for tensor in tensors:
        size_bytes = tensor.size_bytes
        match = None if _BESIDE.search(tensor.name) else _LAYER.search(tensor.name)
        if match and int(match[1]) < layers_count:
            index = int(match[1])
            layer_bytes[index] += size_bytes
            is_routed = experts and _EXPERTS.search(tensor.name)
            layer_read[index] += size_bytes * min(used, experts) // experts if is_routed else size_bytes
        elif _BESIDE.search(tensor.name) or match:
            other_bytes += size_bytes
        elif _INPUT.search(tensor.name):
            input_bytes += size_bytes
        elif _OUTPUT.search(tensor.name):
            output_bytes += size_bytes
        else:
            other_bytes += size_bytes
            read_bytes += 0 if _LOOKED_UP.search(tensor.name) else size_bytes
    # An output that is tied may be stored all the same, and is loaded once.
    read_bytes += output_bytes if output_bytes and not is_tied else input_bytes
    return TensorWeights(
        total_bytes=sum(tensor.size_bytes for tensor in tensors),
        parameters_count=sum(tensor.elements for tensor in tensors),
        layer_bytes=tuple(layer_bytes),
        layer_read_bytes=tuple(layer_read),
        input_bytes=input_bytes,
        output_bytes=output_bytes,
        other_bytes=other_bytes,
        read_bytes=read_bytes + sum(layer_read),
    )
