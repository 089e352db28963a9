"""A request on its way through the blocks: tokens known, computed, said. Knows integers and times, no torch."""

from __future__ import annotations

import copy
from collections.abc import Sequence as Ids

from backends import protocol
from backends.sequence import BaseSequence
from backends.torch_engine.block_pool import BLOCK_TOKENS, Chain


class Sequence(BaseSequence):
    """One request and its tokens; each step lets the computed tokens catch up with the known ones.

    The engine appends and cuts tokens; everything about blocks is written by the scheduler alone.

    Attributes:
        scheduled: `computed` and what the steps in flight compute.
        block_table: the blocks that hold them, in the order of the text; at least what `scheduled` needs.
        chain: the hashes of the full blocks.
        salt: only sequences with equal salts share blocks.
        priority: higher is served first.
        arrival: a number that grows with each sequence of a scheduler.
        version: changes whenever blocks are taken away, so that a step in flight can tell.
        is_running: whether the sequence has blocks and takes part in steps.
    """

    def __init__(
        self, request: protocol.Generate, token_ids: Ids[int], salt: bytes = b"", block_tokens: int = BLOCK_TOKENS
    ) -> None:
        super().__init__(request, token_ids)
        self.scheduled = 0
        self.block_table: list[int] = []
        self.chain = Chain(salt, block_tokens)
        self.salt = salt
        self.priority = request.priority
        self.arrival = 0
        self.version = 0
        self.is_running = False

    @property
    def order(self) -> tuple[int, int]:
        """Its place among others: the highest priority first, then who came first."""
        return -self.priority, self.arrival

    def cut(self, tokens: int) -> None:
        """Forget the known tokens behind this many, such as refused drafts; they must not be computed any more."""
        assert self.scheduled <= tokens, f"{self.scheduled} tokens are computed or in flight"
        gone = max(0, len(self.known) - tokens)
        assert gone <= self.new_tokens, "given tokens are not cut"
        del self.known[tokens:]
        self.new_tokens -= gone
        self.chain.cut(tokens // self.chain.block_tokens)

    def fork(self, request: protocol.Generate) -> Sequence:
        """Return another sequence with the same tokens so far and no blocks yet; Scheduler.fork shares them."""
        child = Sequence(request, self.known, self.salt, self.chain.block_tokens)
        child.prompt_tokens = self.prompt_tokens
        child.new_tokens = self.new_tokens
        child.chain = self.chain.copy()
        child.detokenizer = copy.deepcopy(self.detokenizer)
        child._first_token_s = self._first_token_s and child._added_s
        return child
