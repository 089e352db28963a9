"""A GGUF's metadata as the config that transformers builds a model from, one function a kind of model.

What the file states is set even where it is transformers' own default, since a default is one model's value. What
changes the numbers and has no place here (other ways to stretch positions, experts) is refused rather than left out:
a model that runs on half of its config writes wrong text and no error.
References: llama.cpp's convert_hf_to_gguf.py and src/llama-model.cpp; the configs of
https://github.com/huggingface/transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_reader import GgufFile

Config = dict[str, object]

# The stretching of Llama 3.1 and later. Only its factor differs between models, and only the frequencies that follow
# from it stand in a GGUF.
_LLAMA3_LOW, _LLAMA3_HIGH, _LLAMA3_TRAINED = 1.0, 4.0, 8192
_GEMMA3_WINDOW_BASE = 10_000.0  # llama.cpp's default for layers with a window
_GEMMA3_PATTERN = 6  # every sixth layer sees everything
_GEMMA2_27B_BLOCKS, _GEMMA3_27B_BLOCKS = 46, 62  # these two scale attention by the width of a head's share


def transformers_config(file: GgufFile, rope_factors: list[float]) -> Config:
    """Return the config of a GGUF file's model.

    Args:
        file: its header.
        rope_factors: the values of the tensor rope_freqs.weight, [] when there is none.

    Raises:
        EngineError: UNKNOWN_ARCHITECTURE, WEIGHTS_UNSUPPORTED or HEADER_INVALID.
    """
    build = BUILDERS.get(file.architecture)
    if build is None:
        raise EngineError(
            ErrorCode.UNKNOWN_ARCHITECTURE, path=str(file.path), architecture=file.architecture or "none is named"
        )
    if _number(file, "expert_count", 0):
        raise EngineError(
            ErrorCode.UNKNOWN_ARCHITECTURE, path=str(file.path), architecture=f"{file.architecture} with experts"
        )
    return _common(file) | build(file, rope_factors)


def _common(file: GgufFile) -> Config:
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise file.damaged("it holds no embedding of its tokens")
    heads = _whole(file, "attention.head_count")
    width = _whole(file, "embedding_length")
    return {
        "vocab_size": embedding.shape[0],
        "hidden_size": width,
        "intermediate_size": _whole(file, "feed_forward_length"),
        "num_hidden_layers": _whole(file, "block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": int(_number(file, "attention.head_count_kv", heads)),
        "head_dim": int(_number(file, "attention.key_length", width // max(heads, 1))),
        "max_position_embeddings": _whole(file, "context_length"),
        "rms_norm_eps": _number(file, "attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": _token(file, "bos_token_id"),
        "eos_token_id": _token(file, "eos_token_id"),
        "pad_token_id": _token(file, "padding_token_id"),
    }


def _llama(file: GgufFile, rope_factors: list[float]) -> Config:
    """Llama, and Mistral, which llama.cpp writes under the same name."""
    has_bias = "blk.0.attn_q.bias" in file.tensors
    rope = _rope(file)
    if rope_factors:
        rope = _llama3_rope(file, rope_factors)
    return {"model_type": "llama", "hidden_act": "silu", "attention_bias": has_bias, "rope_parameters": rope}


def _qwen2(file: GgufFile, _rope_factors: list[float]) -> Config:
    return {"model_type": "qwen2", "hidden_act": "silu", "use_sliding_window": False, "rope_parameters": _rope(file)}


def _qwen3(file: GgufFile, _rope_factors: list[float]) -> Config:
    has_bias = "blk.0.attn_q.bias" in file.tensors
    return {
        "model_type": "qwen3",
        "hidden_act": "silu",
        "attention_bias": has_bias,
        "use_sliding_window": False,
        "rope_parameters": _rope(file),
    }


def _gemma2(file: GgufFile, _rope_factors: list[float]) -> Config:
    layers = _whole(file, "block_count")
    return {
        "model_type": "gemma2",
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": _number(file, "attn_logit_softcapping", 50.0),
        "final_logit_softcapping": _number(file, "final_logit_softcapping", 30.0),
        "query_pre_attn_scalar": _query_scale(file, _GEMMA2_27B_BLOCKS),
        "sliding_window": int(_number(file, "attention.sliding_window", 4096)),
        "layer_types": ["full_attention" if layer % 2 else "sliding_attention" for layer in range(layers)],
        "rope_parameters": _rope(file),
    }


def _gemma3(file: GgufFile, _rope_factors: list[float]) -> Config:
    layers = _whole(file, "block_count")
    is_full = [layer % _GEMMA3_PATTERN == _GEMMA3_PATTERN - 1 for layer in range(layers)]
    windowed = {"rope_type": "default", "rope_theta": _number(file, "rope.freq_base_swa", _GEMMA3_WINDOW_BASE)}
    return {
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": None,
        "final_logit_softcapping": _number(file, "final_logit_softcapping", 0.0) or None,
        "query_pre_attn_scalar": _query_scale(file, _GEMMA3_27B_BLOCKS),
        "sliding_window": _whole(file, "attention.sliding_window"),
        "layer_types": ["full_attention" if full else "sliding_attention" for full in is_full],
        "rope_parameters": {"full_attention": _rope(file, base=1_000_000.0), "sliding_attention": windowed},
    }


def _phi3(file: GgufFile, _rope_factors: list[float]) -> Config:
    if any(name.startswith("rope_factors_") for name in file.tensors):
        raise _unsupported(file, "longrope")
    head = _whole(file, "embedding_length") // max(_whole(file, "attention.head_count"), 1)
    rope = _rope(file) | {"partial_rotary_factor": _number(file, "rope.dimension_count", head) / max(head, 1)}
    return {
        "model_type": "phi3",
        "hidden_act": "silu",
        "sliding_window": int(_number(file, "attention.sliding_window", 0)) or None,
        "rope_parameters": rope,
    }


# Kind of model in llama.cpp's words -> what builds its config.
BUILDERS: Mapping[str, Callable[[GgufFile, list[float]], Config]] = MappingProxyType(
    {"llama": _llama, "qwen2": _qwen2, "qwen3": _qwen3, "gemma2": _gemma2, "gemma3": _gemma3, "phi3": _phi3}
)


def _rope(file: GgufFile, base: float = 10_000.0) -> Config:
    """Return how positions turn, stretched the way the file says."""
    theta = _number(file, "rope.freq_base", base)
    kind = file.text(f"{file.architecture}.rope.scaling.type", "none")
    if kind == "none":
        return {"rope_type": "default", "rope_theta": theta}
    if kind == "linear":
        return {"rope_type": "linear", "rope_theta": theta, "factor": _number(file, "rope.scaling.factor")}
    if kind == "yarn":
        return {
            "rope_type": "yarn",
            "rope_theta": theta,
            "factor": _number(file, "rope.scaling.factor"),
            "original_max_position_embeddings": _whole(file, "rope.scaling.original_context_length"),
        }
    raise _unsupported(file, kind)


def _llama3_rope(file: GgufFile, factors: list[float]) -> Config:
    """Return Llama 3's stretching, if these are the frequencies that follow from it; checked by value."""
    theta = _number(file, "rope.freq_base", 10_000.0)
    factor = max(factors)
    expected = [_llama3_factor(theta ** (index / len(factors)), factor) for index in range(len(factors))]
    if any(not math.isclose(one, other, rel_tol=1e-4) for one, other in zip(factors, expected, strict=True)):
        raise _unsupported(file, "of its own")
    return {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": factor,
        "low_freq_factor": _LLAMA3_LOW,
        "high_freq_factor": _LLAMA3_HIGH,
        "original_max_position_embeddings": _LLAMA3_TRAINED,
    }


