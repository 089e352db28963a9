"""One step of the model: tokens of several sequences through one flat forward, logits where they are wanted.

Knows blocks and modules, no scheduler and no sampler. References: step_layout.py is what a step is made of;
attention.py answers the layers; fusion.py made the layers quick before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch

from backends.torch_engine import attention_hook
from backends.torch_engine.attention import AttentionContext
from backends.torch_engine.attention_hook import AttentionCall
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.step_layout import RowInput, StepLayout


class Interrupted(Exception):  # noqa: N818 - no error: somebody pressed Stop
    """The step was given up between two layers: nothing of it counts, and what the blocks held before is untouched."""


class ModelRunner:
    """Runs steps of one model over one KV cache. Only the engine's main thread calls it, but for interrupt().

    Attributes:
        cache: where the model's keys and values lie.
        hook_calls: how often the last step asked for attention; once a layer in a model that goes through our hook.
    """

    def __init__(self, module: torch.nn.Module, cache: KvCache) -> None:
        self.cache = cache
        self.hook_calls = 0
        self._module = module
        self._context = AttentionContext(cache)
        self._stop = threading.Event()
        attention_hook.attach(module, self)

    def run(self, rows: Sequence[RowInput]) -> torch.Tensor:
        """Compute the rows' tokens, write their KV, and return logits.

        Args:
            rows: what each sequence computes; their blocks belong to them.

        Returns:
            [R, V] float32, for each that wants logits those of its last tokens, in their order.

        Raises:
            Interrupted: interrupt() was called since the last resume().
        """
        step = StepLayout.build(rows, self.cache.block_tokens, self.cache.device)
        self._context.step = step
        try:
            with torch.inference_mode():
                output = self._module(
                    input_ids=step.token_ids,
                    position_ids=step.positions,
                    use_cache=False,
                    logits_to_keep=step.logits_index,
                )
                logits: torch.Tensor = output.logits
                return logits[0].float()
        finally:
            self._context.step = None
            self.hook_calls = step.calls

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy blocks (source, target) before a step."""
        with torch.inference_mode():
            self.cache.copy_blocks(pairs)

    def interrupt(self) -> None:
        """Make the step in progress, or else the next one, end before its next layer. Called from any thread."""
        self._stop.set()

    def resume(self) -> None:
        """Let steps run again after an interrupt."""
        self._stop.clear()

    def detach(self) -> None:
        """Answer the model's attention no more."""
        attention_hook.attach(self._module, None)

    def answer(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        """Return attention [1, T, H, Dv] for a layer's call; attention_hook.py calls this."""
        if self._stop.is_set():
            raise Interrupted
        return self._context.answer(module, call)
