"""The passes over rows against the definitions in float64, and against llama.cpp's arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from backends.log_probabilities import RowReader, compare_compact
from backends.window_format import CodedRows, TopRows


def logits(rows: int, vocabulary: int, seed: int = 0, spread: float = 3.0) -> np.ndarray:
    return (spread * np.random.default_rng(seed).standard_normal((rows, vocabulary))).astype(np.float32)


def exact(values: np.ndarray) -> np.ndarray:
    """Log-probabilities in float64, [n, V]."""
    values = values.astype(np.float64)
    values = values - values.max(axis=1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


def coded(values: np.ndarray, span: float) -> CodedRows:
    """The rows, rounded to codes the plain way."""
    logprobs = exact(values)
    lowest = np.maximum(logprobs.min(axis=1), logprobs.max(axis=1) - span)
    steps = (logprobs.max(axis=1) - lowest) / 65535
    codes = np.rint(np.maximum(logprobs - lowest[:, None], 0) / np.where(steps > 0, steps, 1)[:, None])
    return CodedRows(codes.astype(np.uint16), steps.astype(np.float32), lowest.astype(np.float32))


def decoded(rows: CodedRows) -> np.ndarray:
    return rows.codes * rows.steps[:, None].astype(np.float64) + rows.lowest[:, None]


def read(values: np.ndarray, targets: np.ndarray, *, precise: bool = False):
    reader = RowReader(values.shape[1], precise=precise)
    reader.block_rows = len(values)
    reader._shifted, reader._theirs, reader._powers = (np.empty_like(values) for _ in range(3))
    reader._mask = np.empty(values.shape, dtype=bool)
    return reader, reader.read(values, targets)


def centred_cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    first, second = (one - one.mean(axis=1, keepdims=True) for one in (first, second))
    return (first * second).sum(axis=1) / np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))


@pytest.mark.parametrize("precise", [False, True])
def test_a_row_s_log_probability_is_that_of_the_definition(precise) -> None:
    values = logits(9, 3000) + np.float32(100)
    targets = np.arange(9, dtype=np.int32) * 7
    _, rows = read(values, targets, precise=precise)
    assert np.abs(rows.logprobs - exact(values)[np.arange(9), targets]).max() < 2e-5  # the last place of 100
    assert rows.best.tolist() == values.argmax(axis=1).tolist()
    assert rows.finite.all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_all_finite_is_told_and_harms_no_other(bad) -> None:
    values = logits(3, 50)
    values[1, 20] = bad
    _, rows = read(values, np.zeros(3, dtype=np.int32))
    assert rows.finite.tolist() == [True, False, True]
    assert np.isfinite(rows.logprobs).all()


def test_blocks_are_small_for_a_large_vocabulary_and_never_empty() -> None:
    assert RowReader(4096).block_rows > 8
    assert RowReader(300_000).block_rows == 1


@pytest.mark.parametrize("spread", [0.5, 3.0, 12.0])
def test_divergence_and_cosine_are_those_of_the_definitions(spread) -> None:
    reference, ours = logits(40, 700, 1, spread), logits(40, 700, 1, spread) + logits(40, 700, 2, 0.2)
    reader, rows = read(ours, np.zeros(40, dtype=np.int32))
    kl, cosine = reader.compare(rows, coded(reference, 24.0), 24.0, as_llama_cpp=False)
    theirs, mine = exact(reference), exact(ours)
    wanted = (np.exp(theirs) * (theirs - mine)).sum(axis=1)
    assert np.abs(kl - wanted).max() < 5e-5  # a step of rounding, weighted by how far the two are apart
    assert kl.mean() == pytest.approx(wanted.mean(), rel=2e-3)
    kept = exact(decoded(coded(reference, 24.0)))
    assert np.abs(kl - (np.exp(kept) * (kept - mine)).sum(axis=1)).max() < 2e-6
    cut = [np.maximum(one, one.max(axis=1, keepdims=True) - 24) for one in (theirs, mine)]
    assert np.abs(cosine - centred_cosine(*cut)).max() < 1e-5


@pytest.mark.parametrize("spread", [0.01, 1.0, 8.0])
def test_a_row_has_no_divergence_from_itself(spread) -> None:
    """Rounding gives a divergence of the second order only: half the square of a step's twelfth root."""
    values = logits(60, 900, 3, spread)
    reader, rows = read(values, np.zeros(60, dtype=np.int32))
    kl, cosine = reader.compare(rows, coded(values, 24.0), 24.0, as_llama_cpp=False)
    assert np.abs(kl).max() < 2e-6
    assert cosine.min() > 0.999999


