"""Log-probabilities of known tokens, teacher-forced: one text through the model, outside of all requests.

The text gets blocks of its own and nothing is reused or kept, so that the figures do not depend on what was computed
before. It goes through in pieces: as many tokens as a step takes while nothing is scored yet, then as many rows as
their logits may take of memory. What becomes of the rows is worked out in backends/scoring.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.scoring import RowScorer, ScoredText, scored_text
from backends.torch_engine.model_runner import Interrupted
from backends.torch_engine.parts import Parts
from backends.torch_engine.plain_path import PlainRunner
from backends.torch_engine.step_layout import RowInput

# Of one piece's logits as float32: with the largest vocabularies still 64 rows, which keep matrix products busy.
LOGITS_BYTES = 64 * 2**20


def score(parts: Parts, command: protocol.Score) -> protocol.ScoreDone:
    """Do one Score command; no step may be in flight.

    Raises:
        EngineError: what scored_text and RowScorer raise; DECODE_FAILED where it was stopped.
    """
    began_s = time.monotonic()
    prompt_ids = parts.vocabulary.encode(command.prompt) if command.prompt is not None else []
    text = scored_text(command, prompt_ids, parts.vocabulary_tokens, parts.context_tokens)
    blocks = parts.scheduler.borrow(len(text.token_ids) - 1)
    forward = _Forward(parts, text, blocks)
    try:
        pieces = forward.pieces()
        first = next(pieces)  # only the model knows how wide its rows are: often wider than its vocabulary
        with RowScorer(command, text, first.shape[1]) as scorer:
            scorer.add(first)
            for logits in pieces:
                scorer.add(logits)
            return scorer.finish(forward.took_s, time.monotonic() - began_s)
    except Interrupted:
        raise EngineError(ErrorCode.DECODE_FAILED, detail="scoring was stopped") from None
    finally:
        if isinstance(parts.runner, PlainRunner):
            parts.runner.forget(blocks[0])
        parts.scheduler.pool.release(blocks)


class _Forward:
    """A text's way through the model.

    Attributes:
        took_s: what the passes have taken so far, until their logits lay in the processor's memory.
    """

    def __init__(self, parts: Parts, text: ScoredText, blocks: Sequence[int]) -> None:
        self.took_s = 0.0
        self._parts = parts
        self._text = text
        self._blocks = blocks

    def pieces(self) -> Iterator[NDArray[np.float32]]:
        """Yield the logits of the text's rows in order, [n, V] at a time."""
        text = self._text
        width = max(
            self._parts.vocabulary_tokens, getattr(self._parts.loaded.config.get_text_config(), "vocab_size", 0)
        )
        most_rows = max(1, LOGITS_BYTES // (4 * width))
        for begin, end, rows in cut(len(text.token_ids) - 1, text.first_row, self._parts.step_tokens, most_rows):
            row = RowInput(text.token_ids[begin:end], begin, self._blocks, rows > 0, max(1, rows))
            began_s = time.monotonic()
            logits: NDArray[np.float32] = self._parts.runner.run([row]).cpu().numpy()
            self.took_s += time.monotonic() - began_s
            if rows:
                yield logits


def cut(tokens: int, first_row: int, step_tokens: int, most_rows: int) -> Iterator[tuple[int, int, int]]:
    """Yield (begin, end, rows): the tokens of a piece, and how many of its last ones are scored.

    The first scored rows come in one piece with the tokens before them, as far as a step takes both.

    Args:
        tokens: how many are computed; all from first_row on are scored.
        first_row: the first one that is scored.
        step_tokens: how many a piece has at most.
        most_rows: how many of them are scored at most.
    """
    begin = 0
    while begin < tokens:
        end = min(tokens, begin + step_tokens, max(begin, first_row) + most_rows)
        yield begin, end, max(0, end - max(begin, first_row))
        begin = end
