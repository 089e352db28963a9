"""The one attention function that transformers' models call instead of their own.

It is registered under a name of ours and finds the step through a plain attribute of the attention module, since some
models do not pass keyword arguments on. No mask function is registered: a name without one gets no mask, at no cost.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from transformers import AttentionInterface

# Contains none of the words that transformers looks for in such names: sdpa, flash, flex_attention, paged.
NAME = "cutaway_blocks"
_ATTRIBUTE = "cutaway_attention"


class AttentionCall(NamedTuple):
    """What a layer asks for, shapes for one flat row of T tokens.

    Attributes:
        query: [1, H, T, D], rotated.
        key: [1, K, T, D], rotated.
        value: [1, K, T, Dv].
        scaling: factor on the scores; None is D ** -0.5.
        window: tokens a token may see, itself included; None or 0 is all.
        softcap: bound of the scores, as in Gemma 2; None is none.
        sinks: [H] extra scores in the softmax that belong to no token, as in gpt-oss.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    scaling: float | None = None
    window: int | None = None
    softcap: float | None = None
    sinks: torch.Tensor | None = None


class Answerer(Protocol):
    """Who computes attention for the modules it is attached to."""

    def answer(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        """Return [1, T, H, Dv]."""


def attach(model: torch.nn.Module, answerer: Answerer | None) -> None:
    """Let this one answer the calls of the model's attention modules; None lets nobody."""
    for module in model.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            module.__dict__[_ATTRIBUTE] = answerer


def register() -> None:
    """Make the name known to transformers; may be called again."""
    AttentionInterface.register(NAME, _attention)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    scaling: float | None = None,
    **rest: Any,
) -> tuple[torch.Tensor, None]:
    """Answer a layer's call; the mask is always None under a name without a mask function."""
    answerer: Answerer | None = module.__dict__.get(_ATTRIBUTE)
    if answerer is None:
        raise RuntimeError(f"nobody answers the attention of {type(module).__name__}")
    if attention_mask is not None:
        raise RuntimeError(f"{type(module).__name__} brings a mask of its own")
    call = AttentionCall(query, key, value, scaling, rest.get("sliding_window"), rest.get("softcap"), rest.get("s_aux"))
    return answerer.answer(module, call), None
