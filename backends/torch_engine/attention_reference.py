"""Attention over gathered blocks: the plain path that every other one is compared with, right on every device.

Keys and values of a row are copied out of their blocks into one stretch; what lies beyond a row's tokens is set to
zero, so that nothing a block held before, not even NaN, can reach a result. Letters: B rows at once, T query tokens,
N visible tokens, H heads, K KV heads, G heads a KV head, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import LayoutRow, StepLayout, runs

# The scores of a block of queries written out; bounds what one long chunk takes beside the cache.
_SCORE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class DenseGroup:
    """Rows that are attended to together, padded to the longest.

    Attributes:
        tokens: [B * T] int64, their places in the flat row; None where these are all of it in order.
        slots: [B * N] int64, where their visible tokens lie.
        mask: [B, 1, T, N] bool, true where a query sees a token; None where all is seen.
        padding: [B, 1, N, 1] bool, true where no token is; None where there is none.
        rows: B.
        stretch: (slot, N) of a lone row whose tokens are neighbours, where it may be read without a copy.
    """

    tokens: torch.Tensor | None
    slots: torch.Tensor
    mask: torch.Tensor | None
    padding: torch.Tensor | None
    rows: int
    stretch: tuple[int, int] | None = None


def attend(
    cache: KvCache, plan: LayerPlan, step: StepLayout, query: torch.Tensor, scaling: float, sinks: torch.Tensor | None
) -> torch.Tensor:
    """Return [1, T, H, Dv] for the flat query [1, H, T, D]; tokens of no row get zeros."""
    return attend_groups(cache, plan, dense_groups(step, plan), query, scaling, sinks)


def attend_groups(
    cache: KvCache,
    plan: LayerPlan,
    groups: list[DenseGroup],
    query: torch.Tensor,
    scaling: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return [1, T, H, Dv] with the given groups filled in and zeros elsewhere."""
    flat = query[0].transpose(0, 1)  # [T, H, D]
    out = query.new_zeros((flat.shape[0], plan.query_heads, plan.v_size))
    for group in groups:
        picked = flat if group.tokens is None else flat.index_select(0, group.tokens)
        asked = picked.view(group.rows, -1, *picked.shape[1:]).transpose(1, 2)  # [B, H, T, D]
        key, value = gathered(cache, plan, group)
        answer = dense_attention(asked.to(key.dtype), key, value, group.mask, plan, scaling, sinks)
        answer = answer.transpose(1, 2).flatten(0, 1).to(out.dtype)  # [B * T, H, Dv]
        if group.tokens is None:
            return answer[None]
        out.index_copy_(0, group.tokens, answer)
    return out[None]


def gathered(cache: KvCache, plan: LayerPlan, group: DenseGroup) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a group's keys [B, K, N, D] and values [B, K, N, Dv], copied unless they are one stretch."""
    if group.stretch is not None:
        keys, values = (pool.narrow(1, *group.stretch)[None] for pool in _pools(cache, plan))
        return keys, values
    parts = []
    for pool in _pools(cache, plan):
        part = pool.index_select(1, group.slots).view(pool.shape[0], group.rows, -1, pool.shape[2]).transpose(0, 1)
        parts.append(part if group.padding is None else part.masked_fill(group.padding, 0))
    return parts[0], parts[1]


def _pools(cache: KvCache, plan: LayerPlan) -> tuple[torch.Tensor, torch.Tensor]:
    return cache.keys[plan.index], cache.values[plan.index]


