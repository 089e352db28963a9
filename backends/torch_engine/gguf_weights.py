"""The weights of a GGUF file under transformers' names, dequantized one by one when the model asks for each.

llama.cpp stores some of them in a form of its own, which is undone here: the rows of Llama's queries and keys are
interleaved for its way to turn positions, and Gemma's norms hold w + 1.
References: llama.cpp's convert_hf_to_gguf.py (permute, modify_tensors); gguf.quants for the formats.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, LlamaFileType
from gguf.quants import dequantize

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_reader import GgufFile, GgufTensor
from backends.torch_engine.model_weights import DTYPE_NAMES, LazyWeight, LoadProgress, read_into

_Array = np.ndarray[Any, np.dtype[Any]]

ROPE_FACTORS = "rope_freqs.weight"
_CHUNK_ELEMENTS = 2**20  # dequantized at once; the float32 of a whole embedding would take gigabytes
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")

_WHOLE_MODEL = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
_GEMMA_LAYER = _LAYER | {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_PHI3_LAYER = _LAYER | {"ffn_up": "mlp.gate_up_proj"}
_LAYERS: Mapping[str, Mapping[str, str]] = {"gemma2": _GEMMA_LAYER, "gemma3": _GEMMA_LAYER, "phi3": _PHI3_LAYER}
_GEMMAS = ("gemma2", "gemma3")
# Tensors that are no weights of the model: config.json's part of them is taken from elsewhere.
_NO_WEIGHTS = (ROPE_FACTORS, "rope_factors_long.weight", "rope_factors_short.weight")


def gguf_weights(
    file: GgufFile, config: Mapping[str, object], progress: LoadProgress, dtype: torch.dtype = torch.float32
) -> dict[str, LazyWeight]:
    """Return the weights of a GGUF file under transformers' names.

    Matrices come in this dtype, so that no large one is ever there as float32; vectors, norms above all, come as
    float32 and are rounded after whatever is done to them.

    Raises:
        EngineError: LOAD_FAILED; it holds a tensor that no model of this kind has.
    """
    weights: dict[str, LazyWeight] = {}
    for tensor in file.tensors.values():
        if tensor.name in _NO_WEIGHTS:
            continue
        name = transformers_name(file, tensor.name)
        weights[name] = _lazy(file, tensor, name, config, progress, dtype if len(tensor.shape) > 1 else torch.float32)
    return weights


def transformers_name(file: GgufFile, name: str) -> str:
    """Return what transformers calls a tensor of this file.

    Raises:
        EngineError: LOAD_FAILED; no model of this kind has it.
    """
    layer = _LAYERS.get(file.architecture, _LAYER)
    stem, _, leaf = name.rpartition(".")
    if stem in _WHOLE_MODEL and leaf in ("weight", "bias"):
        return f"{_WHOLE_MODEL[stem]}.{leaf}"
    if (found := _BLOCK.fullmatch(name)) and found[2] in layer:
        return f"model.layers.{found[1]}.{layer[found[2]]}.{found[3]}"
    detail = f"it holds a tensor that no model of this kind has ({name[:80]!a})"
    raise EngineError(ErrorCode.LOAD_FAILED, path=str(file.path), detail=detail)


def read_gguf_tensor(file: GgufFile, tensor: GgufTensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor of the file, dequantized piece by piece.

    Raises:
        EngineError: FILE_UNREADABLE, or WEIGHTS_UNSUPPORTED.
    """
    block_elements, block_bytes = GGML_QUANT_SIZES[tensor.kind]
    made = torch.empty(tensor.elements, dtype=dtype)
    step = max(_CHUNK_ELEMENTS // block_elements, 1) * block_elements
    for begin in range(0, tensor.elements, step):
        end = min(begin + step, tensor.elements)
        raw = np.empty((end - begin) // block_elements * block_bytes, dtype=np.uint8)
        read_into(file.path, tensor.offset + begin // block_elements * block_bytes, raw.data)
        made[begin:end] = torch.from_numpy(_dequantized(file, raw[None], tensor.kind))
    return made.reshape(tensor.shape)


def rope_factors(file: GgufFile) -> list[float]:
    """Return by how much the file slows each frequency of its positions down, [] when it does not say."""
    tensor = file.tensors.get(ROPE_FACTORS)
    if tensor is None or tensor.elements > 4_096:
        return []
    factors: list[float] = read_gguf_tensor(file, tensor).flatten().tolist()
    return factors


def quantization_name(file: GgufFile) -> str:
    """Return how the weights are stored, such as "Q4_K_M", or the type of most of them where the file does not say."""
    number = file.metadata.get("general.file_type")
    if isinstance(number, int) and number in list(LlamaFileType):
        return LlamaFileType(number).name.removeprefix("MOSTLY_").removeprefix("ALL_")
    taken: dict[str, int] = {}
    for tensor in file.tensors.values():
        taken[tensor.kind.name] = taken.get(tensor.kind.name, 0) + tensor.size_bytes
    return max(taken, key=lambda kind: taken[kind], default="")


def _lazy(
    file: GgufFile,
    tensor: GgufTensor,
    name: str,
    config: Mapping[str, object],
    progress: LoadProgress,
    dtype: torch.dtype,
) -> LazyWeight:
    heads = _interleaved_heads(file, tensor, config)
    is_shifted = file.architecture in _GEMMAS and tensor.name.endswith("norm.weight")

    def read() -> torch.Tensor:
        made = read_gguf_tensor(file, tensor, dtype)
        if heads:
            return deinterleaved(made, heads)
        return made.sub_(1) if is_shifted else made

    return LazyWeight(name, tensor.shape, DTYPE_NAMES[dtype], file.path, read, tensor.size_bytes, progress)


def _interleaved_heads(file: GgufFile, tensor: GgufTensor, config: Mapping[str, object]) -> int:
    """Return how many heads' rows are interleaved in this tensor; 0 for none."""
    if file.architecture != "llama":
        return 0
    key = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(tensor.name.split(".")[-2])
    heads = config[key] if key else 0
    if not isinstance(heads, int) or heads < 0 or (heads and tensor.shape[0] % (2 * heads)):
        raise file.damaged(f"the tensor {tensor.name[:80]!a} is no whole number of heads")
    return heads


def deinterleaved(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Return rows in transformers' order: of each head, the first halves of all pairs before the second ones.

    Args:
        rows: [heads x 2 x half, ...], of each head the two halves of a pair next to each other.
        heads: H or K.
    """
    half = rows.shape[0] // heads // 2
    return rows.reshape(heads, half, 2, *rows.shape[1:]).transpose(1, 2).reshape(rows.shape).contiguous()


def _dequantized(file: GgufFile, blocks: _Array, kind: GGMLQuantizationType) -> _Array:
    """Return the numbers of blocks, flat and as float32.

    The library goes through rows in groups of 16, so all blocks are given as one row, [1, bytes] uint8: with a
    block a row it takes several times as long.
    """
    try:
        return np.ascontiguousarray(dequantize(blocks, kind), dtype=np.float32).reshape(-1)
    except NotImplementedError as error:
        raise EngineError(ErrorCode.WEIGHTS_UNSUPPORTED, path=str(file.path), detail=kind.name) from error
