"""A request on its way through the blocks: tokens known, computed, said. Knows integers and times, no torch."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence as Ids

from backends import protocol
from backends.detokenizer import Detokenizer
from backends.torch_engine.block_pool import BLOCK_TOKENS, Chain


class Sequence:
    """One request and its tokens; each step lets the computed tokens catch up with the known ones.

    The engine appends and cuts tokens; everything about blocks is written by the scheduler alone.

    Attributes:
        request: what was asked.
        known: every token id so far: the prompt, the continued answer, then what was sampled.
        computed: how many of them have their KV in blocks.
        scheduled: `computed` and what the steps in flight compute.
        block_table: the blocks that hold them, in the order of the text; at least what `scheduled` needs.
        chain: the hashes of the full blocks.
        prompt_tokens: how many tokens were given.
        reused: how many of those lay in blocks before this request.
        reuse_note: a code for why not all that was kept was reused, "" when it was.
        new_tokens: how many were sampled.
        preemptions: how often the blocks were taken away.
        salt: only sequences with equal salts share blocks.
        priority: higher is served first.
        arrival: a number that grows with each sequence of a scheduler.
        version: changes whenever blocks are taken away, so that a step in flight can tell.
        is_running: whether the sequence has blocks and takes part in steps.
    """

    def __init__(
        self, request: protocol.Generate, token_ids: Ids[int], salt: bytes = b"", block_tokens: int = BLOCK_TOKENS
    ) -> None:
        self.request = request
        self.known = list(token_ids)
        self.computed = 0
        self.scheduled = 0
        self.block_table: list[int] = []
        self.chain = Chain(salt, block_tokens)
        self.prompt_tokens = len(self.known)
        self.reused = 0
        self.reuse_note = ""
        self.new_tokens = 0
        self.preemptions = 0
        self.salt = salt
        self.priority = request.priority
        self.arrival = 0
        self.version = 0
        self.is_running = False
        self.has_begun = False
        self.detokenizer = Detokenizer(request.params.stop)
        self._added_s = time.monotonic()
        self._began_s = self._added_s
        self._first_token_s = 0.0

    @property
    def order(self) -> tuple[int, int]:
        """Its place among others: the highest priority first, then who came first."""
        return -self.priority, self.arrival

    @property
    def is_reading(self) -> bool:
        """Whether given tokens are still to be computed."""
        return self.new_tokens == 0

    def begin(self, reused: int, note: str) -> None:
        """Note that the sequence gets its first blocks, with this many tokens reused."""
        self.has_begun = True
        self.reused = reused
        self.reuse_note = note
        self._began_s = time.monotonic()

    def append(self, token: int) -> None:
        """Take the sampled token: the one place where a token joins a sequence."""
        self.known.append(token)
        self.new_tokens += 1
        self._first_token_s = self._first_token_s or time.monotonic()

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

    def figures(self, seed: int) -> protocol.RequestFigures:
        """Return what the request took so far."""
        now_s = time.monotonic()
        first_s = self._first_token_s or now_s
        return protocol.RequestFigures(
            prompt_tokens=self.prompt_tokens,
            reused_tokens=self.reused,
            reuse_note=self.reuse_note,
            new_tokens=self.new_tokens,
            ttft_s=first_s - self._added_s if self.new_tokens else 0.0,
            prefill_s=max(0.0, first_s - self._began_s) if self.has_begun else 0.0,
            decode_s=now_s - first_s if self.new_tokens else 0.0,
            seed=seed,
            preemptions=self.preemptions,
        )
