"""What one step computes, as tensors: tokens of several sequences in one flat row, and where their KV goes.

Knows blocks and positions, no model. Letters: T tokens of the step, R rows whose logits are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch


@dataclass(frozen=True, slots=True)
class RowInput:
    """What one sequence computes in a step.

    Attributes:
        token_ids: the tokens to compute, in order.
        past: how many tokens before them are already in the blocks.
        blocks: the sequence's block table; covers past and token_ids.
        wants_logits: whether logits are wanted.
        last_logits: of how many of the last tokens they are wanted then.
    """

    token_ids: Sequence[int]
    past: int
    blocks: Sequence[int]
    wants_logits: bool = True
    last_logits: int = 1


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A sequence's place in the flat row: tokens begin to begin + count; past tokens are already in the blocks."""

    begin: int
    count: int
    past: int
    blocks: tuple[int, ...]

    @property
    def total(self) -> int:
        """How many tokens the last of the row's tokens may look at, itself included."""
        return self.past + self.count


class StepLayout:
    """The tensors of one step.

    Attributes:
        token_ids: [1, T] int64.
        positions: [1, T] int64, each token's place in its own sequence.
        slots: [T] int64, block * block_tokens + offset: where a token's KV is written.
        rows: one a sequence, in the order given.
        logits_index: [R] int64, the flat places whose logits are wanted.
        block_tokens: tokens a block.
        calls: how often attention was asked for so far.
        plans: what attention worked out once for this step, by its own keys; serves all layers.
    """

    __slots__ = (
        "block_tokens",
        "calls",
        "device",
        "logits_index",
        "plans",
        "positions",
        "rows",
        "slots",
        "token_ids",
    )

    def __init__(
        self, flat: torch.Tensor, rows: tuple[LayoutRow, ...], logits_index: torch.Tensor, block_tokens: int
    ) -> None:
        self.token_ids = flat[0:1]
        self.positions = flat[1:2]
        self.slots = flat[2]
        self.rows = rows
        self.logits_index = logits_index
        self.block_tokens = block_tokens
        self.device = flat.device
        self.calls = 0
        self.plans: dict[Any, Any] = {}

    @classmethod
    def build(
        cls,
        rows: Sequence[RowInput],
        block_tokens: int,
        device: torch.device | str = "cpu",
        *,
        padded_tokens: int = 0,
        trash_block: int = 0,
    ) -> Self:
        """Lay the rows out one behind the other.

        Args:
            rows: what each sequence computes; a row has at least one token.
            block_tokens: tokens a block.
            device: where the tensors go.
            padded_tokens: T at least; what is missing is filled with token 0 at position 0.
            trash_block: the block that takes the KV of such tokens; the pool never hands it out.

        Raises:
            ValueError: a row is empty or shorter than its wanted logits, or its blocks do not cover it.
        """
        tokens: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        wanted: list[int] = []
        laid: list[LayoutRow] = []
        for row in rows:
            count, past, blocks = len(row.token_ids), row.past, row.blocks
            if not 1 <= row.last_logits <= count or past < 0 or len(blocks) * block_tokens < past + count:
                raise ValueError(f"{count} tokens after {past} do not fit {len(blocks)} blocks of {block_tokens}")
            laid.append(LayoutRow(len(tokens), count, past, tuple(blocks)))
            tokens += row.token_ids
            places = range(past, past + count)
            positions += places
            slots += [blocks[place // block_tokens] * block_tokens + place % block_tokens for place in places]
            if row.wants_logits:
                wanted += range(len(tokens) - row.last_logits, len(tokens))
        missing = max(0, padded_tokens - len(tokens))
        flat = torch.tensor(
            [tokens + [0] * missing, positions + [0] * missing, slots + [trash_block * block_tokens] * missing],
            dtype=torch.int64,
        )
        index = torch.tensor(wanted, dtype=torch.int64)
        return cls(flat.to(device), tuple(laid), index.to(device), block_tokens)


def runs(blocks: Sequence[int], first: int, last: int, block_tokens: int) -> list[tuple[int, int]]:
    """Return where a sequence's tokens first to last (excluded) lie: (slot, length) of each stretch of neighbours.

    Consecutive blocks make one stretch, so a sequence with a well-kept table has one.
    """
    found: list[tuple[int, int]] = []
    place = first
    while place < last:
        index = place // block_tokens
        slot = blocks[index] * block_tokens + place % block_tokens
        end = min(last, (index + 1) * block_tokens)
        while end < last and blocks[index + 1] == blocks[index] + 1:
            index += 1
            end = min(last, (index + 1) * block_tokens)
        found.append((slot, end - place))
        place = end
    return found
