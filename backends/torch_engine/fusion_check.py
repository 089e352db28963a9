"""What a model's layers do, noted before they are fused, so that the fused ones can be held against it.

One short forward of the untouched model gives every layer's input, output and its call of attention; a fused layer must
give the same from the same input. Nothing is believed because of a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from backends.torch_engine import attention_hook
from backends.torch_engine.attention_hook import AttentionCall

_TOKENS = 5  # a decode step of a few sequences and a short prompt are the same to a layer
# How much of a row's size may be rounding, by type.
_SHARES = MappingProxyType({torch.bfloat16: 0.06, torch.float16: 0.01})
# What a layer that was put together wrongly raises.
FAULTS = (RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError, AssertionError)


class Recorder:
    """Answers attention with a plain causal one and notes the calls."""

    def __init__(self) -> None:
        self.calls: list[AttentionCall] = []

    def answer(self, _module: nn.Module, call: AttentionCall) -> torch.Tensor:
        """Return [1, T, H, Dv]."""
        self.calls.append(call)
        groups = call.query.shape[1] // call.key.shape[1]
        key, value = (tensor.repeat_interleave(groups, 1) for tensor in (call.key, call.value))
        attended = nn.functional.scaled_dot_product_attention(
            call.query, key, value.to(call.query.dtype), is_causal=True, scale=call.scaling
        )
        return attended.transpose(1, 2)


@dataclass
class LayerRecord:
    """What went into a layer and came out; calls are those of its attention."""

    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    output: torch.Tensor | None = None
    calls: list[AttentionCall] = field(default_factory=list)

    def attention_options(self) -> dict[str, Any]:
        """Return what the layer passes to attention by name, besides its tensors."""
        call = self.calls[0]
        named = {
            "scaling": call.scaling,
            "sliding_window": call.window,
            "softcap": call.softcap,
            "s_aux": call.sinks,
        }
        return {name: value for name, value in named.items() if value is not None}

    def fault(self, layer: nn.Module, recorder: Recorder) -> str:
        """Run a changed layer on the recorded input and say what differs; "" where nothing does."""
        recorder.calls.clear()
        try:
            output = layer(*self.arguments, **self.options)
        except FAULTS as error:
            return f"{type(error).__name__}: {error}"
        if len(recorder.calls) != len(self.calls):
            return f"asks for attention {len(recorder.calls)} times, not {len(self.calls)}"
        for found, expected in zip(recorder.calls, self.calls, strict=True):
            if found[3:6] != expected[3:6] or found.sinks is not expected.sinks:
                return "asks for attention of another kind"
            if not all(is_close(a, b) for a, b in zip(found[:3], expected[:3], strict=True)):
                return "other queries, keys or values"
        return "" if self.output is not None and is_close(output, self.output, self._input()) else "another output"

    def _input(self) -> torch.Tensor | None:
        hidden = self.arguments[0] if self.arguments else self.options.get("hidden_states")
        return hidden if isinstance(hidden, torch.Tensor) else None


def record(module: nn.Module, layers: Sequence[nn.Module]) -> tuple[list[LayerRecord], torch.Tensor]:
    """Run a few tokens through a model whose attention is ours.

    Returns:
        A record for each layer (empty for one that was not run) and the logits [1, T, V].

    Raises:
        one of FAULTS: the model cannot be run that way.
    """
    records = [LayerRecord() for _layer in layers]
    recorder = Recorder()
    handles = []
    for layer, record_ in zip(layers, records, strict=True):

        def before(_layer: nn.Module, arguments: Any, options: Any, into: LayerRecord = record_) -> None:
            recorder.calls.clear()
            into.arguments, into.options = tuple(arguments), dict(options)

        def after(_layer: nn.Module, _arguments: Any, _options: Any, output: Any, into: LayerRecord = record_) -> None:
            into.calls = list(recorder.calls)
            into.output = output if isinstance(output, torch.Tensor) else None

        handles.append(layer.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(layer.register_forward_hook(after, with_kwargs=True))
    try:
        return records, run(module, recorder)
    finally:
        for handle in handles:
            handle.remove()


def run(module: nn.Module, recorder: Recorder) -> torch.Tensor:
    """Return the logits [1, T, V] of a few tokens, attention answered by the recorder."""
    embedding: Any = module.get_input_embeddings()  # type: ignore[operator]
    count = int(embedding.num_embeddings)
    device = next(module.parameters()).device
    ids = torch.tensor([[(number * 7919 + 11) % count for number in range(_TOKENS)]], device=device)
    positions = torch.arange(_TOKENS, device=device)[None]
    attention_hook.attach(module, recorder)
    try:
        logits: torch.Tensor = module(input_ids=ids, position_ids=positions, use_cache=False).logits
        return logits
    finally:
        attention_hook.attach(module, None)


def is_close(found: object, expected: torch.Tensor, base: torch.Tensor | None = None) -> bool:
    """Return whether two results differ by rounding alone, row by row.

    The difference beyond one rounding of each value must stay below a share of the row's own size. Layers of real
    models, both right, differed by 2 % in bfloat16 and 1e-6 in float32; a wrong norm or rotation by tens of percent.

    Args:
        found: [..., E], what is judged.
        expected: [..., E].
        base: [..., E], what a layer added its result to: the size of a row is then that of what was added.
    """
    if not isinstance(found, torch.Tensor) or found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    wide = expected.float()
    beyond = (found.float() - wide).abs() - torch.finfo(expected.dtype).eps * wide.abs()
    size = _root_mean_square(wide if base is None else wide - base.float())
    return bool((_root_mean_square(beyond.clamp(min=0)) <= _SHARES.get(expected.dtype, 2e-5) * size + 1e-30).all())


def _root_mean_square(rows: torch.Tensor) -> torch.Tensor:
    return rows.square().mean(-1).sqrt()
