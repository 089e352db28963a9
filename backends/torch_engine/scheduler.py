"""Which tokens the next step computes, and into which blocks. Knows sequences and the block pool, no torch.

There is no phase of reading and none of writing: a sequence has computed and known tokens, and each step lets the first
catch up under one token budget. Those that are nearly there go first, then long texts in pieces, the highest priority
and the earliest arrival first. When blocks run out, the last in that order gives its blocks back and waits in front of
those that never ran; it is computed again later. The first in the order is never made to wait for another, so the
whole always moves on.

A step is `schedule`, the forward, then `commit` or `cancel`. The next one may be scheduled before that: steps are
committed in order and cancelled the newest first. Block tables are read right after `schedule`, before any other call.

References: engine.md section 0, decisions 4 and 5; section 8, bugs 2 to 8.
"""

from __future__ import annotations

import bisect
from collections import Counter, deque
from collections.abc import Iterator

from backends import protocol
from backends.torch_engine.block_pool import BlockPool
from backends.torch_engine.block_report import block_map, describe
from backends.torch_engine.sequence import Sequence
from backends.torch_engine.step_plan import Copy, Draft, Flight, PlanRow, StepPlan

__all__ = ["PlanRow", "Scheduler", "StepPlan"]


class Scheduler:
    """Sequences on their way through the blocks of one pool.

    A step computes at most `token_budget` tokens, which is raised to `max_sequences`: so many run at a time, and each
    may write its token. None is longer than `context_tokens`.

    Attributes:
        pool: where the blocks come from.
        running: the sequences that have blocks, first the one that is served first.
        waiting: the others, in the order in which they will be let in.
        starved: sequences for which the last `schedule` found no room though nothing else could give any: they can
            never go on. The engine ends them.
    """

    def __init__(self, pool: BlockPool, *, token_budget: int, max_sequences: int, context_tokens: int) -> None:
        if min(token_budget, max_sequences, context_tokens) < 1:
            raise ValueError("a scheduler needs room for one token of one sequence")
        self.pool = pool
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.starved: list[Sequence] = []
        self._token_budget = max(token_budget, max_sequences)
        self._max_sequences = max_sequences
        self._context_tokens = context_tokens
        self._arrivals = 0
        self._flights: deque[Flight] = deque()

    # ----------------------------------------------------------------------------------- come and go

    def fits(self, tokens: int) -> bool:
        """Whether a sequence of so many tokens can be computed when it is alone."""
        return tokens <= self._context_tokens and self.pool.blocks_for(tokens) <= self.pool.blocks

    def add(self, sequence: Sequence) -> None:
        """Let a sequence wait for its turn. One that can never fit is taken, too: `schedule` names it in `starved`."""
        assert sequence.chain.block_tokens == self.pool.block_tokens, "the sequence counts in other blocks"
        self._arrivals += 1
        sequence.arrival = self._arrivals
        bisect.insort(self.waiting, sequence, key=_order)

    def remove(self, sequence: Sequence, *, keep: bool = True) -> None:
        """End a sequence, whatever it is doing; steps in flight no longer count for it.

        Args:
            sequence: one that was added.
            keep: False makes the content of its blocks unknown, as far as no other sequence shares them.
        """
        if not sequence.is_running:
            self.waiting.remove(sequence)
            return
        self.running.remove(sequence)
        self._take_blocks(sequence, keep)

    def fork(self, parent: Sequence, request: protocol.Generate) -> Sequence:
        """Return a sequence that goes on from the parent's tokens, sharing its blocks.

        The block that is partly filled is copied once either of them writes to it. Where no place is free, the new
        sequence waits as any other and finds the full blocks by their text. The parent must not be in a step.
        """
        assert parent.scheduled == parent.computed, "the parent is in a step"
        child = parent.fork(request)
        if not parent.is_running or len(self.running) >= self._max_sequences:
            self.add(child)
            return child
        self._arrivals += 1
        child.arrival = self._arrivals
        child.block_table = parent.block_table[: self.pool.blocks_for(parent.computed)]
        self.pool.take(child.block_table)
        child.computed = child.scheduled = parent.computed
        child.begin(min(parent.computed, parent.prompt_tokens), "")
        child.is_running = True
        bisect.insort(self.running, child, key=_order)
        return child

    def roll_back(self, sequence: Sequence, computed: int) -> None:
        """Count only this many tokens as computed and give surplus blocks back; the sequence must not be in a step.

        What lies behind is written again, in a copy where somebody else needs it. `Sequence.cut` forgets the tokens.
        """
        assert sequence.scheduled == sequence.computed, "the sequence is in a step"
        assert 0 <= computed <= sequence.computed, f"{sequence.computed} tokens are computed"
        size = self.pool.blocks_for(computed)
        surplus, sequence.block_table = sequence.block_table[size:], sequence.block_table[:size]
        self.pool.release(surplus)
        sequence.computed = sequence.scheduled = computed

    def borrow(self, tokens: int) -> list[int]:
        """Return blocks for tokens of no sequence, with no step in flight; the pool's `release` gives them back.

        Whoever has to make room for them, the last in the order first, waits and is computed again.
        """
        assert not self._flights, "a step is in flight"
        count = self.pool.blocks_for(tokens)
        while self.pool.available < count and self.running:
            self._preempt(Draft(0), self.running[-1])
        return self.pool.allocate(count)

    def clear(self) -> None:
        """Forget every sequence, every step and all that is kept: nothing is known to be whole."""
        for sequence in (*self.running, *self.waiting):
            self.remove(sequence, keep=False)
        while self._flights:
            self.cancel(self._flights[-1].plan)
        self.pool.forget()
        self.starved = []

    # ------------------------------------------------------------------------------------------ steps

    def schedule(self) -> StepPlan:
        """Plan the next step. No rows: nothing can run now; what is in `starved` never will."""
        draft = Draft(self._token_budget)
        self.starved = []
        behind = []
        for sequence in tuple(self.running):
            pending = len(sequence.known) - sequence.scheduled
            if pending > self.pool.block_tokens:
                behind.append(sequence)
            elif pending:
                self._plan_row(draft, sequence)
        for sequence in behind:
            self._plan_row(draft, sequence)
        self._let_in(draft)
        plan = StepPlan(
            tuple(draft.rows.values()),
            tuple((made.source, made.target) for made in draft.copies.values()),
            tuple(draft.preempted),
        )
        if plan.rows:
            versions = tuple(row.sequence.version for row in plan.rows)
            self._flights.append(Flight(plan, self.pool.begin_step(), versions, tuple(draft.copies.values())))
        return plan

    def commit(self, plan: StepPlan) -> tuple[PlanRow, ...]:
        """Count the oldest step in flight: its KV is written. Full blocks are published now, not earlier.

        Returns:
            The rows that still count, for whose sequences a token may be sampled now. Missing are those of sequences
            that were removed or preempted since: what they would say is worked out again.
        """
        if not plan.rows:
            return ()
        flight = self._flights.popleft()
        assert flight.plan is plan, "an older step is in flight"
        self.pool.end_step(flight.step)
        size = self.pool.block_tokens
        rows = []
        for row, version in zip(plan.rows, flight.versions, strict=True):
            sequence = row.sequence
            if sequence.version != version:
                continue
            rows.append(row)
            full = sequence.computed // size
            sequence.computed = row.past + row.count
            for index in range(full, sequence.computed // size):
                self.pool.publish(sequence.block_table[index], sequence.chain, index, sequence.known)
        for made in flight.copies:
            self.pool.release([made.source])
        return tuple(rows)

    def cancel(self, plan: StepPlan) -> None:
        """Forget the newest step in flight: it failed or was interrupted, and wrote all, some or nothing."""
        if not plan.rows:
            return
        flight = self._flights.pop()
        assert flight.plan is plan, "a newer step is in flight"
        self.pool.end_step(flight.step)
        for row, version in zip(plan.rows, flight.versions, strict=True):
            if row.sequence.version == version:
                row.sequence.scheduled = row.past
        for made in flight.copies:
            self._undo(made)

    def _plan_row(self, draft: Draft, sequence: Sequence) -> None:
        """Give a running sequence its part of the budget, and the blocks for it."""
        past, known = sequence.scheduled, len(sequence.known)
        count = min(known - past, draft.budget)
        if not count or not sequence.is_running or not self._reserve(draft, sequence, past + count):
            return
        draft.rows[sequence] = PlanRow(sequence, past, count, past + count == known)
        draft.budget -= count
        sequence.scheduled = past + count

    # ----------------------------------------------------------------------------------------- blocks

    def _reserve(self, draft: Draft, sequence: Sequence, tokens: int) -> bool:
        """Return whether the sequence has blocks for so many tokens, and may write to them; gets what is missing."""
        pool, table = self.pool, sequence.block_table
        index = sequence.scheduled // pool.block_tokens
        is_begun = index < len(table)  # the block where the row begins may hold earlier tokens
        missing = max(0, pool.blocks_for(tokens) - len(table))
        is_shared = is_begun and pool.holders(table[index]) > 1
        if not self._make_room(draft, sequence, missing + is_shared):
            return False
        if is_begun and not pool.is_private(table[index]):
            if pool.holders(table[index]) > 1:  # still: the other holder may just have been preempted
                self._copy(draft, sequence, index)
            else:
                pool.unpublish(table[index])
        if missing:
            table += pool.allocate(missing, table[-1] if table else -1)
        return True

    def _copy(self, draft: Draft, sequence: Sequence, index: int) -> None:
        source = sequence.block_table[index]
        (target,) = self.pool.allocate(1, sequence.block_table[index - 1] if index else -1)
        sequence.block_table[index] = target
        draft.copies[sequence] = Copy(sequence, sequence.version, index, source, target)

    def _undo(self, made: Copy) -> None:
        """Put the source of a copy back in its place, if its sequence still has blocks; else let go of it."""
        block = made.source
        if made.sequence.version == made.version:
            block, made.sequence.block_table[made.index] = made.target, made.source
        self.pool.release([block])

    def _make_room(self, draft: Draft, sequence: Sequence, blocks: int) -> bool:
        """Return whether so many blocks are available to a running sequence; takes them from those behind it."""
        while self.pool.available < blocks:
            if self.pool.resting:
                return False  # the step in flight gives some back when it ends
            last = self.running[-1]
            if len(self.running) > 1:
                self._preempt(draft, last)
            elif not self._flights:
                self.starved.append(sequence)
            if last is sequence:
                return False
        return True

    def _preempt(self, draft: Draft, sequence: Sequence) -> None:
        """Take a sequence's blocks and let it wait in front of its class: it came earlier than those that wait."""
        if row := draft.rows.pop(sequence, None):
            draft.budget += row.count
        if made := draft.copies.pop(sequence, None):
            self._undo(made)
        self.running.remove(sequence)
        self._take_blocks(sequence, keep=True)
        sequence.preemptions += 1
        bisect.insort(self.waiting, sequence, key=_order)
        draft.preempted.append(sequence)

    def _take_blocks(self, sequence: Sequence, keep: bool) -> None:
        self.pool.release(sequence.block_table, keep)
        sequence.block_table = []
        sequence.computed = sequence.scheduled = 0
        sequence.version += 1
        sequence.is_running = False

    # -------------------------------------------------------------------------------------- admission

    def _let_in(self, draft: Draft) -> None:
        """Let waiting sequences in while there is budget and room; nobody overtakes."""
        for sequence in tuple(self.waiting):
            if not self.fits(len(sequence.known)):
                self.starved.append(sequence)
                continue
            if not draft.budget or not self._admit(draft, sequence):
                break
            self._plan_row(draft, sequence)
            if draft.preempted:
                break  # those wait in front of the rest

    def _admit(self, draft: Draft, sequence: Sequence) -> bool:
        """Give a waiting sequence all blocks that its known tokens take, kept ones first; False: there is no room.

        What is reused is found, counted and taken here, with nothing in between. The last known token is always
        computed again: its logits are what the next one is drawn from.
        """
        pool, known = self.pool, sequence.known
        most = (len(known) - 1) // pool.block_tokens
        # Each of those that go first may want a block before this one gets anything done.
        spare = sum(other.priority >= sequence.priority for other in self.running)
        is_full = len(self.running) >= self._max_sequences or pool.available <= spare
        if is_full and spare == len(self.running):
            return False  # so it is at most steps while it waits: nothing is looked up
        found = pool.match(sequence.chain, known, most)
        missing = pool.blocks_for(len(known)) - len(found)
        if len(self.running) >= self._max_sequences or pool.available_beside(found) < missing + spare:
            if not self._displace(draft, sequence, found, missing + spare):
                return False
            if pool.available_beside(found) < missing + spare:
                return False  # what the others gave back rests until the step in flight ends
        note = self._reuse_note(sequence, len(found), most)
        stride = self._stride()
        pool.take(found)
        sequence.block_table = found + pool.allocate(missing, found[-1] if found else -1, stride)
        sequence.computed = sequence.scheduled = len(found) * pool.block_tokens
        sequence.is_running = True
        if not sequence.has_begun:
            sequence.begin(sequence.computed, note)
        self.waiting.remove(sequence)
        bisect.insort(self.running, sequence, key=_order)
        return True

    def _displace(self, draft: Draft, sequence: Sequence, found: list[int], needed: int) -> bool:
        """Preempt just enough sequences of lower priority to let this one in; nobody, when all would not do."""
        room, places = self.pool.available_beside(found), self._max_sequences - len(self.running)
        taken, released = set(found), Counter[int]()
        victims = []
        for victim in reversed(self.running):
            if (room >= needed and places > 0) or victim.priority >= sequence.priority:
                break
            victims.append(victim)
            blocks = [block for block in victim.block_table if block not in taken]
            released.update(blocks)
            room += sum(released[block] == self.pool.holders(block) for block in blocks)
            places += 1
        if room < needed or places < 1:
            return False
        for victim in victims:
            self._preempt(draft, victim)
        return True

    def _reuse_note(self, sequence: Sequence, found: int, most: int) -> str:
        """Return "" when all was reused that could be, "differs" when what is kept goes another way, else "first"."""
        if found < most and self.pool.has_follower(sequence.chain, sequence.known, found):
            return "differs"
        return "" if found or not most else "first"

    def _stride(self) -> int:
        """Return how far apart new tables begin: as far as the pool allows for all that run and wait."""
        tables = min(len(self.running) + len(self.waiting), self._max_sequences)
        tables = min(1 << (tables - 1).bit_length(), self._max_sequences)
        return max(1, min(self.pool.blocks // tables, self.pool.blocks_for(self._context_tokens)))

    # --------------------------------------------------------------------------------------- telling

    def block_map(self, most_owners: int = 64) -> protocol.BlockMap:
        """Return the state of every block, and the tables of the first running sequences."""
        return block_map(self.pool, self.running[:most_owners])

    def describe(self, block: int) -> tuple[tuple[int, ...], int]:
        """Return the tokens whose KV lies in a block, none if there are none, and how many block tables name it."""
        return describe(self.pool, self.running, block)

    def check_invariants(self) -> None:
        """Compare sequences, steps and pool.

        Raises:
            AssertionError: with what does not agree.
        """
        self.pool.check_invariants(self._tables())
        size = self.pool.block_tokens
        for sequence in self.running:
            assert sequence.is_running, f"sequence {sequence.arrival} runs and does not know it"
            assert sequence.computed <= sequence.scheduled <= len(sequence.known), "more is computed than known"
            assert self.pool.blocks_for(sequence.scheduled) <= len(sequence.block_table), "tokens without a block"
            for index, block in enumerate(sequence.block_table):
                content, begin = self.pool.content(block), index * size
                if content and begin + size <= sequence.computed:
                    assert list(content) == sequence.known[begin : begin + size], f"block {block} holds another text"
        for sequence in self.waiting:
            assert not any((sequence.is_running, sequence.block_table, sequence.scheduled)), "who waits has blocks"
        for group in (self.running, self.waiting):
            assert group == sorted(group, key=_order), "out of order"

    def _tables(self) -> Iterator[list[int]]:
        yield from (sequence.block_table for sequence in self.running)
        yield from ([made.source] for flight in self._flights for made in flight.copies)


def _order(sequence: Sequence) -> tuple[int, int]:
    return sequence.order
