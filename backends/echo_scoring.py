"""Logits without a model: the echo engine's distribution of the next byte, a pure function of the bytes before it.

Two scripts with equal seeds agree to the last bit; noise makes one differ from another as a quantization does. numpy is
loaded with the first score only: a worker that scores nothing stays small.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from backends import protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backends.scoring import ScoredText

VOCABULARY_TOKENS = 256
_SPREAD = 3.0  # of the logits: the likeliest byte gets about a third


class EchoScoring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the echo engine scores.

    Attributes:
        seed: of the noise.
        noise: how far the logits are from those of a script without noise, as a standard deviation.
        non_finite_rows: rows of every text, from 0, one of whose logits is no number.
        score_s: seconds a text takes.
    """

    seed: int = 0
    noise: float = 0.0
    non_finite_rows: tuple[int, ...] = ()
    score_s: float = 0.0


def logits(script: EchoScoring, token_ids: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the logits of what may follow these bytes, [V]."""
    import numpy as np

    digest = zlib.crc32(bytes(token_ids))
    values = _SPREAD * np.random.default_rng(digest).standard_normal(VOCABULARY_TOKENS)
    if script.noise:
        values += script.noise * np.random.default_rng((digest, script.seed)).standard_normal(VOCABULARY_TOKENS)
    return values.astype(np.float32)


def score(script: EchoScoring, command: protocol.Score, text: ScoredText) -> protocol.ScoreDone:
    """Score a text as the script says; raises EngineError for windows that cannot be read or written."""
    from backends.scoring import RowScorer

    with RowScorer(command, text, VOCABULARY_TOKENS) as scorer:
        for row in range(text.rows):
            values = logits(script, text.token_ids[: text.first_row + row + 1])
            if row in script.non_finite_rows:
                values[row % VOCABULARY_TOKENS] = float("nan")
            scorer.add(values[None, :])
        return scorer.finish(script.score_s, script.score_s)
