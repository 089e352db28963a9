"""The passes over rows of logits: log-probabilities, and how far two rows are from each other.

The cost of scoring beside the forward passes lies here, so a block of rows stays in the processor's cache, numbers are
float32, and sums are taken pairwise or in float64. Knows no file and no engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backends.window_format import CodedRows, TopRows

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ids = NDArray[np.int32]

# Values of a block: small enough for a second-level cache, and several rows where a row is short, so that numpy's calls
# do not cost more than its work.
_BLOCK_VALUES = 50_000
# llama.cpp leaves out of its sum what the reference holds for less likely than that.
_LLAMA_CPP_LEAST_LOGPROB = np.float32(-16.0)
# Where every exponential shall be rounded as the C library does it, those above this are: the others' sum is too small.
_PRECISE_ABOVE = np.float32(-8.0)
_CODES = np.float32(65535)


@dataclass(slots=True)
class Rows:
    """A block of rows and what was found of them.

    Attributes:
        values: [n, V] logits; zeros where they are not all finite.
        finite: [n] whether they are.
        best: [n] the likeliest token.
        peaks: [n] float32, its logit.
        log_sums: [n] float32, the logarithm of the sum of exp(logit - peak).
        logprobs: [n] float32, of the tokens that came.
        shifted: [n, V] logits less their peak; the reader's, until the next block.
    """

    values: Floats
    finite: NDArray[np.bool_]
    best: NDArray[np.int64]
    peaks: Floats
    log_sums: Floats
    logprobs: Floats
    shifted: Floats


class RowReader:
    """Reads blocks of rows and compares them, in buffers of its own.

    Attributes:
        block_rows: how many rows a block has at most.
        _shifted, _theirs, _powers: [block_rows, V].
        _mask: [block_rows, V].
        _ones: [V], to sum with.
    """

    def __init__(self, vocabulary_tokens: int, *, precise: bool = False) -> None:
        """Take the buffers.

        Args:
            vocabulary_tokens: V.
            precise: round exponentials as the C library does; slower, for figures that shall equal llama.cpp's.
        """
        self.block_rows = max(1, _BLOCK_VALUES // vocabulary_tokens)
        shape = (self.block_rows, vocabulary_tokens)
        self._shifted, self._theirs, self._powers = (np.empty(shape, dtype=np.float32) for _ in range(3))
        self._mask = np.empty(shape, dtype=np.bool_)
        self._ones = np.ones(vocabulary_tokens, dtype=np.float32)
        self._precise = precise

    def read(self, logits: Floats, targets: Ids) -> Rows:
        """Return what is in a block of logits, [n, V], of which targets came, [n]."""
        count = len(logits)
        numbers = np.arange(count)
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.isfinite(np.vecdot(logits, self._ones))
        if not finite.all():
            logits = np.where(finite[:, None], logits, np.float32(0))
        best = logits.argmax(axis=1)
        peaks = logits[numbers, best]
        shifted = np.subtract(logits, peaks[:, None], out=self._shifted[:count])
        sums = self._sums(shifted)
        log_sums = np.log(sums).astype(np.float32)
        # In llama.cpp's order of operations, so that the rounding is the same.
        logprobs = -(peaks + log_sums - logits[numbers, targets])
        return Rows(logits, finite, best, peaks, log_sums, logprobs, shifted)

    def compare(self, rows: Rows, coded: CodedRows, span_nats: float, *, as_llama_cpp: bool) -> tuple[Floats, Floats]:
        """Return the divergence of each row from the reference's, in nats, and the cosine of the two, [n] each.

        KL = sum p (ln p - ln q) with p the reference's. What lies below the reference's span is left out of the sum and
        p is made a distribution again, so that rounding alone gives no divergence of the first order. As llama.cpp
        does it, terms with ln p <= -16 are left out instead and p stays as it was rounded.

        The cosine is that of the two rows of log-probabilities, each less its mean, both cut at the span below their
        peak.

        Args:
            rows: this model's, as last read. Their `shifted` is used up.
            coded: the reference's.
            span_nats: of the reference.
            as_llama_cpp: in llama.cpp's way.
        """
        theirs = self._theirs[: len(rows.values)]
        np.multiply(coded.codes, coded.steps[:, None], out=theirs)
        kl = self._llama_cpp_divergence(rows, coded) if as_llama_cpp else self._divergence(rows, coded, span_nats)
        ours = np.clip(rows.shifted, np.float32(-span_nats), np.float32(0), out=rows.shifted)
        ours -= self._means(ours)
        theirs -= self._means(theirs)
        norms = np.sqrt(np.vecdot(ours, ours).astype(np.float64) * np.vecdot(theirs, theirs))
        cosine = np.divide(np.vecdot(ours, theirs), norms, out=np.ones(len(norms)), where=norms > 0)
        return kl, cosine.astype(np.float32)

    def _means(self, values: Floats) -> Floats:
        """Return the rows' means, [n, 1]: near enough for a cosine, and in half the time of a careful sum."""
        means: Floats = np.vecdot(values, self._ones)[:, None] / np.float32(len(self._ones))
        return means

    def _sums(self, shifted: Floats) -> Doubles:
        """Return the sums of the rows' exponentials, [n]."""
        powers = np.exp(shifted, out=self._powers[: len(shifted)])
        sums: Doubles
        if self._precise:
            large = np.greater(shifted, _PRECISE_ABOVE, out=self._mask[: len(shifted)])
            powers[large] = np.exp(shifted[large].astype(np.float64))
            sums = powers.sum(axis=1, dtype=np.float64)
        else:
            sums = powers.sum(axis=1).astype(np.float64)
        return sums

    def _divergence(self, rows: Rows, coded: CodedRows, span_nats: float) -> Floats:
        """Return the divergence of the reference's rows, made distributions again.

        Both rows are taken relative to this row's peak, so that their difference is small and keeps its digits:
        theirs becomes ln p + log_sum, and the constant is taken back at the end.
        """
        count = len(rows.values)
        theirs, powers = self._theirs[:count], self._powers[:count]
        theirs += (coded.lowest + rows.log_sums)[:, None]
        np.exp(theirs, out=powers)
        is_cut = coded.steps * _CODES > np.float32(span_nats * (1 - 1e-5))
        if is_cut.any():  # code 0 stands for all that is less likely
            is_kept = np.not_equal(coded.codes, 0, out=self._mask[:count])
            is_kept[~is_cut] = True
            np.multiply(powers, is_kept, out=powers)
        sums = powers.sum(axis=1).astype(np.float64)
        np.subtract(theirs, rows.shifted, out=rows.shifted)
        products = np.vecdot(powers, rows.shifted)
        np.subtract(theirs, rows.shifted, out=rows.shifted)
        kl: Floats = (products / sums - (np.log(sums) - rows.log_sums)).astype(np.float32)
        return kl

    def _llama_cpp_divergence(self, rows: Rows, coded: CodedRows) -> Floats:
        """Return llama.cpp's sum: in float32 operation by operation, added up in float64."""
        count = len(rows.values)
        theirs, powers = self._theirs[:count], self._powers[:count]
        theirs += coded.lowest[:, None]
        np.exp(theirs, out=powers)
        is_kept = np.greater(theirs, _LLAMA_CPP_LEAST_LOGPROB, out=self._mask[:count])
        np.multiply(powers, is_kept, out=powers)
        terms = theirs - rows.values
        terms += (rows.peaks + rows.log_sums)[:, None]
        terms *= powers
        kl: Floats = terms.sum(axis=1, dtype=np.float64).astype(np.float32)
        return kl


def compare_compact(rows: Rows, top: TopRows) -> Floats:
    """Return the divergence from compact rows, all tokens that were not kept taken as one, in nats, [n].

    By the log-sum inequality that is at most the divergence over all tokens.
    """
    offsets = (rows.peaks + rows.log_sums).astype(np.float64)[:, None]
    theirs = top.logprobs.astype(np.float64)
    ours = np.take_along_axis(rows.values, top.ids, axis=1) - offsets
    theirs_rest = np.exp(top.rest.astype(np.float64))
    least = np.finfo(np.float32).tiny
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.exp(theirs).sum(axis=1) + theirs_rest
        ours_rest = np.maximum(1.0 - np.exp(ours).sum(axis=1), least)
        kl = (np.exp(theirs) * (theirs - ours)).sum(axis=1)
        kl += theirs_rest * (np.log(np.maximum(theirs_rest, least)) - np.log(ours_rest))
        result: Floats = (kl / sums - np.log(sums)).astype(np.float32)
    return result
