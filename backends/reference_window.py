"""A window of log-probabilities in a file: what one model said of every token at every scored position of a text.

A row is kept as llama.cpp's perplexity tool keeps it (tools/perplexity/perplexity.cpp, log_softmax): a float32 step,
the float32 log-probability of code 0, then one uint16 code a token, over up to span_nats below the row's maximum. With
16 nats the codes are those of that tool; with 24, ours, nothing that matters is cut off. Beside the rows stand the
exact likeliest token and the exact log-probability of the token that came. A compact window keeps only the likeliest
tokens of a row and the sum of all others: a comparison with it gives a lower bound.

Everything is little-endian. Every part carries a check, so that a damaged file is told from a good one. Knows no model.
"""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from backends.errors import EngineError, ErrorCode
from backends.likeliest import likeliest
from backends.window_format import (
    HEADER,
    LARGEST_CODE,
    LLAMA_CPP_SPAN_NATS,
    MAGIC,
    MAX_SPAN_NATS,
    SUFFIX,
    CodedRows,
    Floats,
    Ids,
    TopRows,
    Words,
    record_words,
    row_check,
)
from backends.window_writer import PlainRow, WindowWriter

__all__ = ["LLAMA_CPP_SPAN_NATS", "SUFFIX", "CodedRows", "PlainRow", "ReferenceWindow", "TopRows", "WindowWriter"]

_LOGPROBS = (-1e30, 1e-3)  # what can be one, in a file that a stranger wrote


