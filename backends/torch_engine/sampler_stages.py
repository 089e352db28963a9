"""The stages of the sampler over the candidates of a row, and the draw: numpy on the host, exact by integers.

The order is llama.cpp's: (penalties,) top-k, top-p, min-p, temperature, then the draw. Probabilities are whole
numbers of 1 / 2^42 of the likeliest token's: their sums do not depend on the order of adding, so a row gives the same
token alone and among others, and a token of weight 0 is never drawn. A token less likely than 2e-13 of the likeliest
has weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backends.protocol import SamplingParams

_WEIGHT_BITS = 42  # of the likeliest token; times a vocabulary of up to 2^20 it fits into 63 bits
MAX_VOCABULARY_TOKENS = 1 << (62 - _WEIGHT_BITS)

Weights = NDArray[np.int64]
Logits = NDArray[np.float32]


def weights_of(values: Logits, temperatures: NDArray[np.float64] | float = 1.0) -> Weights:
    """Return exp((value - largest of the row) / temperature) as whole numbers.

    Args:
        values: [..., K] logits; each row has a finite largest one.
        temperatures: one for all, or [N, 1].
    """
    exact = values.astype(np.float64)
    below = (exact - exact.max(axis=-1, keepdims=True)) / temperatures
    weights: Weights = np.floor(np.exp(below) * float(1 << _WEIGHT_BITS)).astype(np.int64)
    return weights


def stage_weights(values: Logits, params: Sequence[SamplingParams]) -> Weights:
    """Return the weight of each candidate after top-k, top-p, min-p and temperature; 0 for one that was filtered out.

    Args:
        values: [N, K] logits in descending order; -inf is never drawn.
        params: N, with a temperature above 0.
    """
    count = values.shape[-1]
    kept = np.arange(count) < np.array([[one.top_k or count] for one in params])
    top_p = np.array([[one.top_p] for one in params])
    if (top_p < 1).any():
        mass = np.where(kept, weights_of(values), 0)
        until = np.cumsum(mass, axis=-1)
        # The token that reaches the share still belongs to it.
        kept &= (until - mass < top_p * until[:, -1:]) | (top_p >= 1)
    return _finished(values, kept, params)


def row_weights(values: Logits, params: SamplingParams) -> tuple[NDArray[np.int64], Weights]:
    """Return the ids that a whole row leaves, ascending, and their weights: those of stage_weights() for it sorted.

    Nothing but values is sorted, and of them only those that top-p can be about: all that weigh less than its rest,
    spread evenly, weigh less than its rest together.

    Args:
        values: [V] logits.
        params: with a temperature above 0.
    """
    ids = np.flatnonzero(_largest(values, params.top_k or len(values)))
    if params.top_p < 1:
        mass = weights_of(values[ids])
        total = int(mass.sum())
        is_heavy = mass >= (1 - params.top_p) * total / (2 * len(mass))  # half of it: room for rounding
        ids, mass = ids[is_heavy], mass[is_heavy]
        until = np.cumsum(np.sort(mass)[::-1])
        ids = ids[_largest(mass, int((until < params.top_p * total).sum()) + 1)]
    left = values[ids]
    weights: Weights = _finished(left[None], np.ones((1, len(ids)), dtype=np.bool_), [params])[0]
    return ids, weights


def _largest(values: Logits | Weights, count: int) -> NDArray[np.bool_]:
    """Return which values are the largest, [V]; of equal ones the first."""
    if count >= len(values):
        return np.ones(len(values), dtype=np.bool_)
    least = np.partition(values, len(values) - count)[len(values) - count]
    found: NDArray[np.bool_] = values > least
    equal = np.flatnonzero(values == least)
    found[equal[: count - int(found.sum())]] = True
    return found


def _finished(values: Logits, kept: NDArray[np.bool_], params: Sequence[SamplingParams]) -> Weights:
    """Return the weights [N, K] after min-p and temperature of what was kept before."""
    min_p = np.array([[one.min_p] for one in params], dtype=np.float32)
    if (min_p > 0).any():
        # In float32 and by logits, as llama.cpp does it; the logarithm of 0 keeps all.
        with np.errstate(divide="ignore"):
            kept = kept & (values >= values.max(axis=-1, keepdims=True) + np.log(min_p))
    temperatures = np.array([[one.temperature] for one in params])
    return np.where(kept, weights_of(values, temperatures), 0)


def draw(weights: Weights, uniforms: Sequence[float]) -> list[int]:
    """Return for each row the place of the drawn candidate, by inverting the cumulative distribution.

    Args:
        weights: [N, K], each row with at least one above 0.
        uniforms: N numbers from 0 to below 1.
    """
    until = np.cumsum(weights, axis=-1)
    totals = until[:, -1]
    marks = np.minimum((np.array(uniforms) * totals).astype(np.int64), totals - 1)
    places: list[int] = (until <= marks[:, None]).sum(axis=-1).tolist()
    return places
