"""What of a model's architecture decides its memory and speed, free of any file format.

Made from a header by `shape_gguf` or `shape_config`, kept by the library, and given to `fit`. Knows no file and no
machine.
"""

from __future__ import annotations

import msgspec


class LayerShape(msgspec.Struct, frozen=True, array_like=True):
    """One layer.

    Attributes:
        kv_heads: heads of K and V; 0 when the layer keeps neither.
        key_length: elements of K a head; with latent attention (MLA) those of the latent vector.
        value_length: elements of V a head; 0 with MLA, which keeps K only.
        window_tokens: how far back the layer sees; 0 for the whole context.
        state_elements: elements of recurrent state a sequence, stored as F32; 0 for an attention layer.
        weights_bytes: what its weights take.
        read_bytes: what of them is read for one token; less than all where only some experts are used.
    """

    kv_heads: int = 0
    key_length: int = 0
    value_length: int = 0
    window_tokens: int = 0
    state_elements: int = 0
    weights_bytes: int = 0
    read_bytes: int = 0


class ModelShape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's architecture in numbers; 0 stands for what the file does not say.

    Attributes:
        architecture: such as "llama".
        context_tokens: what the model was trained for.
        embedding_length: width of the hidden state.
        feed_forward_length: width of the widest feed-forward layer, of all experts used by a token together.
        head_count: query heads of the widest layer.
        vocabulary_tokens: rows of the output matrix.
        parameters_count: weights in all tensors.
        weights_bytes: what all tensors take.
        input_bytes: the token embedding's part of weights_bytes; it is read a row at a time, unless tied.
        output_bytes: the output matrix's part of weights_bytes; 0 when it is tied to the embedding.
        other_bytes: what of weights_bytes is in no layer, no input and no output.
        copied_bytes: what llama.cpp keeps a second time on an x86 processor, rearranged for its wide instructions;
            comes on top of weights_bytes.
        read_bytes: weights read for one token, all layers and the output together.
        is_mla: whether K and V are one latent vector, so that both must have one type.
        layers: in the model's order.
        unknown: why the memory cannot be told from this shape, one English sentence; "" when it can.
    """

    architecture: str
    context_tokens: int = 0
    embedding_length: int = 0
    feed_forward_length: int = 0
    head_count: int = 0
    vocabulary_tokens: int = 0
    parameters_count: int = 0
    weights_bytes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    other_bytes: int = 0
    copied_bytes: int = 0
    read_bytes: int = 0
    is_mla: bool = False
    layers: tuple[LayerShape, ...] = ()
    unknown: str = ""
