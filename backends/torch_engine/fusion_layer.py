"""A decoder layer of the Llama kind as one straight function: the same mathematics, a third of the operations.

At one token a step the operations cost more in being called than in computing, so a layer merges q, k and v, merges
gate and up, rotates queries and keys together, and passes no module boundary on the way. It covers Llama and its many
descendants (biases, norms of queries and keys, Gemma's norms around both halves, weights that were merged in the file).
Whether a layer is of this kind is not read off its name: fusion.py builds this form and compares values.
Letters: T tokens, H heads, K KV heads, D head size, E hidden size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from backends.torch_engine.fusion_linear import MergedLinear, PackedLinear, can_merge, is_linear, merge
from backends.torch_engine.fusion_norm import Forward, FusedNorm, fused_norm, joined_norm

_QKV, _GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
_MERGED_QKV, _MERGED_GATE_UP = "qkv_proj", "gate_up_proj"


class Rotation:
    """The angles of a step, made ready once for all layers: transformers hands every layer the same two tensors.

    Attributes:
        cos: [1, T, 1, D].
        sin: [1, T, 1, D], the first half negated, so that a roll by half stands for the rotation by a quarter turn.
    """

    __slots__ = ("_known", "cos", "sin")

    def __init__(self) -> None:
        self._known: torch.Tensor | None = None
        self.cos = self.sin = torch.empty(0)

    def prepare(self, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Take the angles [1, T, D] of a step; nothing is done where they are those of the call before."""
        if self._known is sin:
            return
        self._known = sin
        half = sin.shape[-1] // 2
        self.cos = cos.unsqueeze(2)
        self.sin = torch.cat((-sin[..., :half], sin[..., half:]), -1).unsqueeze(2)

    def forget(self) -> None:
        """Let the step's tensors go."""
        self._known = None
        self.cos = self.sin = torch.empty(0)


@dataclass(frozen=True, slots=True)
class _Norms:
    """The norms of a layer; None where it has none at that place."""

    before_attention: Forward
    after_attention: Forward | None
    before_mlp: Forward
    after_mlp: Forward | None


