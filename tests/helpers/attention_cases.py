"""Random sequences in scattered, spaced or shared blocks, and what attention over them must come to, written out."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from backends.torch_engine.attention import AttentionContext
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import RowInput, StepLayout

BLOCK_TOKENS = 4
BLOCKS = 80
PLAN = LayerPlan(0, 6, 2, 8, 8)
PLANS = {
    "grouped": PLAN,
    "one KV head": replace(PLAN, kv_heads=1),
    "as many": replace(PLAN, kv_heads=6),
    "window": replace(PLAN, window=7),
    "chunk": replace(PLAN, chunk=8),
    "cap": replace(PLAN, softcap=2.0),
    "sinks": replace(PLAN, has_sinks=True),
    "sinks and window": replace(PLAN, has_sinks=True, window=7),
    "two sizes": replace(PLAN, k_size=12),
    "cap and sinks": replace(PLAN, softcap=2.0, has_sinks=True, window=9),
}
# Block tables of three sequences of up to 40 tokens.
TABLES = {
    "neighbours": [list(range(0, 10)), list(range(12, 22)), list(range(24, 34))],
    "scattered": [
        [3, 70, 1, 9, 5, 60, 50, 40, 30, 20],
        [2, 4, 6, 0, 9 + 2, 71, 61, 51, 41, 31],
        list(range(79, 69, -1)),
    ],
    "stretches": [[0, 1, 2, 10, 11, 12, 13, 14, 15, 16], [20, 21, 30, 31, 32, 33, 34, 35, 36, 37], list(range(50, 60))],
}
TABLES["scattered"][2] = [79, 78, 77, 76, 75, 74, 73, 72, 69, 68]
# How many tokens each sequence gets in each step: chunks, single tokens and both at once.
STEPS = ((9, 0, 4), (1, 17, 1), (1, 1, 1), (11, 1, 0), (1, 1, 1), (1, 1, 1), (0, 3, 1))


class Case:
    """Sequences whose queries, keys and values are drawn once and fed to attention step by step.

    Attributes:
        cache: where keys and values go.
        context: what answers.
    """

    def __init__(
        self, plan: LayerPlan, tables: list[list[int]], dtype: torch.dtype = torch.float32, device: str = "cpu"
    ):
        generator = torch.Generator().manual_seed(5)
        tokens = len(tables[0]) * BLOCK_TOKENS

        def drawn(heads: int, size: int) -> list[torch.Tensor]:
            return [torch.randn(heads, tokens, size, generator=generator).to(device, dtype) for _ in tables]

        self._plan, self._tables = plan, tables
        self._queries = drawn(plan.query_heads, plan.k_size)
        self._keys = drawn(plan.kv_heads, plan.k_size)
        self._values = drawn(plan.kv_heads, plan.v_size)
        self._sinks = torch.randn(plan.query_heads, generator=generator).to(device, dtype) if plan.has_sinks else None
        self.scaling = 0.4
        self.cache = KvCache([plan], BLOCKS, BLOCK_TOKENS, dtype, device)
        self.context = AttentionContext(self.cache)
        self._past = [0] * len(tables)

    def fill(self, value: float) -> None:
        """Set every slot of the pools."""
        for pool in (*self.cache.keys, *self.cache.values):
            pool.fill_(value)

    def step(self, counts: tuple[int, ...], padded_tokens: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute so many tokens of each sequence; return what came out and what should, [T, H, Dv] each."""
        rows, spans = [], []
        for number, count in enumerate(counts):
            if count:
                begin, end = self._past[number], self._past[number] + count
                rows.append(RowInput([1] * count, begin, self._tables[number]))
                spans.append((number, begin, end))
                self._past[number] = end
        cache = self.cache
        self.context.step = step = StepLayout.build(
            rows, BLOCK_TOKENS, cache.device, padded_tokens=padded_tokens, trash_block=cache.trash_block
        )
        missing = step.token_ids.shape[1] - sum(end - begin for _, begin, end in spans)

        def flat(parts: list[torch.Tensor]) -> torch.Tensor:
            picked = [parts[number][:, begin:end] for number, begin, end in spans]
            padding = torch.full_like(parts[0][:, :1], math.nan).expand(-1, missing, -1)
            return torch.cat([*picked, padding], 1)[None]

        got = self.context.attend(
            0, flat(self._queries), flat(self._keys), flat(self._values), self.scaling, self._sinks
        )
        right = torch.cat([self._written_out(*span) for span in spans])
        return got[0], right

    def _written_out(self, number: int, begin: int, end: int) -> torch.Tensor:
        plan = self._plan
        groups = plan.query_heads // plan.kv_heads
        answers = []
        for place in range(begin, end):
            seen = [
                other
                for other in range(place + 1)
                if (not plan.window or other > place - plan.window)
                and (not plan.chunk or other // plan.chunk == place // plan.chunk)
            ]
            key = self._keys[number][:, seen].double().repeat_interleave(groups, 0)
            value = self._values[number][:, seen].double().repeat_interleave(groups, 0)
            scores = (key @ self._queries[number][:, place].double()[:, :, None])[..., 0] * self.scaling
            if plan.softcap:
                scores = plan.softcap * torch.tanh(scores / plan.softcap)
            if self._sinks is not None:
                scores = torch.cat([scores, self._sinks.double()[:, None]], 1)
            shares = scores.softmax(1)[:, : len(seen)]
            answers.append((shares[:, :, None] * value).sum(1))
        return torch.stack(answers)
