"""The tensors of a GGUF model, added up by what they are for: layers, input, output, experts.

Reference: src/llama-model.cpp and ggml/src/ggml-cpu/repack.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.models.gguf_header import GgufHeader, TensorInfo
from app.models.gguf_keys import GgufKeys

_LAYER = re.compile(r"(?:blk|enc\.blk|dec\.blk)\.(\d{1,4})\.")
_INPUT, _OUTPUT = "token_embd.weight", "output.weight"
# Looked up a row at a time; of all of them a token reads a few kilobytes.
_LOOKED_UP = re.compile(r"(?:token_embd|per_layer_token_embd|position_embd|token_types)\.weight$")
_EXPERTS = re.compile(r"_(?:ch)?exps\.")
_ROUTED = re.compile(r"\.ffn_(?:up|gate|gate_up)_exps\.weight$")
_DENSE = re.compile(r"\.ffn_up\.weight$")

# Types that an x86 processor with AVX2 rearranges, where the rows are a multiple of eight. Files for other processors
# lie the same way on disk, but it is there that the GPU usually takes the weights.
_REARRANGED = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"})
_ROWS_TOGETHER = 8
_MOST_WIDTH = 2**48  # of a header that lies


@dataclass(frozen=True, slots=True)
class Weights:
    """What the tensors take.

    Attributes:
        layer_bytes: of each layer, as many as were asked for. layer_read_bytes: what one token reads of it.
        input_bytes: the token embedding. output_bytes: the output matrix; 0 when it is tied.
        output_read_bytes: what one token reads outside the layers.
        copied_bytes: what is kept a second time, rearranged.
        feed_forward_length: of the widest layer, of all experts that a token uses; 0 where no tensor tells.
    """

    total_bytes: int
    parameters_count: int
    layer_bytes: tuple[int, ...]
    layer_read_bytes: tuple[int, ...]
    input_bytes: int
    output_bytes: int
    other_bytes: int
    output_read_bytes: int
    copied_bytes: int
    vocabulary_tokens: int
    feed_forward_length: int


def weights_of_gguf(header: GgufHeader, max_layers: int) -> Weights:
    """Return what the tensors take, by owner."""
    keys = GgufKeys(header)
    used = max([1, *keys.some_per_layer("expert_used_count")])
    experts = keys.some("expert_count")
    is_tied = all(tensor.name != _OUTPUT for tensor in header.tensors)
    layer_bytes, layer_read = [0] * max_layers, [0] * max_layers
    input_bytes = output_bytes = other_bytes = read_bytes = copied_bytes = vocabulary = feed_forward = 0
    for tensor in header.tensors:
        size_bytes = tensor.size_bytes
        if _is_rearranged(tensor, is_tied):
            copied_bytes += size_bytes
        match = _LAYER.match(tensor.name)
        if match and int(match[1]) < max_layers:
            layer_bytes[int(match[1])] += size_bytes
            layer_read[int(match[1])] += _read_of(tensor, used, experts)
            feed_forward = max(feed_forward, _width(tensor, used, keys.some("feed_forward_length")))
        elif tensor.name == _INPUT:
            input_bytes, vocabulary = size_bytes, tensor.dims[-1]
            read_bytes += size_bytes if is_tied else 0
        else:
            is_output = tensor.name == _OUTPUT
            output_bytes += size_bytes if is_output else 0
            other_bytes += 0 if is_output else size_bytes
            read_bytes += 0 if _LOOKED_UP.search(tensor.name) else size_bytes
    return Weights(
        total_bytes=header.tensor_bytes,
        parameters_count=header.parameters_count,
        layer_bytes=tuple(layer_bytes),
        layer_read_bytes=tuple(layer_read),
        input_bytes=input_bytes,
        output_bytes=output_bytes,
        other_bytes=other_bytes,
        output_read_bytes=read_bytes,
        copied_bytes=copied_bytes,
        vocabulary_tokens=vocabulary,
        feed_forward_length=feed_forward,
    )


def _is_rearranged(tensor: TensorInfo, is_tied: bool) -> bool:
    """Say whether an x86 processor would keep this matrix, or these matrices of experts, a second time."""
    if tensor.type_name not in _REARRANGED or len(tensor.dims) not in (2, 3) or tensor.dims[1] % _ROWS_TOGETHER:
        return False
    if tensor.name == _INPUT:  # looked up as it is, and copied only as the output matrix
        return is_tied
    return not _LOOKED_UP.search(tensor.name)


def _read_of(tensor: TensorInfo, used: int, experts: int) -> int:
    """Return what one token reads of a tensor: of experts only those it uses."""
    if not _EXPERTS.search(tensor.name):
        return tensor.size_bytes
    count = max(1, experts or tensor.dims[-1])
    return tensor.size_bytes * min(used, count) // count


def _width(tensor: TensorInfo, used: int, said: int) -> int:
    """Return how wide a tensor says its feed-forward layer is; 0 for a tensor that does not."""
    if len(tensor.dims) < 2:
        return 0
    if match := _ROUTED.search(tensor.name):
        width = tensor.dims[1] // 2 if "gate_up" in match[0] else tensor.dims[1]
        return min(used * width, _MOST_WIDTH)
    if not _DENSE.search(tensor.name):
        return 0
    return min(_MOST_WIDTH, said if tensor.dims[1] == 2 * said else tensor.dims[1])  # up and gate in one, as in Phi
