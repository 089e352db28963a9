"""From logits to tokens, for all rows of a step at once. Knows nothing about models, text or KV.

Each row has its own params, and its token is the one it would get alone: the work over a whole vocabulary (largest,
likeliest, penalties, masks) is torch's on the logits' device, the rest is exact integer work on the host
(sampler_stages.py), and randomness comes from (seed, position) alone (sampler_uniform.py). Sampling changes nothing:
a sequence that takes a token tells its SamplerState.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from backends.errors import EngineError, ErrorCode
from backends.protocol import TokenChances
from backends.torch_engine import sampler_stages
from backends.torch_engine.sampler_chances import chances_of
from backends.torch_engine.sampler_order import likeliest
from backends.torch_engine.sampler_state import SamplerState
from backends.torch_engine.sampler_uniform import uniform

_MOST_CANDIDATES = 1024  # with a larger top-k, or none, the whole row is worked on
_NO_NUMBERS = "the model computed no usable numbers for the next token"


@dataclass(frozen=True, slots=True)
class SamplerRow:
    """A row of logits and whose it is.

    Attributes:
        state: of the sequence.
        position: the index in the sequence of the token to be drawn, the prompt counted.
    """

    state: SamplerState
    position: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """A token that was drawn.

    Attributes:
        token: its id.
        chances: its probability and the likeliest ones', without texts; None where they were not asked for.
    """

    token: int
    chances: TokenChances | None = None


class RowsError(EngineError):
    """Some rows cannot be sampled, DECODE_FAILED; the others give the same tokens when they are sampled without them.

    Attributes:
        details: row -> why.
    """

    def __init__(self, details: Mapping[int, str]) -> None:
        super().__init__(ErrorCode.DECODE_FAILED, detail=next(iter(details.values())))
        self.details = details


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What a group of N rows draws from: ids [N, K] and weights [N, K] int64."""

    ids: NDArray[np.int64]
    weights: sampler_stages.Weights


