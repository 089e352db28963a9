"""What each attention layer of a model needs of its KV blocks, found by letting one token through.

Shapes, windows and shared layers are read off the calls themselves, since configs name them in many ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from backends.torch_engine import attention_hook
from backends.torch_engine.attention_hook import AttentionCall


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """One attention layer.

    Attributes:
        index: the layer's number in the model.
        query_heads: H.
        kv_heads: K; H is a multiple of it.
        k_size: values a key head.
        v_size: values a value head; differs from k_size where a latent is expanded.
        window: tokens a token may see, itself included; 0 is all.
        chunk: tokens see those of their own chunk only; 0 is all.
        softcap: bound of the scores; 0 is none.
        has_sinks: whether extra scores join the softmax.
        shares_with: the layer whose keys and values it reads instead of its own; -1 has its own.
    """

    index: int
    query_heads: int
    kv_heads: int
    k_size: int
    v_size: int
    window: int = 0
    chunk: int = 0
    softcap: float = 0.0
    has_sinks: bool = False
    shares_with: int = -1

    @property
    def values_per_token(self) -> int:
        """How many values a token keeps in this layer; none where the layer reads another's."""
        return 0 if self.shares_with >= 0 else self.kv_heads * (self.k_size + self.v_size)

    def first_visible(self, position: int) -> int:
        """Return the first position that a token at this position sees."""
        first = max(0, position - self.window + 1) if self.window else 0
        return max(first, position // self.chunk * self.chunk) if self.chunk else first


def layer_plans(model: torch.nn.Module, config: Any) -> tuple[LayerPlan, ...]:
    """Run one token through a model whose attention is ours and return a plan for each call, in order.

    Args:
        model: in evaluation mode, with attention_hook.NAME as its attention.
        config: the model's, for layers whose own module has none.
    """
    probe = _Probe(config)
    attention_hook.attach(model, probe)
    device = next(model.parameters()).device
    token = torch.zeros((1, 1), dtype=torch.int64, device=device)
    try:
        with torch.inference_mode():
            model(input_ids=token, position_ids=token, use_cache=False)
    finally:
        attention_hook.attach(model, None)
    return tuple(probe.plans)


class _Probe:
    """Notes every call and answers it as if the one token saw itself."""

    def __init__(self, config: Any) -> None:
        self.plans: list[LayerPlan] = []
        self._config = config
        self._keys: list[torch.Tensor] = []  # held, so that no address is used twice

    def answer(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        index = int(getattr(module, "layer_idx", -1))
        config = getattr(module, "config", None) or self._config
        kinds = getattr(config, "layer_types", None)
        kind = kinds[index] if kinds and index < len(kinds) else ""
        window = call.window or 0
        if not window and (kind == "sliding_attention" or not kinds):
            window = getattr(config, "sliding_window", None) or 0
        chunk = getattr(config, "attention_chunk_size", None) or 0
        self.plans.append(
            LayerPlan(
                index=index,
                query_heads=call.query.shape[1],
                kv_heads=call.key.shape[1],
                k_size=call.key.shape[3],
                v_size=call.value.shape[3],
                window=int(window),
                chunk=int(chunk) if kind == "chunked_attention" else 0,
                softcap=float(call.softcap or 0.0),
                has_sinks=call.sinks is not None,
                shares_with=self._source(call.key),
            )
        )
        self._keys.append(call.key)
        groups = call.query.shape[1] // call.key.shape[1]
        return call.value.repeat_interleave(groups, 1).transpose(1, 2).to(call.query.dtype)

    def _source(self, key: torch.Tensor) -> int:
        """Return the layer that handed over this very tensor before, -1 for none."""
        for plan, earlier in zip(self.plans, self._keys, strict=True):
            if earlier.data_ptr() == key.data_ptr() and earlier.shape == key.shape:
                return plan.index
        return -1
