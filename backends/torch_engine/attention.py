"""Attention of the models over KV blocks: who answers the layers' calls, and by which path.

References: attention_hook.py is the door that transformers' models call through; attention_reference.py is the plain
path; attention_cpu.py reads blocks where they lie.
"""

from __future__ import annotations

import torch

from backends.torch_engine import attention_cpu, attention_hook, attention_reference
from backends.torch_engine.attention_hook import NAME, AttentionCall, register
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.step_layout import StepLayout

__all__ = ["NAME", "AttentionContext", "register"]


class AttentionContext:
    """What the attention layers of one model need to know of the step; the runner owns it and sets `step`.

    Attributes:
        cache: where keys and values are kept.
        step: the step that is being computed; None between steps.
        reads_in_place: whether the CPU attends to blocks where they lie; False takes the plain path everywhere.
    """

    def __init__(self, cache: KvCache) -> None:
        self.cache = cache
        self.step: StepLayout | None = None
        self.reads_in_place = cache.device.type == "cpu"

    def attach(self, model: torch.nn.Module) -> None:
        """Answer the attention calls of this model from now on."""
        attention_hook.attach(model, self)

    def answer(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        """Return [1, T, H, Dv] for a call of a layer of transformers."""
        layer: int = module.layer_idx  # type: ignore[assignment]
        return self.attend(layer, call.query, call.key, call.value, call.scaling, call.sinks)

    def attend(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        scaling: float | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Write a layer's keys and values to the step's slots and return what its queries see.

        Windows, chunks and caps come from the layer's plan.

        Args:
            layer: its number.
            query: [1, H, T, D].
            key: [1, K, T, D].
            value: [1, K, T, Dv].
            scaling: factor on the scores; None is D ** -0.5.
            sinks: [H] or None.

        Returns:
            [1, T, H, Dv] in the query's dtype; zeros for padding.
        """
        step, cache = self.step, self.cache
        if step is None:
            raise RuntimeError("attention was asked for outside of a step")
        plan = cache.plans[layer]
        step.calls += 1
        if plan.shares_with < 0:
            cache.write(layer, key, value, step.slots)
        if scaling is None:
            scaling = float(plan.k_size**-0.5)
        if self.reads_in_place and attention_cpu.can_attend(plan):
            return attention_cpu.attend(cache, plan, step, query, scaling, sinks)
        return attention_reference.attend(cache, plan, step, query, scaling, sinks)