class BatchSampler:
    """Samples a step's rows. Holds nothing between steps."""

    def sample(self, logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[Sampled]:
        """Return one token a row.

        Args:
            logits: [R, V] float32, on any device; not changed.
            rows: R.

        Raises:
            RowsError: a row holds NaN or +inf, or nothing but -inf, or its grammar cannot go on.
        """
        assert logits.shape[0] == len(rows), f"{logits.shape[0]} rows of logits for {len(rows)}"
        assert logits.shape[1] <= sampler_stages.MAX_VOCABULARY_TOKENS, "the vocabulary is too large"
        tokens: dict[int, int] = {}
        failures: dict[int, str] = {}
        for group, choose in _groups(rows, logits.shape[1]):
            part, bad = _shaped(logits, rows, group)
            for place, token in enumerate(choose(part, [rows[index] for index in group])):
                tokens[group[place]] = token
            failures |= {group[place]: detail for place, detail in bad.items()}
        failures |= {index: _NO_NUMBERS for index, token in tokens.items() if token < 0 and index not in failures}
        if failures:
            raise RowsError(dict(sorted(failures.items())))
        chances = _chances(logits, rows, tokens)
        return [Sampled(tokens[index], chances.get(index)) for index in range(len(rows))]


def probabilities(logits: torch.Tensor, state: SamplerState) -> torch.Tensor:
    """Return the distribution that sample() draws from, exactly: all of 1 at one token where the request is greedy.

    Args:
        logits: [V] float32.
        state: where the sequence stands.

    Returns:
        [V] float64 on the same device; sums to 1.

    Raises:
        RowsError: as sample() does, with row 0.
    """
    rows = [SamplerRow(state, 0)]
    part, bad = _shaped(logits[None], rows, [0])
    if bad:
        raise RowsError(bad)
    found = torch.zeros(logits.shape, dtype=torch.float64)
    if state.is_greedy:
        ids, weights = np.array(_choose_greedy(part, rows)), np.ones(1)
        weights[ids < 0] = 0
    else:
        candidates = (_narrow if _is_narrow(state, part.shape[1]) else _wide)(part, rows)
        ids, weights = candidates.ids[0], candidates.weights[0].astype(np.float64)
    if not weights.any():
        raise RowsError({0: _NO_NUMBERS})
    found[torch.from_numpy(ids)] = torch.from_numpy(weights / weights.sum())
    return found.to(logits.device)


# ------------------------------------------------------------------------------------------------ groups

_Choose = Callable[[torch.Tensor, Sequence[SamplerRow]], list[int]]


def _groups(rows: Sequence[SamplerRow], vocabulary_tokens: int) -> list[tuple[list[int], _Choose]]:
    """Return the indices of the rows that are worked on together, and how."""
    greedy: list[int] = []
    narrow: list[int] = []
    wide: list[int] = []
    for index, row in enumerate(rows):
        if row.state.is_greedy:
            greedy.append(index)
        else:
            (narrow if _is_narrow(row.state, vocabulary_tokens) else wide).append(index)
    found: list[tuple[list[int], _Choose]] = [(greedy, _choose_greedy), (narrow, _choose_narrow)]
    found += [([index], _choose_wide) for index in wide]  # one by one: each may need all of its row in float64
    return [(group, choose) for group, choose in found if group]


def _is_narrow(state: SamplerState, vocabulary_tokens: int) -> bool:
    return 0 < state.params.top_k <= min(_MOST_CANDIDATES, vocabulary_tokens - 1)


def _choose_greedy(logits: torch.Tensor, _rows: Sequence[SamplerRow]) -> list[int]:
    """Return the first largest of each row; -1 for a row that has none."""
    best = logits.argmax(dim=-1, keepdim=True)
    is_usable = torch.isfinite(logits.gather(-1, best))
    tokens: list[int] = torch.where(is_usable, best, -1)[:, 0].tolist()
    return tokens


def _choose_narrow(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int]:
    """Return a drawn token of each row with top-k; -1 for a row that has none."""
    candidates = _narrow(logits, rows)
    is_usable = (candidates.weights.max(axis=-1) > 0).tolist()
    places = sampler_stages.draw(candidates.weights, [_uniform(row) for row in rows])
    return [int(candidates.ids[index, place]) if is_usable[index] else -1 for index, place in enumerate(places)]


def _choose_wide(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> list[int]:
    """Return a drawn token of a single row without top-k, or with a very large one; -1 for a row that has none."""
    candidates = _wide(logits, rows)
    if not candidates.weights.any():
        return [-1]
    (place,) = sampler_stages.draw(candidates.weights, [_uniform(rows[0])])
    return [int(candidates.ids[0, place])]


def _uniform(row: SamplerRow) -> float:
    return uniform(row.state.seed, row.position)


# -------------------------------------------------------------------------------------------- candidates


def _narrow(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> _Candidates:
    """Return the candidates of rows that have a top-k; a row without a finite largest logit has no weight."""
    params = [row.state.params for row in rows]
    values, ids = likeliest(logits, max(one.top_k for one in params))
    is_usable = np.isfinite(values[:, :1])
    weights = sampler_stages.stage_weights(np.where(is_usable, values, np.float32(0.0)), params)
    return _Candidates(ids, np.where(is_usable, weights, 0))


def _wide(logits: torch.Tensor, rows: Sequence[SamplerRow]) -> _Candidates:
    """Return the candidates of one row [1, V], by id; none have weight where its largest logit is not finite."""
    values = logits[0].cpu().numpy()
    if not np.isfinite(values.max()):
        return _Candidates(np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64))
    ids, weights = sampler_stages.row_weights(values, rows[0].state.params)
    return _Candidates(ids[None], weights[None])


# ------------------------------------------------------------------------------- penalties, grammar, chances


def _shaped(
    logits: torch.Tensor, rows: Sequence[SamplerRow], group: Sequence[int]
) -> tuple[torch.Tensor, dict[int, str]]:
    """Return a group's logits [N, V] after penalties and grammar, and why places of it failed."""
    is_changed = any(rows[index].state.changes_logits for index in group)
    if len(group) in (1, len(rows)):  # nothing has to be gathered
        part = logits if len(group) == len(rows) else logits[group[0] : group[0] + 1]
        part = part.clone() if is_changed else part
    else:
        part = logits.index_select(0, torch.tensor(list(group), device=logits.device))
    failures: dict[int, str] = {}
    forbidden: NDArray[np.bool_] | None = None  # one array and one operation for all rows of the group
    for place, index in enumerate(group) if is_changed else ():
        state = rows[index].state
        if state.penalized_ids:
            _penalize(part[place], state)
        if state.grammar is not None:
            forbidden = np.zeros(part.shape, dtype=np.bool_) if forbidden is None else forbidden
            try:
                np.logical_not(state.grammar.mask(part.shape[1]), out=forbidden[place])
            except EngineError as error:
                failures[place] = str(error.parameters.get("detail", ""))
    if forbidden is not None:
        part.masked_fill_(torch.from_numpy(forbidden).to(part.device), -torch.inf)
    return part, failures


def _penalize(logits: torch.Tensor, state: SamplerState) -> None:
    """Make recent tokens less likely, in place: llama.cpp's rule, once for each distinct token."""
    ids = torch.tensor(state.penalized_ids, dtype=torch.int64, device=logits.device)
    penalty = state.params.repeat_penalty
    recent = logits[ids]
    logits[ids] = torch.where(recent <= 0, recent * penalty, recent / penalty)


def _chances(logits: torch.Tensor, rows: Sequence[SamplerRow], tokens: Mapping[int, int]) -> dict[int, TokenChances]:
    """Return the chances of the rows that ask for them."""
    counts = {index: row.state.params.logprobs for index, row in enumerate(rows)}
    asked = {index: count for index, count in counts.items() if count is not None}
    if not asked:
        return {}
    group = list(asked)
    part = logits if len(group) == len(rows) else logits.index_select(0, torch.tensor(group, device=logits.device))
    found = chances_of(part, [tokens[index] for index in group], list(asked.values()))
    return dict(zip(group, found, strict=True))