def test_rows_of_equal_logits_have_neither_divergence_nor_direction() -> None:
    values = np.full((2, 64), 5, dtype=np.float32)
    reader, rows = read(values, np.zeros(2, dtype=np.int32))
    kl, cosine = reader.compare(rows, coded(values, 24.0), 24.0, as_llama_cpp=False)
    assert np.abs(kl).max() < 1e-6
    assert cosine.tolist() == [1.0, 1.0]


def test_what_lies_below_the_span_is_left_out_of_the_sum() -> None:
    reference = logits(5, 400, 4)
    reference[:, 0] = 60  # everything else is nothing beside it
    reader, rows = read(np.zeros_like(reference), np.zeros(5, dtype=np.int32))
    kl, _ = reader.compare(rows, coded(reference, 24.0), 24.0, as_llama_cpp=False)
    assert kl == pytest.approx(np.log(400), abs=1e-5)


def llama_cpp_divergence(values: np.ndarray, rows: CodedRows, row: int) -> float:
    """llama.cpp's loop, token by token in float32 (perplexity.cpp, log_softmax with a base)."""
    one = np.float32
    largest = values.max()
    log_sum = one(np.log(np.exp((values - largest).astype(np.float64)).sum()))
    total = 0.0
    for token, value in enumerate(values):
        theirs = one(rows.steps[row] * one(rows.codes[row, token])) + rows.lowest[row]
        if theirs > one(-16):
            total += float(np.exp(theirs) * ((theirs - value) + (largest + log_sum)))
    return total


def test_in_llama_cpp_s_way_the_divergence_is_its_own() -> None:
    reference, ours = logits(12, 300, 5, 6.0), logits(12, 300, 5, 6.0) + logits(12, 300, 6, 0.3)
    rounded = coded(reference, 16.0)
    assert (decoded(rounded) <= -16).any()  # some are left out
    reader, rows = read(ours, np.zeros(12, dtype=np.int32), precise=True)
    kl, _ = reader.compare(rows, rounded, 16.0, as_llama_cpp=True)
    for row in range(12):
        assert kl[row] == pytest.approx(llama_cpp_divergence(ours[row], rounded, row), abs=3e-6)


def top_rows(values: np.ndarray, keep: int) -> TopRows:
    logprobs = exact(values)
    ids = np.argsort(-logprobs, axis=1)[:, :keep].astype(np.int32)
    kept = np.take_along_axis(logprobs, ids, axis=1)
    rest = np.log(np.maximum(1 - np.exp(kept).sum(axis=1), 1e-30))
    return TopRows(ids, kept.astype(np.float32), rest.astype(np.float32))


def test_with_compact_rows_the_divergence_is_a_lower_bound_that_more_tokens_raise() -> None:
    reference, ours = logits(30, 500, 7), logits(30, 500, 7) + logits(30, 500, 8, 0.4)
    _, rows = read(ours, np.zeros(30, dtype=np.int32))
    theirs, mine = exact(reference), exact(ours)
    whole = (np.exp(theirs) * (theirs - mine)).sum(axis=1)
    bounds = [compare_compact(rows, top_rows(reference, keep)) for keep in (1, 10, 100, 500)]
    for smaller, larger in itertools.pairwise(bounds):
        assert (smaller <= larger + 1e-5).all()
    assert (bounds[0] >= -1e-6).all()
    assert np.abs(bounds[-1] - whole).max() < 1e-5


def test_a_compact_row_has_no_divergence_from_itself() -> None:
    values = logits(20, 600, 9, 5.0)
    _, rows = read(values, np.zeros(20, dtype=np.int32))
    assert np.abs(compare_compact(rows, top_rows(values, 32))).max() < 1e-5