class LayerForward:
    """What a fused layer does instead of its own forward.

    Attributes:
        qkv, out, gate_up, down: the layer's matrices.
        heads, kv_heads, size: H, K and D.
    """

    def __init__(self, layer: nn.Module, norms: _Norms, options: Mapping[str, Any], rotation: Rotation) -> None:
        attention: Any = layer.self_attn
        mlp: Any = layer.mlp
        self.attention = attention
        self.qkv: MergedLinear | PackedLinear = attention.get_submodule(_MERGED_QKV)
        self.out: MergedLinear | PackedLinear = attention.o_proj
        self.gate_up: MergedLinear | PackedLinear = mlp.get_submodule(_MERGED_GATE_UP)
        self.down: MergedLinear | PackedLinear = mlp.down_proj
        self.size = int(attention.head_dim)
        self.heads = self.out.in_features // self.size
        self.kv_heads = (self.qkv.out_features // self.size - self.heads) // 2
        self._act: Forward = mlp.act_fn if "act_fn" in dict(mlp.named_children()) else mlp.activation_fn
        self._act = nn.functional.silu if _is_silu(self._act) else self._act
        self._norms = norms
        self._head_norm = _head_norm(attention, self.heads, self.kv_heads)
        self._options = dict(options)
        self._rotation = rotation
        self._eager: Any = getattr(sys.modules[type(attention).__module__], "eager_attention_forward", None)

    def __call__(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None,
        **_rest: Any,
    ) -> torch.Tensor:
        """Return the layer's output [1, T, E] for its input [1, T, E]; arguments as transformers names them."""
        assert position_embeddings is not None
        norms = self._norms
        attended = self._attend(norms.before_attention(hidden_states), attention_mask, position_embeddings)
        if norms.after_attention is not None:
            attended = norms.after_attention(attended)
        hidden_states = hidden_states + attended
        gate, up = self.gate_up.forward(norms.before_mlp(hidden_states)).chunk(2, -1)
        passed = self.down.forward(self._act(gate).mul_(up))
        if norms.after_mlp is not None:
            passed = norms.after_mlp(passed)
        return hidden_states + passed

    def _attend(
        self, x: torch.Tensor, mask: torch.Tensor | None, angles: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        heads, kv_heads = self.heads, self.kv_heads
        batch, tokens, _size = x.shape
        rotation = self._rotation
        rotation.prepare(*angles)
        parts = self.qkv.forward(x).view(batch, tokens, heads + 2 * kv_heads, self.size)
        both = parts.narrow(2, 0, heads + kv_heads)  # [1, T, H + K, D]
        if self._head_norm is not None:
            both = self._head_norm(both)
        both = torch.addcmul(both * rotation.cos, both.roll(self.size // 2, -1), rotation.sin)
        both = both.transpose(1, 2)  # [1, H + K, T, D]
        function = ALL_ATTENTION_FUNCTIONS.get_interface(self.attention.config._attn_implementation, self._eager)
        attended, _weights = function(
            self.attention,
            both.narrow(1, 0, heads),
            both.narrow(1, heads, kv_heads),
            parts.narrow(2, heads + kv_heads, kv_heads).transpose(1, 2),
            mask,
            **self._options,
        )
        return self.out.forward(attended.reshape(batch, tokens, -1))


def fuse_layer(layer: nn.Module, options: Mapping[str, Any], rotation: Rotation) -> Callable[[], None] | None:
    """Give a layer of the Llama kind its fused forward.

    Args:
        layer: a decoder layer of transformers.
        options: what the layer's own forward passes to attention by name: the same in every call.
        rotation: shared by the layers of a model.

    Returns:
        What makes the layer as it was, and holds its plain weights for that; None where its parts are not those of this
        kind, and nothing was changed.
    """
    norms = _norms(layer)
    attention, mlp = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
    if norms is None or not _has_known_parts(attention, mlp):
        return None
    assert isinstance(attention, nn.Module)
    assert isinstance(mlp, nn.Module)
    before = [(module, dict(module._modules)) for module in (attention, mlp)]

    def undo() -> None:
        for module, children in before:
            module._modules.clear()
            module._modules.update(children)
        layer.__dict__.pop("forward", None)

    for module, names, merged in ((attention, _QKV, _MERGED_QKV), (mlp, _GATE_UP, _MERGED_GATE_UP)):
        linears = [getattr(module, name) for name in names if hasattr(module, name)] or [getattr(module, merged)]
        for name in names:
            module._modules.pop(name, None)
        module._modules[merged] = merge(linears)
    attention._modules["o_proj"] = merge([attention.get_submodule("o_proj")])  # type: ignore[list-item]
    mlp._modules["down_proj"] = merge([mlp.get_submodule("down_proj")])  # type: ignore[list-item]
    layer.__dict__["forward"] = LayerForward(layer, norms, options, rotation)
    return undo


def _has_known_parts(attention: object, mlp: object) -> bool:
    """Return whether attention and MLP consist of the matrices that a LayerForward takes over, and of no others."""
    if not isinstance(attention, nn.Module) or not isinstance(mlp, nn.Module):
        return False
    if not isinstance(getattr(attention, "head_dim", None), int) or not hasattr(attention, "config"):
        return False
    if not any(hasattr(mlp, name) for name in ("act_fn", "activation_fn")):
        return False
    for module, names, merged, last in (
        (attention, _QKV, _MERGED_QKV, "o_proj"),
        (mlp, _GATE_UP, _MERGED_GATE_UP, "down_proj"),
    ):
        linears = {name for name, child in module.named_modules() if isinstance(child, nn.Linear)}
        if linears not in ({*names, last}, {merged, last}) or not is_linear(getattr(module, last)):
            return False
        if not can_merge([getattr(module, name) for name in sorted(linears - {last})]):
            return False
    size, queries = int(getattr(attention, "head_dim", 0)), int(getattr(attention.o_proj, "in_features", 0))
    kept = [name for name in (*_QKV, _MERGED_QKV) if hasattr(attention, name)]
    rest = sum(int(getattr(attention, name).out_features) for name in kept) - queries
    return queries % size == 0 and rest > 0 and rest % (2 * size) == 0


def _norms(layer: nn.Module) -> _Norms | None:
    """Return a layer's norms in the places of Llama, or in those of Gemma 2, which has four; None for others."""
    found = {name: child for name, child in layer.named_children() if name not in ("self_attn", "mlp")}
    forms: dict[str, Forward] = {name: fused_norm(module) or module for name, module in found.items()}
    two = {"input_layernorm", "post_attention_layernorm"}
    used = {name for name, module in found.items() if not _does_nothing(module)}
    if used == two:
        return _Norms(forms["input_layernorm"], None, forms["post_attention_layernorm"], None)
    if used == {*two, "pre_feedforward_layernorm", "post_feedforward_layernorm"}:
        return _Norms(
            forms["input_layernorm"],
            forms["post_attention_layernorm"],
            forms["pre_feedforward_layernorm"],
            forms["post_feedforward_layernorm"],
        )
    return None


def _does_nothing(module: nn.Module) -> bool:
    """Return whether a child of a layer is inert when a model only answers: a dropout."""
    return isinstance(module, (nn.Dropout, nn.Identity))


def _head_norm(attention: Any, heads: int, kv_heads: int) -> FusedNorm | None:
    """Return one norm for the heads of queries and keys, where a model has norms for them."""
    names = [name for name in ("q_norm", "k_norm") if isinstance(getattr(attention, name, None), nn.Module)]
    if not names:
        return None
    norms = [fused_norm(getattr(attention, name)) for name in names]
    counted = [(norm, count) for norm, count in zip(norms, (heads, kv_heads), strict=False) if norm is not None]
    return joined_norm(counted) if len(counted) == 2 else None


def _is_silu(act: object) -> bool:
    return isinstance(act, nn.SiLU) or type(act).__name__ == "SiLUActivation"
