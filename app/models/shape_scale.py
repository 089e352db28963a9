"""The shape of a model whose weights are stored in another way: another one's of the same model, scaled to its size.

What decides the KV cache is the same in every quantization of a model; only what the weights take differs. Pure.
"""

from __future__ import annotations

import msgspec

from app.models.shape import ModelShape


def scaled_shape(shape: ModelShape, weights_bytes: int) -> ModelShape:
    """Return the shape with weights that take so much in all; what is kept twice is not told from it."""
    if shape.weights_bytes <= 0 or weights_bytes <= 0:
        return shape

    def scaled(size_bytes: int) -> int:
        return size_bytes * weights_bytes // shape.weights_bytes

    layers = tuple(
        msgspec.structs.replace(layer, weights_bytes=scaled(layer.weights_bytes), read_bytes=scaled(layer.read_bytes))
        for layer in shape.layers
    )
    return msgspec.structs.replace(
        shape,
        weights_bytes=weights_bytes,
        input_bytes=scaled(shape.input_bytes),
        output_bytes=scaled(shape.output_bytes),
        other_bytes=scaled(shape.other_bytes),
        copied_bytes=0,
        read_bytes=scaled(shape.read_bytes),
        layers=layers,
    )