def _llama3_factor(inverse_frequency: float, factor: float) -> float:
    """Return by how much Llama 3 slows one frequency down (convert_hf_to_gguf.py, generate_extra_tensors)."""
    wavelength = 2 * math.pi * inverse_frequency
    if wavelength < _LLAMA3_TRAINED / _LLAMA3_HIGH:
        return 1.0
    if wavelength > _LLAMA3_TRAINED / _LLAMA3_LOW:
        return factor
    smooth = (_LLAMA3_TRAINED / wavelength - _LLAMA3_LOW) / (_LLAMA3_HIGH - _LLAMA3_LOW)
    return 1 / ((1 - smooth) / factor + smooth)


def _query_scale(file: GgufFile, large_blocks: int) -> float:
    """Return what attention divides by the root of: the head's size, but for the largest model of a family."""
    if _whole(file, "block_count") == large_blocks:
        return _whole(file, "embedding_length") / _whole(file, "attention.head_count")
    return _number(file, "attention.key_length", 256.0)


def _number(file: GgufFile, key: str, default: float | None = None) -> float:
    return file.number(f"{file.architecture}.{key}", default)


def _whole(file: GgufFile, key: str) -> int:
    number = _number(file, key)
    if not 0 < number < 2**31:
        raise file.damaged(f"{file.architecture}.{key} is {number:g}")
    return int(number)


def _token(file: GgufFile, key: str) -> int | None:
    number = int(file.number(f"tokenizer.ggml.{key}", -1))
    return number if number >= 0 else None


def _unsupported(file: GgufFile, kind: str) -> EngineError:
    detail = f"the positions of this model are stretched in a way that this engine does not know ({kind[:40]})"
    return EngineError(ErrorCode.LOAD_FAILED, path=str(file.path), detail=detail)