class ReferenceWindow:
    """A window that was written before. Close it.

    Attributes:
        path: of the file.
        rows: scored positions, T.
        vocabulary_tokens: V.
        token_ids: [N] int32, all tokens of the window; the scored ones are the last T.
        span_nats: how far below a row's maximum its codes reach.
        keep_top: how many tokens of a row are kept; 0: all.
        best_ids: [T] int32, exact; -1 for a row whose logits were not all finite.
        target_logprobs: [T] float32, exact, of the tokens that came.
        _lock: held while the file is used: several threads may read rows.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._lock = threading.Lock()
        header = file.read(HEADER.size)
        if len(header) < HEADER.size or header[: len(MAGIC)] != MAGIC:
            raise self.unreadable("it is no window of log-probabilities")
        *fields, tables_crc, header_crc = HEADER.unpack(header)
        _, self.rows, self.vocabulary_tokens, tokens, self.keep_top, self.span_nats = fields
        is_possible = (
            zlib.crc32(header[:-4]) == header_crc
            and self.rows < tokens
            and self.keep_top <= self.vocabulary_tokens
            and 0 < self.span_nats <= MAX_SPAN_NATS
        )
        if not is_possible:
            raise self.unreadable("it is damaged")
        self._words = record_words(self.vocabulary_tokens, self.keep_top)
        tables_at = HEADER.size + self.rows * self._words * 4
        tables_bytes = (tokens + 3 * self.rows) * 4
        if os.fstat(file.fileno()).st_size != tables_at + tables_bytes:
            raise self.unreadable("it is cut off, or something was added")
        file.seek(tables_at)
        tables = file.read(tables_bytes)
        if zlib.crc32(tables) != tables_crc:
            raise self.unreadable("it is damaged")
        words = np.frombuffer(tables, dtype="<u4")
        cuts = np.cumsum([tokens, self.rows, self.rows])
        ids, best, targets, self._checks = np.split(words, cuts)
        self.token_ids, self.best_ids = ids.view("<i4"), best.view("<i4")
        self.target_logprobs = targets.view("<f4")
        known = self.target_logprobs[self.best_ids >= 0]
        if not (_within(self.best_ids, -1, self.vocabulary_tokens - 1) and _within(known, -np.inf, _LOGPROBS[1])):
            raise self.unreadable("it is damaged")

    @classmethod
    def open(cls, path: Path | str) -> ReferenceWindow:
        """Open a window and check its tables; raises EngineError REFERENCE_UNREADABLE."""
        path = Path(path)
        try:
            file = path.open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        try:
            return cls(path, file)
        except OSError as error:
            file.close()
            raise _unreadable(path, error.strerror or str(error)) from error
        except EngineError:
            file.close()
            raise

    @property
    def is_top(self) -> bool:
        """Whether only the likeliest tokens of a row are kept, and the rest as one."""
        return bool(self.keep_top)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def coded(self, first: int, last: int) -> CodedRows:
        """Return rows first to last, without last, of a full window; raises EngineError REFERENCE_UNREADABLE."""
        assert not self.is_top
        words = self._read(first, last)
        heads = words[:, :2].view("<f4")
        steps, lowest = heads[:, 0], heads[:, 1]
        if not (_within(steps, 0, 2 * MAX_SPAN_NATS / LARGEST_CODE) and _within(lowest, *_LOGPROBS)):
            raise self.unreadable("it is damaged")
        return CodedRows(words[:, 2:].view("<u2")[:, : self.vocabulary_tokens], steps, lowest)

    def compact(self, first: int, last: int) -> TopRows:
        """Return rows first to last, without last, of a compact window; raises EngineError REFERENCE_UNREADABLE."""
        assert self.is_top
        words = self._read(first, last)
        ids = words[:, 1 : 1 + self.keep_top].view("<i4")
        logprobs, rest = words[:, 1 + self.keep_top :].view("<f4"), words[:, :1].view("<f4")[:, 0]
        are_known = _within(ids, 0, self.vocabulary_tokens - 1)
        if not (are_known and _within(logprobs, *_LOGPROBS) and _within(rest, -np.inf, _LOGPROBS[1])):
            raise self.unreadable("it is damaged")
        return TopRows(ids, logprobs, rest)

    def logprobs(self, first: int, last: int) -> Floats:
        """Return rows first to last, without last, of a full window as log-probabilities, [n, V]."""
        rows = self.coded(first, last)
        return rows.codes * rows.steps[:, None] + rows.lowest[:, None]

    def top(self, row: int, count: int) -> tuple[Ids, Floats]:
        """Return the ids and log-probabilities of a row's likeliest tokens, the likeliest first; raises EngineError.

        Fewer than asked for where fewer are kept.
        """
        if self.is_top:
            rows = self.compact(row, row + 1)
            return rows.ids[0, :count].copy(), rows.logprobs[0, :count].copy()
        values = self.logprobs(row, row + 1)[0]
        ids = likeliest(values, min(count, len(values)))
        return ids, values[ids]

    def unreadable(self, detail: str) -> EngineError:
        """Return the error that says why this window is of no use."""
        return _unreadable(self.path, detail)

    def _read(self, first: int, last: int) -> Words:
        """Return the records of these rows, [n, words], checked."""
        assert 0 <= first <= last <= self.rows
        words = np.empty((last - first, self._words), dtype="<u4")
        view = words.reshape(-1).view(np.uint8).data
        with self._lock:
            try:
                self._file.seek(HEADER.size + first * self._words * 4)
                while view:
                    count = self._file.readinto(view)  # type: ignore[attr-defined]
                    if not count:
                        raise self.unreadable("it is cut off, or something was added")
                    view = view[count:]
            except OSError as error:
                raise self.unreadable(error.strerror or str(error)) from error
        for row, record in enumerate(words, start=first):
            if row_check(record, row) != self._checks[row]:
                raise self.unreadable("it is damaged")
        return words


def _within(values: NDArray[Any], lowest: float, highest: float) -> bool:
    return not values.size or bool(values.min() >= lowest and values.max() <= highest)  # False for what is no number


def _unreadable(path: Path, detail: str) -> EngineError:
    return EngineError(ErrorCode.REFERENCE_UNREADABLE, path=str(path), detail=detail)
