"""From rows of logits to what Score asks for: engine-neutral, numpy, a few rows at a time.

An engine asks scored_text() which rows there are, gives their logits in order to a RowScorer, and returns what
finish() makes of them. The passes over a row are those of backends/log_probabilities.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.likeliest import likeliest
from backends.log_probabilities import Floats, RowReader, Rows, compare_compact
from backends.reference_window import LLAMA_CPP_SPAN_NATS, PlainRow, ReferenceWindow, WindowWriter

_MOST_THREADS = 4  # each has buffers of its own, 17 bytes a token of the vocabulary
_WORTH_THREADS = 500_000  # logits; fewer are done before a second thread has begun


@dataclass(frozen=True, slots=True)
class ScoredText:
    """What a Score asks to be read.

    Attributes:
        token_ids: the prompt's, then those to be scored. The last one need not be computed.
        first_row: the position of the first row; it predicts the token behind it. The last row is the last but one.
    """

    token_ids: tuple[int, ...]
    first_row: int

    @property
    def rows(self) -> int:
        """How many rows there are, T."""
        return len(self.token_ids) - 1 - self.first_row

    @property
    def targets(self) -> tuple[int, ...]:
        """The token that came after each row."""
        return self.token_ids[self.first_row + 1 :]


def scored_text(
    command: protocol.Score, prompt_ids: Sequence[int], vocabulary_tokens: int, context_tokens: int
) -> ScoredText:
    """Return which rows a command asks for.

    Args:
        command: what was asked.
        prompt_ids: of the command's prompt; none where it has none.
        vocabulary_tokens: every id must be below it.
        context_tokens: how many tokens can be read.

    Raises:
        EngineError: BAD_PARAMS, EMPTY_PROMPT, PROMPT_TOO_LONG.
    """
    token_ids = (*prompt_ids, *command.token_ids)
    if any(not 0 <= token < vocabulary_tokens for token in token_ids):
        raise EngineError(ErrorCode.BAD_PARAMS, detail="a token id is not in the vocabulary")
    if command.prompt is not None:
        if not prompt_ids:
            raise EngineError(ErrorCode.EMPTY_PROMPT)
        first_row = len(prompt_ids) - 1
        is_valid = command.first_scored == 0 and bool(command.token_ids)
    else:
        first_row = command.first_scored
        is_valid = 0 <= first_row < len(token_ids) - 1
    if not is_valid or command.top < 0:
        raise EngineError(ErrorCode.BAD_PARAMS, detail="there is no such row to score")
    if len(token_ids) > context_tokens:
        raise EngineError(ErrorCode.PROMPT_TOO_LONG, prompt_tokens=len(token_ids), context_tokens=context_tokens)
    return ScoredText(token_ids, first_row)


class RowScorer:
    """Takes the logits of all rows of a command, in order, and keeps what was asked for of each.

    Use it with `with`: what was written is kept only if finish() was reached.

    Attributes:
        _done: rows so far.
    """

    def __init__(self, command: protocol.Score, text: ScoredText, vocabulary_tokens: int, *, threads: int = 1) -> None:
        """Open the window to compare with and the one to write; raises EngineError.

        Args:
            command: what was asked.
            text: its rows.
            vocabulary_tokens: V.
            threads: how many may work at the rows of one add(); while they do, the engine computes nothing.
        """
        self._command = command
        self._text = text
        rows, top = text.rows, min(command.top, vocabulary_tokens)
        self._targets = np.asarray(text.targets, dtype="<i4")
        self._logprobs = np.zeros(rows, dtype="<f4")
        self._best = np.zeros(rows, dtype="<i4")
        self._non_finite = np.zeros(rows, dtype=np.uint8)
        self._top_ids = np.zeros((rows, top), dtype="<i4")
        self._top_logprobs = np.zeros((rows, top), dtype="<f4")
        self._kl = np.zeros(rows, dtype="<f4")
        self._cosine = np.zeros(rows, dtype="<f4")
        self._reference_logprobs = np.zeros(rows, dtype="<f4")
        self._reference_best = np.zeros(rows, dtype="<i4")
        self._done = 0
        self._pool: ThreadPoolExecutor | None = None
        self._reference: ReferenceWindow | None = None
        self._writer: WindowWriter | None = None
        try:
            if command.reference_path:
                self._reference = ReferenceWindow.open(command.reference_path)
                _check_fit(self._reference, text, vocabulary_tokens)
            if command.write_path:
                self._writer = WindowWriter(
                    command.write_path, rows, vocabulary_tokens, text.token_ids,
                    span_nats=command.span_nats, keep_top=command.keep_top,
                )  # fmt: skip
        except EngineError:
            self.close()
            raise
        spans = (command.span_nats, self._reference.span_nats if self._reference is not None else 0.0)
        precise = LLAMA_CPP_SPAN_NATS in spans
        self._readers = [RowReader(vocabulary_tokens, precise=precise) for _ in range(min(threads, _MOST_THREADS))]
        self._pool = ThreadPoolExecutor(len(self._readers), "scoring") if len(self._readers) > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; a window that is not whole is removed."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._reference is not None:
            self._reference.close()
        if self._writer is not None:
            self._writer.discard()

    def add(self, logits: Floats) -> None:
        """Take the logits of the next rows, [n, V]; raises EngineError for what cannot be read or written."""
        first, self._done = self._done, self._done + len(logits)
        if self._pool is None or logits.size < _WORTH_THREADS:
            self._add_rows(self._readers[0], logits, first)
            return
        cuts = [len(logits) * part // len(self._readers) for part in range(len(self._readers) + 1)]
        parts = [
            self._pool.submit(self._add_rows, reader, logits[start:end], first + start)
            for reader, start, end in zip(self._readers, cuts, cuts[1:], strict=False)
        ]
        wait(parts)  # all of them: the engine's buffer must not be overwritten under one that still reads
        for part in parts:
            part.result()

    def finish(self, prefill_s: float, score_s: float) -> protocol.ScoreDone:
        """Close the window that is written and return the answer; raises EngineError.

        Args:
            prefill_s: what the forward passes took.
            score_s: what all of it took.
        """
        assert self._done == self._text.rows
        if self._writer is not None:
            self._writer.close()
        compared: dict[str, bytes] = {}
        if self._reference is not None:
            compared = {
                "reference_logprobs": self._reference_logprobs.tobytes(),
                "reference_best_ids": self._reference_best.tobytes(),
                "kl": self._kl.tobytes(),
                "cosine": b"" if self._reference.is_top else self._cosine.tobytes(),
            }
        return protocol.ScoreDone(
            request_id=self._command.request_id,
            token_ids=self._targets.tobytes(),
            logprobs=self._logprobs.tobytes(),
            best_ids=self._best.tobytes(),
            non_finite=self._non_finite.tobytes(),
            top_ids=self._top_ids.tobytes(),
            top_logprobs=self._top_logprobs.tobytes(),
            prefill_s=prefill_s,
            score_s=score_s,
            **compared,
        )

    def _add_rows(self, reader: RowReader, logits: Floats, first: int) -> None:
        for start in range(0, len(logits), reader.block_rows):
            self._add_block(reader, logits[start : start + reader.block_rows], first + start)

    def _add_block(self, reader: RowReader, logits: Floats, first: int) -> None:
        block = slice(first, first + len(logits))
        rows = reader.read(logits, self._targets[block])
        good = rows.finite
        self._logprobs[block] = np.where(good, rows.logprobs, 0)
        self._best[block] = np.where(good, rows.best, 0)
        self._non_finite[block] = ~good
        if self._writer is not None:
            self._write(self._writer, rows, first)
        self._keep_top(rows, first)
        if self._reference is not None:
            self._compare(reader, self._reference, rows, block)

    def _write(self, writer: WindowWriter, rows: Rows, first: int) -> None:
        for index, values in enumerate(rows.values):
            best = int(rows.best[index]) if rows.finite[index] else -1
            target = int(self._targets[first + index])
            row = PlainRow(values, float(rows.peaks[index]), float(rows.log_sums[index]), best, target)
            writer.put(first + index, row)

    def _keep_top(self, rows: Rows, first: int) -> None:
        count = self._top_ids.shape[1]
        for index in range(len(rows.values) if count else 0):
            if rows.finite[index]:
                ids = likeliest(rows.values[index], count)
                self._top_ids[first + index] = ids
                offset = rows.peaks[index] + rows.log_sums[index]
                self._top_logprobs[first + index] = rows.values[index][ids] - offset

    def _compare(self, reader: RowReader, reference: ReferenceWindow, rows: Rows, block: slice) -> None:
        """Compare with the same rows of the window; a row that was not finite there is none here either."""
        best, logprobs = reference.best_ids[block], reference.target_logprobs[block]
        if reference.is_top:
            kl, cosine = compare_compact(rows, reference.compact(block.start, block.stop)), np.zeros_like(logprobs)
        else:
            coded = reference.coded(block.start, block.stop)
            is_llama_cpp = reference.span_nats == LLAMA_CPP_SPAN_NATS
            kl, cosine = reader.compare(rows, coded, reference.span_nats, as_llama_cpp=is_llama_cpp)
            if is_llama_cpp:  # its figures come from the rounded rows alone
                best = np.where(best < 0, best, coded.codes.argmax(axis=1))
                codes = coded.codes[np.arange(len(best)), self._targets[block]]
                logprobs = codes * coded.steps + coded.lowest
        good = rows.finite & (best >= 0)
        self._kl[block] = np.where(good, kl, 0)
        self._cosine[block] = np.where(good, cosine, 0)
        self._reference_logprobs[block] = np.where(good, logprobs, 0)
        self._reference_best[block] = np.where(good, best, 0)
        self._logprobs[block] = np.where(good, self._logprobs[block], 0)
        self._best[block] = np.where(good, self._best[block], 0)
        self._non_finite[block] = ~good


def _check_fit(reference: ReferenceWindow, text: ScoredText, vocabulary_tokens: int) -> None:
    """Raise EngineError unless the window is of this text and of such a vocabulary."""
    if reference.vocabulary_tokens != vocabulary_tokens:
        theirs, ours = reference.vocabulary_tokens, vocabulary_tokens
        raise reference.unreadable(f"it is of a vocabulary of {theirs} tokens, and this model has {ours}")
    if reference.rows != text.rows or not np.array_equal(reference.token_ids, np.asarray(text.token_ids)):
        raise reference.unreadable("it is of another text")
