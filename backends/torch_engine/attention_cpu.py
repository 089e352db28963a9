"""Attention on the CPU over blocks where they lie: no step copies the cache.

Decode reads stretches as strided views, arranged once a step for all layers (attention_pieces.py); a chunk of a prompt
is attended to over a view of its row. Where a view also covers slots of others, those are masked; a result that is not
finite all the same, since NaN times nothing is NaN, is worked out again by the plain path. Letters: T tokens of the
step, P pieces, H heads, K KV heads, G heads a KV head, D head size, N slots read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from backends.torch_engine import attention_reference
from backends.torch_engine.attention_pieces import Call, Copied, plan_decode
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import LayerPlan
from backends.torch_engine.step_layout import LayoutRow, StepLayout, runs

# Returns the log-sum-exp too; there since torch 2.1, and what scaled_dot_product_attention calls on the CPU.
_flash: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


@dataclass(frozen=True, slots=True)
class _Reading:
    """A call of the decode plan with its tensors.

    Attributes:
        call: what is read in place; None where it is copied.
        copied: [P * N] int64, the slots to copy; None where nothing is.
        tokens: [P] int64, the flat places of the queries; None where these are all tokens in order.
        mask: [P, 1, 1, N] float32, -inf where a slot does not count; None where all do.
    """

    call: Call | None
    copied: torch.Tensor | None
    tokens: torch.Tensor | None
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class _Merge:
    """How the readings' answers, one behind the other, become rows: parts [R, M] int64, -1 for none as entry P."""

    parts: torch.Tensor
    has_gaps: bool


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A row of several tokens: its stretches, and what each token sees; mask None is plainly causal."""

    row: LayoutRow
    stretches: tuple[tuple[int, int], ...]
    mask: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class _Work:
    """A step as layers of one kind see it; is_whole where one reading answers all tokens in order."""

    readings: tuple[_Reading, ...]
    merge: _Merge | None
    decode_tokens: torch.Tensor
    chunks: tuple[_Chunk, ...]
    is_whole: bool


def can_attend(plan: LayerPlan) -> bool:
    """Whether this path can do what a layer needs: no cap on scores, keys and values of one size."""
    return not plan.softcap and plan.k_size == plan.v_size


def attend(
    cache: KvCache, plan: LayerPlan, step: StepLayout, query: torch.Tensor, scaling: float, sinks: torch.Tensor | None
) -> torch.Tensor:
    """Return [1, T, H, D] for the flat query [1, H, T, D]; tokens of no row get zeros."""
    work = _work(step, plan, cache.slots)
    flat = query[0].transpose(0, 1)  # [T, H, D]
    if flat.dtype != cache.dtype:
        flat = flat.to(cache.dtype)
    decoded = _decode(cache, plan, work, flat, scaling, sinks) if work.readings else None
    if work.readings and decoded is None:
        return attention_reference.attend(cache, plan, step, query, scaling, sinks)
    if work.is_whole and decoded is not None:
        return decoded[None] if decoded.dtype == query.dtype else decoded[None].to(query.dtype)
    out = query.new_zeros((flat.shape[0], plan.query_heads, plan.v_size))
    if decoded is not None:
        out.index_copy_(0, work.decode_tokens, decoded.to(out.dtype))
    for chunk in work.chunks:
        own = slice(chunk.row.begin, chunk.row.begin + chunk.row.count)
        out[own] = _attend_chunk(cache, plan, chunk, flat[own], scaling, sinks)
    return out[None]


def _decode(
    cache: KvCache, plan: LayerPlan, work: _Work, flat: torch.Tensor, scaling: float, sinks: torch.Tensor | None
) -> torch.Tensor | None:
    """Return [R, H, D] for the rows that decode, None if something that is not finite was read."""
    answers: list[torch.Tensor] = []
    sums: list[torch.Tensor] = []
    for reading in work.readings:
        picked = flat if reading.tokens is None else flat.index_select(0, reading.tokens)  # [P, H, D]
        asked = picked.reshape(picked.shape[0], plan.kv_heads, -1, plan.k_size)  # [P, K, G, D]
        call = reading.call
        shares = call is not None and call.stride == 0 and len(call.rows) > 1
        if shares:  # one stretch for all: its rows are more queries
            asked = asked.transpose(0, 1).flatten(1, 2)[None]  # [1, K, P * G, D]
        key = _read(cache.keys[plan.index], reading)
        value = _read(cache.values[plan.index], reading)
        answer, log_sum = _flash(asked, key, value, attn_mask=reading.mask, scale=scaling)
        if reading.mask is not None and not math.isfinite(answer.sum(dtype=torch.float32)):
            return None
        if shares:
            shape = (plan.kv_heads, picked.shape[0], -1)
            answer = answer[0].reshape(*shape, plan.k_size).transpose(0, 1)
            log_sum = log_sum[0].reshape(shape).transpose(0, 1)
        answers.append(answer.reshape(picked.shape))
        sums.append(log_sum)
    if work.merge is None and sinks is None:
        return answers[0]
    return _merged(answers, [part.reshape(part.shape[0], -1) for part in sums], work.merge, sinks)


def _read(pool: torch.Tensor, reading: _Reading) -> torch.Tensor:
    """Return [P, K, N, D] of a pool [K, S, D]: a view, or a copy where that is planned."""
    call = reading.call
    if call is not None:
        return _strided(pool, call)
    assert reading.copied is not None
    assert reading.tokens is not None
    copied = pool.index_select(1, reading.copied)  # [K, P * N, D]
    return copied.view(pool.shape[0], len(reading.tokens), -1, pool.shape[2]).transpose(0, 1)


def _strided(pool: torch.Tensor, call: Call) -> torch.Tensor:
    """Return a view [P, K, N, D] of a pool [K, S, D]; [1, K, N, D] where all rows share the stretch."""
    heads, _, size = pool.shape
    of_head, of_slot, of_value = pool.stride()
    count = len(call.rows) if call.stride else 1
    return pool.as_strided(
        (count, heads, call.width, size),
        (call.stride * of_slot, of_head, of_slot, of_value),
        pool.storage_offset() + call.slot * of_slot,
    )


def _merged(
    answers: list[torch.Tensor], sums: list[torch.Tensor], merge: _Merge | None, sinks: torch.Tensor | None
) -> torch.Tensor:
    """Return [R, H, D]: the pieces' answers weighted by their shares of the softmax, sinks counted in."""
    answer = answers[0] if len(answers) == 1 else torch.cat(answers)  # [P, H, D]
    log_sum = sums[0] if len(sums) == 1 else torch.cat(sums)  # [P, H]
    if merge is None:
        weighed, log_sums = answer[:, None], log_sum[:, None]
    elif merge.parts.shape[1] == 1 and sinks is None:
        return answer.index_select(0, merge.parts[:, 0])
    else:
        if merge.has_gaps:
            answer = torch.cat([answer, answer.new_zeros((1, *answer.shape[1:]))])
            log_sum = torch.cat([log_sum, log_sum.new_full((1, log_sum.shape[1]), -math.inf)])
        weighed, log_sums = answer[merge.parts], log_sum[merge.parts]  # [R, M, H, D], [R, M, H]
    parts = log_sums.shape[1]
    if sinks is not None:
        log_sums = torch.cat([log_sums, sinks.float().expand(log_sums.shape[0], 1, -1)], 1)
    shares = log_sums.softmax(1)[:, :parts]
    return (weighed * shares[..., None]).sum(1).to(answer.dtype)


