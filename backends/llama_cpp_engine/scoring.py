"""Scoring in a context of its own, beside the chat's: what a chat keeps in its context stays there.

llama.cpp holds the logits of every row asked for twice, in the compute buffer and in the output buffer, 4 * rows * V
bytes each. So a text is decoded in pieces, each with logits for a bounded number of rows, which are scored before the
next piece is decoded. The context is only as long as the text that is scored.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import llama_cpp as llama
import msgspec
import numpy as np

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading
from backends.llama_cpp_engine.batch import Batch
from backends.llama_cpp_engine.engine_log import EngineLog
from backends.scoring import RowScorer, ScoredText

# What llama_decode returns.
_DECODED, _NO_ROOM, _ABORTED = 0, 1, 2
# Logits of a piece, counted once. A piece has at least MIN_PIECE_ROWS all the same: below 64 rows llama.cpp computes
# attention on the CPU another way, and the same text would give other figures, in the last digits, than in one batch.
_PIECE_BYTES = 32 * 2**20
MIN_PIECE_ROWS = 64
_CELLS = 256  # llama.cpp rounds the length of a context up to whole ones of these


class ScoringContext:
    """A context for Score, made when it is first needed and kept for the next; close it.

    Attributes:
        _length: tokens that fit into it; 0 while there is none.
    """

    def __init__(self, model: Any, params: protocol.LoadParams, log: EngineLog, abort_flag: Any) -> None:
        """Note what the context is to be made of.

        Args:
            model: the loaded model.
            params: how it was loaded: KV type, micro-batch and threads are the same here.
            log: takes llama.cpp's lines.
            abort_flag: the byte that ends llama_decode, see loading.context_params.
        """
        self._model = model
        self._params = params
        self._log = log
        self._abort_flag: ctypes.Array[ctypes.c_char] = abort_flag
        self._vocabulary_tokens: int = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
        self._piece_rows = piece_rows(self._vocabulary_tokens, params.micro_batch_tokens)
        self._context: Any = None
        self._batch: Batch | None = None
        self._length = 0

    def score(self, command: protocol.Score, text: ScoredText) -> protocol.ScoreDone:
        """Decode a text and score its rows; raises EngineError, INTERRUPTED when the flag was raised meanwhile."""
        began_s = time.perf_counter()
        prefill_s = 0.0
        batch = self._prepare(len(text.token_ids))
        threads = llama.llama_n_threads(self._context)
        with RowScorer(command, text, self._vocabulary_tokens, threads=threads) as scorer:
            length = len(text.token_ids)  # the last one too, which predicts nothing: a window is a whole batch with it
            for start, end in pieces(length, text.first_row, self._piece_rows, batch.capacity):
                wanted, rows_end = max(text.first_row, start), min(end, length - 1)
                batch.fill(text.token_ids[start:end], start, wants_logits=False)
                batch.want_logits(wanted - start, rows_end - start)
                decode_began_s = time.perf_counter()
                self._decode(batch)
                prefill_s += time.perf_counter() - decode_began_s
                if wanted < rows_end:
                    scorer.add(self._logits(rows_end - wanted))
            return scorer.finish(prefill_s, time.perf_counter() - began_s)

    def close(self) -> None:
        """Give its memory back; the next score makes it anew."""
        if self._batch is not None:
            self._batch.close()
        if self._context is not None:
            llama.llama_free(self._context)
        self._context = self._batch = None
        self._length = 0

    def _prepare(self, length: int) -> Batch:
        """Return the batch of an empty context of at least this length."""
        if self._batch is None or length > self._length:
            self.close()
            self._context, self._length = self._create(length)
            self._batch = Batch(llama.llama_n_ubatch(self._context))
        llama.llama_memory_clear(llama.llama_get_memory(self._context), True)
        return self._batch

    def _create(self, length: int) -> tuple[Any, int]:
        cells = -(-length // _CELLS) * _CELLS
        wanted = msgspec.structs.replace(self._params, context_tokens=cells, max_sequences=1, allow_long_context=True)
        params = loading.context_params(self._model, wanted, self._abort_flag)
        params.n_outputs_max = self._piece_rows
        with self._log.held():
            self._log.clear()
            context = llama.llama_init_from_model(self._model, params)
            if not context:
                raise loading.context_error(params.n_ctx, self._log.problems())
        return context, cells

    def _decode(self, batch: Batch) -> None:
        code = llama.llama_decode(self._context, batch.handle)
        if code == _DECODED:
            llama.llama_synchronize(self._context)
            return
        if code == _ABORTED:
            raise EngineError(ErrorCode.INTERRUPTED, command="Score")
        if code == _NO_ROOM:
            raise EngineError(ErrorCode.NO_KV_ROOM, context_tokens=self._length)
        raise EngineError(ErrorCode.DECODE_FAILED, detail=f"llama_decode returned {code}")

    def _logits(self, rows: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return llama.cpp's own buffer of the rows just decoded, [rows, V]; the next decode overwrites it."""
        pointer = llama.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, (rows, self._vocabulary_tokens))


def piece_rows(vocabulary_tokens: int, micro_batch_tokens: int) -> int:
    """Return for how many rows logits are asked at a time.

    Args:
        vocabulary_tokens: V.
        micro_batch_tokens: no piece is larger.
    """
    fitting = _PIECE_BYTES // (4 * vocabulary_tokens) // MIN_PIECE_ROWS * MIN_PIECE_ROWS
    return max(1, min(max(fitting, MIN_PIECE_ROWS), micro_batch_tokens))


def pieces(length: int, first_row: int, most_rows: int, most_tokens: int) -> list[tuple[int, int]]:
    """Return the pieces in which positions 0 to length are decoded, as (start, end), in order.

    They are as long as they may be and begin at whole MIN_PIECE_ROWS: llama.cpp computes rearranged weights for four
    positions at a time and what is left over in another way, so that a rest in the middle of a text would give it other
    figures than one batch does. The last one is no smaller than that either, where there are more.

    Args:
        length: how many positions there are.
        first_row: positions from here on are scored.
        most_rows: scored positions of a piece.
        most_tokens: positions of a piece.
    """
    cut: list[tuple[int, int]] = []
    start = 0
    while start < length:
        end = min(start + most_tokens, max(first_row, start) + most_rows)
        if end < length:
            whole = end // MIN_PIECE_ROWS * MIN_PIECE_ROWS
            if length - whole < MIN_PIECE_ROWS:
                whole -= MIN_PIECE_ROWS
            end = whole if whole > start else end
        cut.append((start, min(end, length)))
        start = cut[-1][1]
    return cut
