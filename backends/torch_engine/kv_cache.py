"""The keys and values of all sequences: one pool of blocks a layer, all layers addressed by the same block numbers.

Where the memory lies is this file's own affair. On the CPU a head's tokens are neighbours, so that a stretch of
consecutive blocks is attended to as a view; on a GPU a token's heads are, as kernels over blocks want it. Letters: K
KV heads, S slots, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from backends.torch_engine.layer_plan import LayerPlan


class KvCache:
    """Room for a number of blocks, and one more: the trash block, which takes the KV of padding.

    Attributes:
        plans: the layers, in order.
        blocks: how many the pool may hand out: 0 to blocks - 1.
        block_tokens: tokens a block.
        trash_block: the number of the one that belongs to nobody.
        keys: [K, S, D] a layer, a view; a layer that reads another's has that one's.
        values: [K, S, Dv] a layer, likewise.
    """

    def __init__(
        self,
        plans: Sequence[LayerPlan],
        blocks: int,
        block_tokens: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> None:
        self.plans = tuple(plans)
        self.blocks = blocks
        self.block_tokens = block_tokens
        self.trash_block = blocks
        self.dtype = dtype
        self.device = torch.device(device)
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        for number, plan in enumerate(self.plans):
            if plan.index != number or plan.shares_with >= number:
                raise ValueError(f"layer {plan.index} stands at place {number} and reads layer {plan.shares_with}")
            if plan.shares_with >= 0:
                self.keys.append(self.keys[plan.shares_with])
                self.values.append(self.values[plan.shares_with])
            else:
                self.keys.append(self._pool(plan.kv_heads, plan.k_size))
                self.values.append(self._pool(plan.kv_heads, plan.v_size))

    @property
    def slots(self) -> int:
        """How many tokens fit, the trash block included."""
        return (self.blocks + 1) * self.block_tokens

    @property
    def bytes_per_token(self) -> int:
        """What one token takes over all layers."""
        return bytes_per_token(self.plans, self.dtype)

    @property
    def bytes_total(self) -> int:
        """What the pools take, the trash block included."""
        return self.bytes_per_token * self.slots

    def write(self, layer: int, key: torch.Tensor, value: torch.Tensor, slots: torch.Tensor) -> None:
        """Store the step's keys [1, K, T, D] and values [1, K, T, Dv] at slots [T]."""
        self.keys[layer].index_copy_(1, slots, key[0].to(self.dtype))
        self.values[layer].index_copy_(1, slots, value[0].to(self.dtype))

    def copy_blocks(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Copy whole blocks, (source, target) each; all sources are read before a target is written."""
        if not pairs:
            return
        index = torch.tensor(pairs, dtype=torch.int64, device=self.device)  # [P, 2]
        offsets = torch.arange(self.block_tokens, device=self.device)
        sources = (index[:, 0, None] * self.block_tokens + offsets).flatten()
        targets = (index[:, 1, None] * self.block_tokens + offsets).flatten()
        for plan in self.plans:
            if plan.shares_with < 0:
                for pool in (self.keys[plan.index], self.values[plan.index]):
                    pool.index_copy_(1, targets, pool.index_select(1, sources))

    def _pool(self, heads: int, size: int) -> torch.Tensor:
        if self.device.type == "cuda":
            return torch.zeros((self.slots, heads, size), dtype=self.dtype, device=self.device).transpose(0, 1)
        return torch.zeros((heads, self.slots, size), dtype=self.dtype, device=self.device)


def bytes_per_token(plans: Sequence[LayerPlan], dtype: torch.dtype) -> int:
    """Return what one token takes over all layers, before anything is allocated."""
    return sum(plan.values_per_token for plan in plans) * dtype.itemsize