def _attend_chunk(
    cache: KvCache,
    plan: LayerPlan,
    chunk: _Chunk,
    flat: torch.Tensor,
    scaling: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """Return [T, H, D] for a row's queries [T, H, D]; heads of one KV head are a batch over the same keys."""
    parts = []
    for pool in (cache.keys[plan.index], cache.values[plan.index]):
        views = [pool[:, slot : slot + length] for slot, length in chunk.stretches]
        parts.append(views[0] if len(views) == 1 else torch.cat(views, 1))  # [K, N, D]
    groups = plan.query_heads // plan.kv_heads
    asked = flat.reshape(-1, plan.kv_heads, groups, plan.k_size).permute(2, 1, 0, 3)  # [G, K, T, D]
    key, value = (part.expand(groups, -1, -1, -1) for part in parts)
    answer, log_sum = _flash(asked, key, value, is_causal=chunk.mask is None, attn_mask=chunk.mask, scale=scaling)
    if sinks is not None:
        kept = torch.sigmoid(log_sum - sinks.float().view(plan.kv_heads, groups).T[:, :, None])  # [G, K, T]
        answer = answer * kept[..., None].to(answer.dtype)
    return answer.permute(2, 1, 0, 3).flatten(1, 2)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------- worked out once a step


def _work(step: StepLayout, plan: LayerPlan, slots: int) -> _Work:
    """Return the step as layers of this kind see it."""
    key = ("cpu", plan.window, plan.chunk, plan.kv_heads)
    if key not in step.plans:
        step.plans[key] = _arranged(step, plan, slots)
    work: _Work = step.plans[key]
    return work


def _arranged(step: StepLayout, plan: LayerPlan, slots: int) -> _Work:
    decoding = [row for row in step.rows if row.count == 1]
    chunks = tuple(_chunk(row, plan, step.block_tokens) for row in step.rows if row.count > 1)
    begins = [row.begin for row in decoding]
    is_all = begins == list(range(step.token_ids.shape[1]))
    readings: list[_Reading] = []
    entries: list[int] = []
    if decoding:
        arranged = plan_decode(
            decoding, plan, block_tokens=step.block_tokens, slots=slots, threads=torch.get_num_threads()
        )
        for call in arranged.calls:
            is_whole = is_all and call.rows == tuple(range(len(decoding)))
            tokens = None if is_whole else torch.tensor([begins[row] for row in call.rows])
            readings.append(_Reading(call, None, tokens, _length_mask(call.lengths)))
            entries += call.rows
        if arranged.copied:
            tokens = torch.tensor([begins[one.row] for one in arranged.copied])
            readings.append(_Reading(None, *_copied_slots(arranged.copied, tokens)))
            entries += [one.row for one in arranged.copied]
    merge = None if entries == list(range(len(decoding))) else _merge(entries, len(decoding))
    if merge is None and len(readings) > 1:
        merge = _merge(entries, len(decoding))
    return _Work(tuple(readings), merge, torch.tensor(begins, dtype=torch.int64), chunks, is_all)


def _copied_slots(
    copied: tuple[Copied, ...], tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return the slots to copy [P * N], the tokens [P] that ask, and the mask."""
    lengths = [one.length for one in copied]
    width = max(lengths)
    parts: list[torch.Tensor] = []
    for one in copied:
        parts += [torch.arange(slot, slot + length) for slot, length in one.stretches]
        if one.length < width:  # any slot of its own will do
            parts.append(torch.full((width - one.length,), one.stretches[0][0]))
    return torch.cat(parts), tokens, _length_mask(lengths)


def _length_mask(lengths: Sequence[int]) -> torch.Tensor | None:
    """Return [P, 1, 1, N], -inf beyond each length; None where all are equal."""
    if min(lengths) == max(lengths):
        return None
    beyond = torch.arange(max(lengths))[None] >= torch.tensor(lengths)[:, None]  # [P, N]
    return torch.zeros(beyond.shape).masked_fill_(beyond, -math.inf)[:, None, None]


def _merge(entries: list[int], rows: int) -> _Merge:
    """Return where each row's answers stand among the entries."""
    places: list[list[int]] = [[] for _ in range(rows)]
    for place, row in enumerate(entries):
        places[row].append(place)
    most = max(map(len, places))
    filled = [own + [len(entries)] * (most - len(own)) for own in places]
    return _Merge(torch.tensor(filled), any(len(own) < most for own in places))


def _chunk(row: LayoutRow, plan: LayerPlan, block_tokens: int) -> _Chunk:
    first = plan.first_visible(row.past)
    stretches = tuple(runs(row.blocks, first, row.total, block_tokens))
    sees_all = first == 0 and plan.first_visible(row.total - 1) == 0
    if row.past == 0 and sees_all:
        return _Chunk(row, stretches, None)
    queries = torch.arange(row.past, row.total)[:, None]
    seen = attention_reference.sees(queries, torch.arange(first, row.total)[None], plan)  # [T, N]
    return _Chunk(row, stretches, torch.zeros(seen.shape).masked_fill_(~seen, -math.inf))
