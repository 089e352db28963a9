"""A model made of integers: what it says is a pure function of the whole text as read through the block table.

Its KV cache is filled with poison at first. Whoever reads a wrong block, an unwritten one, or one that somebody else
wrote to, says something else than `alone` says of the same text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Ids
from dataclasses import dataclass

import numpy as np

from backends import protocol
from backends.torch_engine.block_pool import BlockPool
from backends.torch_engine.scheduler import PlanRow, Scheduler, StepPlan
from backends.torch_engine.sequence import Sequence

VOCABULARY = 40
POISON = 0xDEAD_BEEF_DEAD_BEEF
_MASK = (1 << 64) - 1
_WEIGHTS = np.random.default_rng(1).integers(1, 1 << 63, 4096, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def mix(*values: int) -> int:
    """Return 64 well-stirred bits of some integers (the finalizer of splitmix64)."""
    state = 0x9E37_79B9_7F4A_7C15
    for value in values:
        state = (state ^ value) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
        state ^= state >> 31
    return state


def compute(kv_before: np.ndarray, token_ids: Ids[int]) -> tuple[list[int], int]:
    """Return the KV of tokens behind this KV [past], and the "logits" at the last of them."""
    past = len(kv_before)
    total = int((kv_before * _WEIGHTS[:past]).sum(dtype=np.uint64))
    kv = []
    for position, token in enumerate(token_ids, past):
        kv.append(mix(token, position, total))
        total = (total + kv[-1] * int(_WEIGHTS[position])) & _MASK
    return kv, total


def draw(logits: int, seed: int, position: int) -> int:
    """Return the next token: randomness comes from the seed and the position alone."""
    return mix(logits, seed, position) % VOCABULARY


def alone(token_ids: Ids[int], new_tokens: int, seed: int = 0) -> list[int]:
    """Return what follows this text when nothing else runs and all is computed at once."""
    known, kv = list(token_ids), np.zeros(0, np.uint64)
    for _ in range(new_tokens):
        more, logits = compute(kv, known[len(kv) :])
        kv = np.append(kv, np.array(more, np.uint64))
        known.append(draw(logits, seed, len(known)))
    return known[len(token_ids) :]


@dataclass
class Launched:
    """A step with the tokens and block tables as they were when it was planned."""

    plan: StepPlan
    rows: list[tuple[PlanRow, list[int], np.ndarray]]  # row, its token ids, block and offset of each token [2, T]
    written: list[set[int]]


class FakeModel:
    """The KV of every block [blocks + 1, block_tokens]; the last one takes what padded rows write: zeros."""

    def __init__(self, blocks: int, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.kv = np.full((blocks + 1, block_tokens), POISON, np.uint64)
        self.in_flight: deque[Launched] = deque()

    def launch(self, plan: StepPlan) -> Launched:
        """Note what a plan will do, and that nobody else's step in flight writes to the same blocks (bug 7)."""
        launched = Launched(plan, [], [])
        for row in plan.rows:
            positions = np.arange(row.past + row.count)
            table = np.array(row.sequence.block_table)
            places = np.stack([table[positions // self.block_tokens], positions % self.block_tokens])
            launched.rows.append((row, row.sequence.known[row.past : row.past + row.count], places))
            launched.written.append(set(places[0, row.past :].tolist()))
        for earlier in self.in_flight:
            for theirs, their_blocks in zip(earlier.plan.rows, earlier.written, strict=True):
                for ours, our_blocks in zip(plan.rows, launched.written, strict=True):
                    assert ours.sequence is theirs.sequence or not our_blocks & their_blocks, "a step in flight"
        blocks = [block for written in launched.written for block in written]
        assert len(blocks) == len(set(blocks)), "two rows write to one block"
        self.in_flight.append(launched)
        return launched

    def execute(self, launched: Launched, padded_rows: int = 1, only: int | None = None) -> dict[Sequence, int]:
        """Copy, read, then write; return the logits of the rows that want them.

        Every row reads what was there before the step: an engine may do its rows in any order. `only` stops after so
        many rows, as an interruption would. Everything but the blocks written to must stay as it is (bug 8).
        """
        before = self.kv.copy()
        if launched.plan.copies:
            sources, targets = (list(blocks) for blocks in zip(*launched.plan.copies, strict=True))
            self.kv[targets] = self.kv[sources]
        touched = {target for _, target in launched.plan.copies} | set().union(*launched.written)
        read = self.kv.copy()
        logits = {}
        for row, token_ids, (blocks, offsets) in launched.rows[:only]:
            kv, total = compute(read[blocks[: row.past], offsets[: row.past]], token_ids)
            self.kv[blocks[row.past :], offsets[row.past :]] = kv
            if row.wants_logits:
                logits[row.sequence] = total
        self.kv[-1, : min(padded_rows, self.block_tokens)] = 0
        untouched = [block for block in range(len(self.kv) - 1) if block not in touched]
        assert (self.kv[untouched] == before[untouched]).all(), "a block that nobody wrote to has changed"
        return logits


class FakeEngine:
    """Scheduler and fake model in one loop; requests are numbered, and their answers compared with `alone`.

    Attributes:
        said: request number -> the tokens that were sampled, for requests that ended as they should.
        starved: numbers of requests that were ended for want of blocks.
    """

    def __init__(
        self, blocks: int, *, block_tokens: int = 4, token_budget: int = 16, max_sequences: int = 4, keeps: bool = True
    ) -> None:
        self.pool = BlockPool(blocks, block_tokens, keeps)
        self.scheduler = Scheduler(
            self.pool, token_budget=token_budget, max_sequences=max_sequences, context_tokens=1024
        )
        self.model = FakeModel(blocks, block_tokens)
        self.said: dict[int, list[int]] = {}
        self.starved: list[int] = []
        self.computed_tokens = 0
        self.preempted = 0
        self._numbers = 0

    def request(self, new_tokens: int, seed: int = 0, priority: int = 0) -> protocol.Generate:
        """Return a request with the next number."""
        self._numbers += 1
        params = protocol.SamplingParams(max_tokens=new_tokens, seed=seed)
        number = protocol.RequestId(self._numbers)
        return protocol.Generate(request_id=number, prompt=protocol.TokenIds(()), params=params, priority=priority)

    def add(
        self, token_ids: Ids[int], new_tokens: int = 4, seed: int = 0, priority: int = 0, salt: bytes = b""
    ) -> Sequence:
        """Ask for an answer of so many tokens."""
        request = self.request(new_tokens, seed, priority)
        sequence = Sequence(request, token_ids, salt, self.pool.block_tokens)
        self.scheduler.add(sequence)
        return sequence

    def plan(self) -> StepPlan:
        """Schedule and launch the next step."""
        plan = self.scheduler.schedule()
        self.preempted += len(plan.preempted)
        if plan.rows:
            self.model.launch(plan)
        for sequence in self.scheduler.starved:
            self.starved.append(sequence.request.request_id)
            self.scheduler.remove(sequence)
        self.scheduler.check_invariants()
        return plan

    def land(self) -> None:
        """Execute and commit the oldest step in flight; take the tokens that it gives."""
        launched = self.model.in_flight.popleft()
        logits = self.model.execute(launched)
        self.computed_tokens += sum(row.count for row in launched.plan.rows)
        for row in self.scheduler.commit(launched.plan):
            if row.wants_logits:
                self._take(row.sequence, logits[row.sequence])
        self.scheduler.check_invariants()

    def break_off(self, rows: int) -> None:
        """Cancel the newest step in flight after so many of its rows were computed."""
        launched = self.model.in_flight.pop()
        self.model.execute(launched, only=rows)
        self.scheduler.cancel(launched.plan)
        self.scheduler.check_invariants()

    def step(self) -> StepPlan:
        """Do one whole step."""
        plan = self.plan()
        if plan.rows:
            self.land()
        return plan

    def run(self) -> None:
        """Step until nothing is left to do."""
        while self.scheduler.running or self.scheduler.waiting or self.model.in_flight:
            while self.model.in_flight:
                self.land()
            plan = self.step()
            busy = plan.rows or plan.preempted or self.scheduler.starved
            assert busy or not (self.scheduler.running or self.scheduler.waiting), "nothing moves"

    def _take(self, sequence: Sequence, logits: int) -> None:
        """Append the sampled token, and end the request that has all it asked for."""
        params = sequence.request.params
        sequence.append(draw(logits, params.seed or 0, len(sequence.known)))
        if sequence.new_tokens == params.max_tokens:
            self.said[sequence.request.request_id] = sequence.known[sequence.prompt_tokens :]
            self.scheduler.remove(sequence)
