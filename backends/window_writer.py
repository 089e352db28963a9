"""Writes a window of log-probabilities, see backends/reference_window.py."""

from __future__ import annotations

import contextlib
import struct
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from backends.errors import EngineError, ErrorCode
from backends.likeliest import likeliest
from backends.window_format import (
    HEADER,
    LARGEST_CODE,
    MAGIC,
    MAX_SPAN_NATS,
    Floats,
    Ids,
    Words,
    record_words,
    row_check,
)


@dataclass(frozen=True, slots=True)
class PlainRow:
    """A row as an engine gave it.

    Attributes:
        values: [V] logits, or log-probabilities.
        peak: the largest of them.
        log_sum: the logarithm of the sum of exp(value - peak); for log-probabilities, -peak.
        best: the token with the largest value; -1 for a row that is not all finite: nothing of it is kept.
        target: the token that came.
    """

    values: Floats
    peak: float
    log_sum: float
    best: int
    target: int


class WindowWriter:
    """Writes a window; under its final name only when it is whole. Close it, or discard it.

    Attributes:
        _added: rows so far.
        _lock: held while the file is used: several threads may put rows.
    """

    def __init__(
        self,
        path: Path | str,
        rows: int,
        vocabulary_tokens: int,
        token_ids: Sequence[int],
        *,
        span_nats: float = 24.0,
        keep_top: int = 0,
    ) -> None:
        """Begin the file `<path>.part`.

        Args:
            path: where the window is to be.
            rows: how many will be added.
            vocabulary_tokens: V.
            token_ids: all tokens of the window, those that only give context included.
            span_nats: how far below a row's likeliest token the codes reach.
            keep_top: keep so many of the likeliest tokens of a row; 0 keeps all.

        Raises:
            EngineError: BAD_PARAMS, WRITE_FAILED.
        """
        if not 0.0 < span_nats <= MAX_SPAN_NATS or keep_top < 0:
            raise EngineError(ErrorCode.BAD_PARAMS, detail=f"the span must be above 0 and at most {MAX_SPAN_NATS:g}")
        self._path = Path(path)
        self._part = self._path.with_name(self._path.name + ".part")
        self._rows, self._vocabulary_tokens = rows, vocabulary_tokens
        self._span = np.float32(span_nats)
        self._keep = min(keep_top, vocabulary_tokens)
        self._token_ids = np.asarray(token_ids, dtype="<i4")
        self._words = record_words(vocabulary_tokens, self._keep)
        self._best = np.zeros(rows, dtype="<i4")
        self._target_logprobs = np.zeros(rows, dtype="<f4")
        self._checks = np.zeros(rows, dtype="<u4")
        self._added = 0
        self._lock = threading.Lock()
        self._failure: EngineError | None = None
        self._file: BinaryIO | None = None
        try:
            self._file = self._part.open("wb", buffering=0)
            self._file.write(bytes(HEADER.size))
        except OSError as error:
            raise self._failed(error) from error

    def add(self, logprobs: Floats, targets: Sequence[int] | Ids) -> None:
        """Take rows of log-probabilities, [n, V], and the token that came after each, [n]; raises EngineError."""
        for values, target in zip(np.asarray(logprobs, dtype=np.float32), targets, strict=True):
            best = int(values.argmax())
            peak = float(values[best])
            self.add_row(values, peak, -peak, best if np.isfinite(values).all() else -1, int(target))

    def add_row(self, values: Floats, peak: float, log_sum: float, best: int, target: int) -> None:
        """Take the next row, see PlainRow; raises EngineError WRITE_FAILED."""
        self.put(self._added, PlainRow(values, peak, log_sum, best, target))

    def put(self, number: int, row: PlainRow) -> None:
        """Take the row of this number, from any thread, each once; raises EngineError WRITE_FAILED."""
        assert number < self._rows
        self._best[number] = row.best
        record = np.zeros(self._words, dtype="<u4")
        if row.best < 0:
            self._target_logprobs[number] = np.nan
        else:
            self._target_logprobs[number] = row.values[row.target] - (np.float32(row.peak) + np.float32(row.log_sum))
            if self._keep:
                self._fill_top(record, row)
            else:
                self._fill_codes(record, row)
        self._checks[number] = row_check(record, number)
        with self._lock:
            if self._failure is not None:  # of another thread
                raise self._failure
            assert self._file is not None
            self._added += 1
            try:
                self._file.seek(HEADER.size + number * self._words * 4)
                self._write(record.data)
            except OSError as error:
                raise self._failed(error) from error

    def close(self) -> None:
        """Write the tables and give the file its name; raises EngineError, and then no file is left."""
        if self._file is None:
            return
        assert self._added == self._rows
        tables = b"".join(
            table.tobytes() for table in (self._token_ids, self._best, self._target_logprobs, self._checks)
        )
        header = HEADER.pack(
            MAGIC, self._rows, self._vocabulary_tokens, len(self._token_ids), self._keep, self._span,
            zlib.crc32(tables), 0,
        )[:-4]  # fmt: skip
        try:
            self._file.seek(HEADER.size + self._rows * self._words * 4)
            self._write(memoryview(tables))
            self._file.seek(0)
            self._write(memoryview(header + struct.pack("<I", zlib.crc32(header))))
            self._file.close()
            self._file = None
            self._part.replace(self._path)
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        """Remove what was written, unless it was closed."""
        if self._file is not None:
            self._file.close()
            self._file = None
            with contextlib.suppress(OSError):
                self._part.unlink()

    def _fill_codes(self, record: Words, row: PlainRow) -> None:
        """Round one row as llama.cpp does, operation by operation in float32."""
        values, peak = row.values, np.float32(row.peak)
        lowest = max(np.float32(values.min()), np.float32(peak - self._span))
        step = np.float32((peak - lowest) / np.float32(LARGEST_CODE))
        record[:2].view("<f4")[:] = step, (lowest - peak) - np.float32(row.log_sum)
        if step > 0:
            scaled = np.subtract(values, lowest, dtype=np.float32)
            np.clip(scaled, np.float32(0), np.float32(np.inf), out=scaled)
            np.multiply(scaled, np.float32(1) / step, out=scaled)
            np.rint(scaled, out=scaled)
            np.copyto(record[2:].view("<u2")[: len(values)], scaled, casting="unsafe")

    def _fill_top(self, record: Words, row: PlainRow) -> None:
        ids = likeliest(row.values, self._keep)
        offset = np.float32(row.peak) + np.float32(row.log_sum)
        others = np.exp(row.values - offset)
        others[ids] = 0
        with np.errstate(divide="ignore"):
            record[:1].view("<f4")[0] = np.log(others.sum())
        record[1 : 1 + self._keep].view("<i4")[:] = ids
        record[1 + self._keep :].view("<f4")[:] = row.values[ids] - offset

    def _write(self, data: memoryview) -> None:
        """Write all of it: an unbuffered file takes as much as it likes at a time."""
        assert self._file is not None
        left = data.cast("B")
        while left:
            left = left[self._file.write(left) :]

    def _failed(self, error: OSError) -> EngineError:
        self.discard()
        self._failure = EngineError(ErrorCode.WRITE_FAILED, path=str(self._path), detail=error.strerror or str(error))
        return self._failure
