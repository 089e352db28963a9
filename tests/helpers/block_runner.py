"""The smallest runner of steps over KV blocks, without fusion or interruption: what tests of attention drive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from backends.torch_engine import attention
from backends.torch_engine.attention import AttentionContext
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan, layer_plans
from backends.torch_engine.step_layout import RowInput, StepLayout


class BlockRunner:
    """Runs steps of one model over one cache.

    Attributes:
        context: what answers the model's attention.
        hook_calls: how often the last step asked for attention.
    """

    def __init__(self, model: Any, cache: KvCache) -> None:
        self.context = AttentionContext(cache)
        self.hook_calls = 0
        self._model = model
        self._cache = cache

    def run(self, rows: Sequence[RowInput]) -> torch.Tensor:
        """Return float32 logits [R, V] of the rows that want them."""
        return self.logits(rows)[self.context.step.logits_index]

    def logits(self, rows: Sequence[RowInput], padded_tokens: int = 0) -> torch.Tensor:
        """Return float32 logits [T, V] of every token."""
        cache = self._cache
        step = StepLayout.build(
            rows, cache.block_tokens, cache.device, padded_tokens=padded_tokens, trash_block=cache.trash_block
        )
        self.context.step = step
        self.context.attach(self._model)
        with torch.inference_mode():
            out = self._model(input_ids=step.token_ids, position_ids=step.positions, use_cache=False)
        self.hook_calls = step.calls
        return out.logits[0].float()


def plans_of(model: Any) -> tuple[LayerPlan, ...]:
    """Give a model our attention and return what its layers need."""
    attention.register()
    model.set_attn_implementation(attention.NAME)
    return layer_plans(model, model.config)