def dense_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    plan: LayerPlan,
    scaling: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return [B, H, T, Dv] for query [B, H, T, D], key [B, K, N, D], value [B, K, N, Dv], mask [B, 1, T, N].

    Heads of one KV head are packed behind each other as queries, so that no key is repeated.
    """
    rows, heads, tokens, size = query.shape
    groups = heads // key.shape[1]
    packed = query.reshape(rows, key.shape[1], groups * tokens, size)
    seen = mask
    if mask is not None and tokens > 1 and groups > 1:
        seen = mask.repeat(1, 1, groups, 1)
    if plan.softcap or sinks is not None:
        each = None if sinks is None else sinks.view(1, key.shape[1], groups, 1).expand(-1, -1, -1, tokens).flatten(2)
        answer = written_out(packed, key, value, seen, scaling, plan.softcap, each)
    else:
        if query.device.type == "mps":  # WORKAROUND: pytorch #181133: wrong values for permuted inputs (seen in 2.10)
            packed, key, value = packed.contiguous(), key.contiguous(), value.contiguous()
        # Never is_causal: on MPS it let rows see later keys (pytorch #195910).
        answer = scaled_dot_product_attention(packed, key, value, attn_mask=seen, scale=scaling)
    return answer.reshape(rows, heads, tokens, -1)


def written_out(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return [B, K, M, Dv] by softmax in float32, a block of queries at a time.

    Args:
        query: [B, K, M, D].
        key: [B, K, N, D].
        value: [B, K, N, Dv].
        mask: [B, 1, M or 1, N] bool.
        scaling: factor on the scores.
        softcap: bound of the scores before the mask, softcap * tanh(scores / softcap); 0 is none.
        sinks: [1, K, M] one more score a query, whose share goes to no value.
    """
    queries = query.shape[2]
    at_once = max(1, _SCORE_BYTES // (4 * query.shape[0] * query.shape[1] * key.shape[2]))
    parts = []
    for begin in range(0, queries, at_once):
        piece = slice(begin, min(queries, begin + at_once))
        scores = torch.matmul(query[:, :, piece], key.transpose(2, 3)).float() * scaling
        if softcap:
            scores = torch.tanh(scores / softcap) * softcap
        if mask is not None:
            scores = scores.masked_fill(~(mask if mask.shape[2] == 1 else mask[:, :, piece]), float("-inf"))
        if sinks is not None:
            extra = sinks[:, :, piece, None].float().expand(scores.shape[0], -1, -1, -1)
            shares = torch.cat([scores, extra], -1).softmax(-1)[..., :-1]
        else:
            shares = scores.softmax(-1)
        parts.append(torch.matmul(shares.to(value.dtype), value))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def dense_groups(step: StepLayout, plan: LayerPlan) -> list[DenseGroup]:
    """Return the step's rows as groups, worked out once for all layers that see the same."""
    key: Any = ("dense", plan.window, plan.chunk)
    if key not in step.plans:
        single = [row for row in step.rows if row.count == 1]
        longer = [row for row in step.rows if row.count > 1]
        groups = [_group(step, [row], plan) for row in longer]
        if single:
            groups.append(_group(step, single, plan))
        step.plans[key] = groups
    groups_known: list[DenseGroup] = step.plans[key]
    return groups_known


def _group(step: StepLayout, rows: list[LayoutRow], plan: LayerPlan) -> DenseGroup:
    size, count, device = step.block_tokens, rows[0].count, step.device
    firsts = [plan.first_visible(row.past) for row in rows]
    lengths = [row.total - first for row, first in zip(rows, firsts, strict=True)]
    most = max(lengths)
    slots: list[int] = []
    tokens: list[int] = []
    for row, first, length in zip(rows, firsts, lengths, strict=True):
        own = [row.blocks[place // size] * size + place % size for place in range(first, row.total)]
        slots += own + own[-1:] * (most - length)  # any slot will do: it is masked and set to zero
        tokens += range(row.begin, row.begin + count)
    stretches = runs(rows[0].blocks, firsts[0], rows[0].total, size) if len(rows) == 1 else []
    is_all = tokens == list(range(step.token_ids.shape[1]))
    is_ragged = min(lengths) < most
    bounds = torch.tensor([firsts, [row.past for row in rows], lengths], device=device)  # [3, B]
    offsets = torch.arange(most, device=device)
    inside = offsets[None] < bounds[2][:, None]  # [B, N]
    mask = None
    if is_ragged or count > 1:
        keys = bounds[0][:, None] + offsets[None]  # [B, N] positions
        queries = bounds[1][:, None] + torch.arange(count, device=device)[None]  # [B, T]
        mask = (sees(queries[:, :, None], keys[:, None], plan) & inside[:, None])[:, None]
    return DenseGroup(
        None if is_all else torch.tensor(tokens, device=device),
        torch.tensor(slots, device=device),
        mask,
        ~inside[:, None, :, None] if is_ragged else None,
        len(rows),
        # On CUDA views were not always read right (pytorch #112577).
        stretches[0] if device.type == "cpu" and len(stretches) == 1 else None,
    )


def sees(queries: torch.Tensor, keys: torch.Tensor, plan: LayerPlan) -> torch.Tensor:
    """Return whether the token at position queries may look at the one at keys, broadcast."""
    seen = keys <= queries
    if plan.window:
        seen = seen & (keys > queries - plan.window)
    if plan.chunk:
        seen = seen & (
            torch.div(keys, plan.chunk, rounding_mode="floor") == torch.div(queries, plan.chunk, rounding_mode="floor")
        )
    return seen
