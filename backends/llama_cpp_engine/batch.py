"""One long-lived llama_batch, filled through numpy views: no Python loop over a prompt's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llama_cpp as llama
import numpy as np


class Batch:
    """A batch of up to `capacity` tokens of one sequence; close it.

    Attributes:
        capacity: how many tokens fit.
        handle: the C structure for llama_decode.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.handle: Any = llama.llama_batch_init(capacity, 0, 1)
        shape = (capacity,)
        self._tokens = np.ctypeslib.as_array(self.handle.token, shape)  # int32 [T]
        self._positions = np.ctypeslib.as_array(self.handle.pos, shape)  # int32 [T]
        self._wants_logits = np.ctypeslib.as_array(self.handle.logits, shape)  # int8 [T]
        np.ctypeslib.as_array(self.handle.n_seq_id, shape)[:] = 1
        for row in range(capacity):
            self.handle.seq_id[row][0] = 0
        self._range = np.arange(capacity, dtype=np.int32)

    def fill(self, token_ids: Sequence[int], first_position: int, *, wants_logits: bool) -> None:
        """Set the batch to these tokens at consecutive positions; logits only for the last, and only if wanted."""
        count = len(token_ids)
        self._tokens[:count] = token_ids
        self._positions[:count] = self._range[:count] + first_position
        self._wants_logits[:count] = 0
        self._wants_logits[count - 1] = wants_logits
        self.handle.n_tokens = count

    def want_logits(self, first: int, last: int) -> None:
        """Ask for the logits of the batch's tokens first to last, without last."""
        self._wants_logits[first:last] = 1

    def fill_one(self, token: int, position: int) -> None:
        """Set the batch to one token whose logits are wanted."""
        self._tokens[0] = token
        self._positions[0] = position
        self._wants_logits[0] = 1
        self.handle.n_tokens = 1

    def close(self) -> None:
        """Free the arrays."""
        if self.handle is not None:
            llama.llama_batch_free(self.handle)
            self.handle = None
