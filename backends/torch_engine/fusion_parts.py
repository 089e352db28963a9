"""Fusion inside layers of any kind: matrices with the same input merged, norms and matrices put into quick forms.

The layer's own forward stays; only what it calls is exchanged, under the names that it calls it by. For layers that are
not of the Llama kind (fusion_layer.py): norms elsewhere, experts, attention with parts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import nn

from backends.torch_engine.fusion_linear import MergedFirst, MergedPart, can_merge, can_pack, is_linear, merge
from backends.torch_engine.fusion_norm import FusedNormModule, fused_norm

# What reads the same input in every model that uses these names; a model where it is not so is right, too, and slow.
_MERGED_NAMES = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


def fuse_parts(layer: nn.Module) -> Callable[[], None]:
    """Exchange a layer's parts for quicker ones; returns what puts them back."""
    changed: list[tuple[nn.Module, str, nn.Module]] = []

    def put(owner: nn.Module, name: str, module: nn.Module) -> None:
        original = owner._modules[name]
        assert original is not None
        changed.append((owner, name, original))
        owner._modules[name] = module

    def undo() -> None:
        for owner, name, original in reversed(changed):
            owner._modules[name] = original

    for owner in list(layer.modules()):
        for names in _MERGED_NAMES:
            linears = [owner._modules.get(name) for name in names]
            if can_merge(linears):
                first = MergedFirst([linear for linear in linears if isinstance(linear, nn.Linear)])
                put(owner, names[0], first)
                for number, name in enumerate(names[1:], start=1):
                    put(owner, name, MergedPart(first, number))
    for owner, name, module in list(_places(layer)):
        if isinstance(module, nn.Linear):
            if is_linear(module) and can_pack(module.weight.dtype, module.weight.device):
                put(owner, name, merge([module]))
        elif (norm := fused_norm(module)) is not None:
            put(owner, name, FusedNormModule(norm, module.weight))  # type: ignore[arg-type]
    return undo


def _places(layer: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """Yield every module below a layer with its owner and its name there."""
    for owner in layer.modules():
        for name, module in owner._modules.items():
            if module is not None:
                yield owner, name, module
