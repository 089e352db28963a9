"""What a tensor of a GGUF file does, as far as quantizing tells tensors apart, and which ones it leaves alone.

Knows names and dims only.
Reference: tensor_get_category and tensor_allows_quantization in llama-quant.cpp of the llama.cpp in llama-cpp-python
0.3.36.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

Role = Literal[
    "output", "embedding", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_gate", "ffn_down", "other"
]


class Tensor(Protocol):
    """What is asked of a tensor: its name and its dims, row length first."""

    @property
    def name(self) -> str:
        """Such as "blk.0.attn_q.weight"."""

    @property
    def dims(self) -> tuple[int, ...]:
        """The number of weights along each axis."""


_ROLE_PARTS: tuple[tuple[str, Role], ...] = (
    ("attn_qkv.weight", "attn_v"),
    ("attn_kv_b.weight", "attn_v"),
    ("attn_v.weight", "attn_v"),
    ("attn_k.weight", "attn_k"),
    ("attn_q.weight", "attn_q"),
    ("attn_output.weight", "attn_output"),
    ("ffn_up", "ffn_up"),
    ("ffn_gate", "ffn_gate"),
    ("ffn_down", "ffn_down"),
)

# Small or delicate tensors that stay as they are in every quantization.
_NEVER_QUANTIZED = (
    *("_norm.weight", "ffn_gate_inp.weight", "ffn_gate_tid2eid.weight", "altup", "laurel", "per_layer_model_proj"),
    *("ssm_conv1d", "shortconv.conv.weight", "indexer.k_proj.weight", "indexer.q_proj.weight", "attn_rel_b.weight"),
    *(
        f"time_mix_{part}.weight"
        for part in ("first", "w0", "w1", "w2", "v0", "v1", "v2", "a0", "a1", "a2", "g1", "g2")
    ),
    *("time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight"),
    *(".position_embd", "sam.pos_embd", "sam.neck.", "sam.net_", ".rel_pos", ".patch_embd", ".patch_merger"),
    *("a.rvq.codebook", "mm.a.code_embd"),
)
_NEVER_QUANTIZED_NAMES = frozenset(("position_embd.weight", "token_types.weight"))
_NEVER_QUANTIZED_GLM5 = (
    *("hc_", "indexer.attn_q_b", "indexer.attn_k", "indexer.proj", "indexer_compressor_gate", "indexer_compressor_ape"),
    *("ssm_f_a.weight", "ssm_f_b.weight", "ssm_g_a.weight", "ssm_g_b.weight", "ssm_beta.weight"),
    *("attn_kv_a_mqa.weight", "attn_k_b.weight", "attn_v_b.weight"),
)
_LAYER = re.compile(r"blk\.(\d{1,9})\.")


def role_of(name: str) -> Role:
    """Return what the tensor of this name does, as far as mixes tell tensors apart."""
    if name == "output.weight":
        return "output"
    if name in ("token_embd.weight", "per_layer_token_embd.weight"):
        return "embedding"
    return next((role for part, role in _ROLE_PARTS if part in name), "other")


def is_quantized(tensor: Tensor, architecture: str) -> bool:
    """Whether a mix chooses this tensor's type; the others stay as the model's maker stored them."""
    name = tensor.name
    if not name.endswith("weight") or not any(dim > 1 for dim in tensor.dims[1:]) or name in _NEVER_QUANTIZED_NAMES:
        return False
    if any(part in name for part in _NEVER_QUANTIZED):
        return False
    return architecture != "glm5-next" or not any(part in name for part in _NEVER_QUANTIZED_GLM5)


def layer_of(name: str) -> int:
    """Return the number of the layer in a tensor's name; -1 for those outside the layers."""
    found = _LAYER.match(name)
    return int(found[1]) if found else -1
