"""A request on its way through an engine: tokens known, computed, said, and what that took. Integers and times only."""

from __future__ import annotations

import time
from collections.abc import Sequence as Ids

from backends import protocol
from backends.detokenizer import Detokenizer


class BaseSequence:
    """One request and its tokens; each step lets the computed tokens catch up with the known ones.

    Attributes:
        request: what was asked.
        known: every token id so far: the prompt, the continued answer, then what was sampled.
        computed: how many of them have their KV.
        prompt_tokens: how many of them were given.
        reused: how many of those were computed before this request.
        reuse_note: a code for why not all of the earlier ones were reused, "" when they were.
        new_tokens: how many were sampled.
        preemptions: how often what was computed was taken away.
    """

    def __init__(self, request: protocol.Generate, token_ids: Ids[int]) -> None:
        self.request = request
        self.known = list(token_ids)
        self.computed = 0
        self.prompt_tokens = len(self.known)
        self.reused = 0
        self.reuse_note = ""
        self.new_tokens = 0
        self.preemptions = 0
        self.has_begun = False
        self.detokenizer = Detokenizer(request.params.stop)
        self._added_s = time.monotonic()
        self._began_s = self._added_s
        self._first_token_s = 0.0

    def begin(self, reused: int, note: str) -> None:
        """Note that the first step starts, with this many tokens reused."""
        self.has_begun = True
        self.reused = reused
        self.reuse_note = note
        self._began_s = time.monotonic()

    @property
    def is_reading(self) -> bool:
        """Whether given tokens are still to be computed."""
        return self.new_tokens == 0

    def append(self, token: int) -> None:
        """Take the sampled token: the one place where a token joins a sequence."""
        self.known.append(token)
        self.new_tokens += 1
        self._first_token_s = self._first_token_s or time.monotonic()

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
