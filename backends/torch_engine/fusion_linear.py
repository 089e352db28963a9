"""Linear layers for decoding: several that read the same input as one, in the layout that the processor reads fastest.

On a CPU a decode step is bound by reading the weights, and torch reads a plain bfloat16 matrix at about two thirds of
the speed at which oneDNN reads one that was rearranged once (measured with SmolLM2-135M: 12.0 to 8.0 ms a token for all
its matrices; the output matrix alone 3.0 to 0.7 ms). Rearranging needs no compiler. The plain weight is given up: no
second copy stays. Letters: T tokens, I input features, O output features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

# What oneDNN is told of the rows to come when it chooses a layout; every count of rows is right and quick with it.
_EXPECTED_ROWS = 1


def can_pack(dtype: torch.dtype, device: torch.device) -> bool:
    """Return whether weights of this kind gain by being rearranged here: bfloat16 on a CPU that computes in it.

    float32 does not gain (torch hands it to a BLAS that reads it well); float16 is seldom computed on CPUs at all.
    """
    if device.type != "cpu" or dtype is not torch.bfloat16 or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class MergedLinear(nn.Module):
    """x [..., T, I] to [..., T, O] by one plain matrix.

    Attributes:
        weight: [O, I].
        bias: [O] or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    @property
    def weight_bytes(self) -> int:
        """What the matrix takes."""
        return self.weight.numel() * self.weight.element_size()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.T + bias."""
        return nn.functional.linear(x, self.weight, self.bias)


class PackedLinear(nn.Module):
    """x [..., T, I] to [..., T, O] by a matrix in oneDNN's own layout.

    Attributes:
        packed: the matrix, opaque to torch; no parameter, so it is neither moved nor saved with the model.
        bias: [O] or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.packed: torch.Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _EXPECTED_ROWS)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self._run: Any = torch.ops.mkldnn._linear_pointwise.default

    @property
    def weight_bytes(self) -> int:
        """What the matrix takes in its layout."""
        return int(torch.ops.mkldnn._nbytes(self.packed))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.T + bias."""
        y: torch.Tensor = self._run(x, self.packed, self.bias, "none", [], "")
        return y


def is_linear(module: object) -> bool:
    """Return whether this is torch's own linear layer and nothing that was made of it: no adapter, no quantization."""
    return (
        type(module) is nn.Linear
        and not module._forward_hooks
        and not module._forward_pre_hooks
        and type(module.weight) is nn.Parameter
    )


def can_merge(linears: Sequence[object]) -> bool:
    """Return whether these linear layers may become one: torch's own, equal inputs, types and devices, bias or none."""
    if not all(is_linear(linear) for linear in linears):
        return False
    kinds = {
        (linear.in_features, linear.weight.dtype, linear.weight.device, linear.bias is None)
        for linear in linears
        if isinstance(linear, nn.Linear)
    }
    return len(kinds) == 1


@torch.inference_mode(mode=False)
@torch.no_grad()
def merge(linears: Sequence[nn.Linear]) -> MergedLinear | PackedLinear:
    """Return one layer whose output is the outputs of these, one behind the other; see can_merge."""
    first = linears[0]
    weight = first.weight.detach() if len(linears) == 1 else torch.cat([linear.weight.detach() for linear in linears])
    biases = [linear.bias.detach() for linear in linears if linear.bias is not None]
    bias = torch.cat(biases) if biases else None
    kind = PackedLinear if can_pack(weight.dtype, weight.device) else MergedLinear
    return kind(weight, bias)


class MergedFirst(nn.Module):
    """The first of several layers that were merged, for a caller that knows nothing of it; the others are its parts.

    A part that is asked with another input than the first one was computes that input anew: slow, never wrong.
    """

    def __init__(self, linears: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.merged = merge(linears)
        self._sizes = [linear.out_features for linear in linears]
        self._seen: torch.Tensor | None = None
        self._parts: list[torch.Tensor | None] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first layer's output and keep the others' until they are asked for."""
        return self.take(x, 0)

    def take(self, x: torch.Tensor, number: int) -> torch.Tensor:
        """Return one layer's output [..., T, O of it] and forget it."""
        part = self._parts[number] if self._seen is x else None
        if part is None:
            self._seen = x
            self._parts = list(self.merged(x).split(self._sizes, -1))
            part = self._parts[number]
            assert part is not None
        self._parts[number] = None
        if not any(kept is not None for kept in self._parts):
            self._seen, self._parts = None, []
        return part


class MergedPart(nn.Module):
    """One of the layers that MergedFirst computed along with the first."""

    def __init__(self, first: MergedFirst, number: int) -> None:
        super().__init__()
        self.__dict__["_first"] = first  # it has its place in the model already
        self._number = number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return this layer's output."""
        first: MergedFirst = self.__dict__["_first"]
        return first.take(x, self._number)
