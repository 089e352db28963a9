"""Rotary frequencies that depend on the text's length, fixed for the longest text that a load allows.

transformers picks the frequencies of longrope and dynamic scaling anew for every forward, by the largest position in
it. In a step of several sequences that would let one chat's length turn another's keys, and a text that grows past the
limit would mix keys of two kinds. So they are chosen once, for the longest text. A short text in a long context is then
computed with the long frequencies, as in one full forward of the longest text.
"""

from __future__ import annotations

from typing import Any

import torch

# transformers looks for "dynamic" in the type and for "longrope"; anything else leaves the frequencies alone.
_FIXED = "default"


def fix_rope(model: torch.nn.Module, context_tokens: int) -> int:
    """Let no forward of this model change its rotary frequencies; return how many modules that concerned.

    Args:
        model: in evaluation mode; its frequencies are those of texts of context_tokens afterwards.
        context_tokens: the longest text that will be computed.
    """
    fixed = 0
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        if isinstance(kinds, str) and _depends_on_length(kinds):
            _settle(module, context_tokens, None)
            module.rope_type = _FIXED  # type: ignore[assignment]
            fixed += 1
        elif isinstance(kinds, dict) and any(map(_depends_on_length, kinds.values())):
            changed = {name for name, kind in kinds.items() if _depends_on_length(kind)}
            for name in changed:
                _settle(module, context_tokens, name)
            module.rope_type = {name: _FIXED if name in changed else kind for name, kind in kinds.items()}  # type: ignore[assignment]
            fixed += 1
    return fixed


def _depends_on_length(kind: Any) -> bool:
    return isinstance(kind, str) and ("dynamic" in kind or kind == "longrope")


def _settle(module: torch.nn.Module, context_tokens: int, layer_type: str | None) -> None:
    """Run the module's own choice once, for the last position of the longest text."""
    frequencies = getattr(module, "inv_freq" if layer_type is None else f"{layer_type}_inv_freq")
    last = torch.tensor([[max(0, context_tokens - 1)]], device=frequencies.device)
    hidden = torch.zeros((1, 1, 1), device=frequencies.device)
    with torch.inference_mode(False), torch.no_grad():
        module(hidden, last, *([] if layer_type is None else [layer_type]))
