"""The starter model's vocabulary as bytes, and figures for tests of chance."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from backends.llama_cpp_engine.engine_log import EngineLog
from backends.llama_cpp_engine.vocabulary import Vocabulary


@dataclass
class StarterPieces:
    """What the starter's tokens are; `model` is llama.cpp's, with a vocabulary and no weights."""

    model: Any
    pieces: list[bytes]
    end_ids: list[int]

    def ids_of(self, data: bytes) -> list[int]:
        """Cut bytes into the longest tokens that fit."""
        table = {piece: token for token, piece in enumerate(self.pieces) if piece}
        found = []
        while data:
            length = next(length for length in range(min(32, len(data)), 0, -1) if data[:length] in table)
            found.append(table[data[:length]])
            data = data[length:]
        return found


@contextlib.contextmanager
def starter_pieces(path: Path) -> Iterator[StarterPieces]:
    """Load the vocabulary for as long as the context lasts."""
    log = EngineLog()
    log.install()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    vocabulary = Vocabulary(model)
    pieces = [vocabulary.piece(token) for token in range(vocabulary.size)]
    yield StarterPieces(model, pieces, [token for token in range(vocabulary.size) if vocabulary.ends_text(token)])
    llama_cpp.llama_model_free(model)


def chi_square_excess(counts: np.ndarray, expected: np.ndarray) -> float:
    """Return how many standard deviations a chi-square statistic lies above its mean (Wilson and Hilferty, 1931).

    Outcomes that are expected fewer than five times are taken together. Beyond 5 has odds of 3e-7.
    """
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = int(np.searchsorted(np.cumsum(expected), 5.0)) + 1 if expected[0] < 5 else 0
    counts = np.concatenate([[counts[:rare].sum()], counts[rare:]]) if rare > 1 else counts
    expected = np.concatenate([[expected[:rare].sum()], expected[rare:]]) if rare > 1 else expected
    freedom = len(counts) - 1
    assert freedom > 0, "one outcome only"
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return (math.cbrt(statistic / freedom) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
