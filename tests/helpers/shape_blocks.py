"""The parts that most models share: their metadata and the tensors of attention and feed-forward.

Tensor names and shapes follow src/models of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.helpers.shape_parts import Value, Vocabulary

LLAMA3 = Vocabulary("gpt2", "llama-bpe", 128_256, 280_147)
QWEN = Vocabulary("gpt2", "qwen2", 151_936, 151_387)
_RMS = "attention.layer_norm_rms_epsilon"


def spm(tokens: int) -> Vocabulary:
    return Vocabulary("llama", "", tokens)


def values(width: int, context: int, feed_forward: int | Sequence[int], **more: Value) -> dict[str, Value]:
    """Return the metadata that nearly all models have; of the names of the others "__" stands for a dot."""
    made: dict[str, Value] = {
        "context_length": context,
        "embedding_length": width,
        "feed_forward_length": feed_forward,
        _RMS: 1e-5,
    }
    return made | {key.replace("__", "."): value for key, value in more.items()}


def heads(query: int | Sequence[int], kv: int | Sequence[int], size: int = 0) -> dict[str, Value]:
    made: dict[str, Value] = {"attention.head_count": query, "attention.head_count_kv": kv}
    if size:
        made |= {"attention.key_length": size, "attention.value_length": size}
    return made


def attention(width: int, query: int, kv: int, size: int = 128) -> dict[str, tuple[int, ...]]:
    return {
        "attn_norm": (width,),
        "attn_q": (width, query * size),
        "attn_k": (width, kv * size),
        "attn_v": (width, kv * size),
        "attn_output": (query * size, width),
    }


def feed_forward(width: int, inner: int, norm: str = "ffn_norm") -> dict[str, tuple[int, ...]]:
    return {norm: (width,), "ffn_gate": (width, inner), "ffn_up": (width, inner), "ffn_down": (inner, width)}


def experts(width: int, inner: int, count: int) -> dict[str, tuple[int, ...]]:
    return {
        "ffn_gate_inp": (width, count),
        "ffn_gate_exps": (width, inner, count),
        "ffn_up_exps": (width, inner, count),
        "ffn_down_exps": (inner, width, count),
    }


def shared_expert(width: int, inner: int) -> dict[str, tuple[int, ...]]:
    return {"ffn_gate_shexp": (width, inner), "ffn_up_shexp": (width, inner), "ffn_down_shexp": (inner, width)}


def norms(size: int) -> dict[str, tuple[int, ...]]:
    return {"attn_q_norm": (size,), "attn_k_norm": (size,)}


def ssm(kernel: int, inner: int, state: int, rank: int, groups: int = 0) -> dict[str, Value]:
    made: dict[str, Value] = {
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
    }
    return made | ({"ssm.group_count": groups} if groups else {})
