"""Who holds which KV block: reference counts, blocks kept for later requests, and runs of neighbours.

Knows block numbers and token ids; no tensor and no sequence. A block is free, kept (nobody holds it, its content may be
asked for again), held in one block table, or in several. The KV cache has one block more, number `blocks`: padded rows
write there, and the pool never hands it out.

What lies where, since attention on the CPU reads a run of consecutive blocks without a copy:

- a table goes on with the block after its last one whenever that one is free;
- else the blocks asked for together are one run if any free run is long enough, otherwise the fewest that there are;
- with a stride, a new table begins at a multiple of it where so much room is free: tables that begin together are
  evenly spaced. Nothing is ever refused because the free blocks lie apart.

Free blocks go first, then those kept longest. A large pool gives up a few together: they mostly lie side by side.

References: engine.md section 0, decisions 4 and 5; section 8, bugs 2 to 8.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BLOCK_TOKENS = 16

_FREE, _KEPT, _USED, _SHARED = range(4)
# Nobody holds the block any more, yet a step in flight may still touch it; the second has content worth keeping.
_RESTING, _RESTING_KEPT = 4, 5
_SHOWN = bytes(range(4)) + bytes((_FREE, _KEPT)) + bytes(250)
_FREE_RUN = re.compile(rb"\0+")
_SHARED_ROOM = 16  # free blocks that are worth sharing with the table in front of them
_MOST_GIVEN_UP = 8  # kept blocks given up at once; a small pool gives up one at a time
_DIGEST_BYTES = 32  # long enough that nobody finds two texts with one hash


class Chain:
    """The hashes of one text's full blocks; each covers the salt and every token before its end.

    Equal digests mean equal text under an equal salt. A digest is worked out once, when it is first asked for.
    """

    def __init__(self, salt: bytes = b"", block_tokens: int = BLOCK_TOKENS) -> None:
        self.block_tokens = block_tokens
        self._digests = [hashlib.blake2b(salt, digest_size=_DIGEST_BYTES).digest()]

    def digest(self, blocks: int, token_ids: Sequence[int]) -> bytes:
        """Return the hash of the text's first full blocks, this many; that of 0 blocks is the salt's."""
        digests, size = self._digests, self.block_tokens
        while len(digests) <= blocks:
            end = len(digests) * size
            own = array("q", token_ids[end - size : end]).tobytes()
            digests.append(hashlib.blake2b(digests[-1] + own, digest_size=_DIGEST_BYTES).digest())
        return digests[blocks]

    def cut(self, blocks: int) -> None:
        """Forget what was worked out behind this many blocks: their text may change."""
        del self._digests[blocks + 1 :]

    def copy(self) -> Chain:
        """Return a chain that goes its own way from here."""
        other = Chain(block_tokens=self.block_tokens)
        other._digests = self._digests.copy()
        return other


@dataclass(frozen=True, slots=True)
class _Content:
    """What a published block holds: its tokens, and the hashes with and without them."""

    digest: bytes
    parent: bytes
    token_ids: tuple[int, ...]


class BlockPool:
    """The blocks 0 to blocks - 1 and everything that is known of each.

    A published block is full, its KV is written, and other sequences may find it by its text. Whoever publishes says so
    after the step that wrote it; a second block with the same content stays private to its holder.

    Attributes:
        blocks: how many there are.
        block_tokens: tokens in one.
        keeps_prefixes: whether blocks are published at all.
    """

    def __init__(self, blocks: int, block_tokens: int = BLOCK_TOKENS, keeps_prefixes: bool = True) -> None:
        if blocks < 1 or block_tokens < 1:
            raise ValueError("a pool has at least one block of at least one token")
        self.blocks = blocks
        self.block_tokens = block_tokens
        self.keeps_prefixes = keeps_prefixes
        self._states = bytearray(blocks)  # all free
        self._holders = [0] * blocks
        self._free = blocks
        self._content: dict[int, _Content] = {}
        self._by_digest: dict[bytes, int] = {}
        self._followers: Counter[bytes] = Counter()  # published blocks that follow the text with this hash
        self._kept: OrderedDict[int, None] = OrderedDict()  # the one released first stands first
        self._resting: dict[int, int] = {}  # block -> the last step that was in flight when it was released
        self._in_flight: list[int] = []
        self._steps = 0
        self._given_up_at_once = min(_MOST_GIVEN_UP, max(1, blocks // 64))

    # ------------------------------------------------------------------------------------------ counts

    @property
    def available(self) -> int:
        """Blocks that can be handed out now: free ones and kept ones."""
        return self._free + len(self._kept)

    @property
    def kept(self) -> int:
        """Blocks that nobody holds and whose content may be asked for again."""
        return len(self._kept)

    @property
    def resting(self) -> int:
        """Blocks that were released and wait for a step in flight."""
        return len(self._resting)

    @property
    def used(self) -> int:
        """Blocks that somebody holds, each counted once."""
        return self.blocks - self.available - len(self._resting)

    def blocks_for(self, tokens: int) -> int:
        """Return how many blocks so many tokens take."""
        return -(-tokens // self.block_tokens)

    def states(self) -> bytes:
        """Return one byte a block, as protocol.BlockMap has it: 0 free, 1 kept, 2 used, 3 shared."""
        return bytes(self._states.translate(_SHOWN))

    def content(self, block: int) -> tuple[int, ...]:
        """Return the tokens of a published block, nothing for another."""
        content = self._content.get(block)
        return content.token_ids if content else ()

    def holders(self, block: int) -> int:
        """Return how often a block is held: by block tables, and by steps that copy it."""
        return self._holders[block]

    def is_private(self, block: int) -> bool:
        """Whether the only holder of this block may write to it: nobody else has it, nobody can find it."""
        return self._holders[block] == 1 and block not in self._content

    # ------------------------------------------------------------------------------------------- steps

    def begin_step(self) -> int:
        """Return the number of a step that goes in flight: what is released now stays untouched until it ends."""
        self._steps += 1
        self._in_flight.append(self._steps)
        return self._steps

    def end_step(self, step: int) -> None:
        """Take a step out of flight: its reads and writes are over, done or not."""
        self._in_flight.remove(step)
        oldest = self._in_flight[0] if self._in_flight else self._steps + 1
        for block in [block for block, newest in self._resting.items() if newest < oldest]:
            del self._resting[block]
            self._lay_down(block)

    # ---------------------------------------------------------------------------------- hold and release

    def match(self, chain: Chain, token_ids: Sequence[int], most_blocks: int) -> list[int]:
        """Return the published blocks that hold the beginning of this text, at most so many. Takes none of them.

        The tokens are compared too. The caller takes the blocks before anything else happens to the pool.
        """
        found: list[int] = []
        size = self.block_tokens
        while len(found) < most_blocks:
            block = self._by_digest.get(chain.digest(len(found) + 1, token_ids))
            begin = len(found) * size
            if block is None or self._content[block].token_ids != tuple(token_ids[begin : begin + size]):
                break
            found.append(block)
        return found

    def has_follower(self, chain: Chain, token_ids: Sequence[int], blocks: int) -> bool:
        """Whether some published block follows the first blocks of this text, whatever it holds."""
        return chain.digest(blocks, token_ids) in self._followers

    def available_beside(self, blocks: Iterable[int]) -> int:
        """Return how many blocks are left to hand out once these have been taken."""
        return self.available - sum(self._states[block] == _KEPT for block in blocks)

    def take(self, blocks: Iterable[int]) -> None:
        """Hold these blocks once more: published ones that `match` found, or ones that somebody holds."""
        for block in blocks:
            holders = self._holders[block] = self._holders[block] + 1
            if holders == 1:
                assert block in self._content, f"block {block} holds nothing that could be shared"
                if self._resting.pop(block, None) is None:
                    del self._kept[block]
            self._states[block] = _USED if holders == 1 else _SHARED

    def allocate(self, count: int, after: int = -1, stride: int = 0) -> list[int]:
        """Return blocks that nobody holds, now held once; what was kept there is forgotten.

        Args:
            count: at most `available`.
            after: the last block of the table that they are for; -1 for a new table.
            stride: blocks between the places where new tables begin; 0 for anywhere.
        """
        assert count <= self.available, f"{count} blocks of {self.available} available"
        if self._free < count:
            self._give_up(max(count - self._free, self._given_up_at_once))
        first = after + 1
        if count == 1 and 0 < first < self.blocks and self._states[first] == _FREE:
            return self._hold([first])
        chosen = self._hold(self._next_to(after, count))
        missing = count - len(chosen)
        return chosen + self._hold(self._apart(missing, 0 if chosen else stride)) if missing else chosen

    def _hold(self, blocks: list[int]) -> list[int]:
        for block in blocks:
            self._states[block] = _USED
            self._holders[block] = 1
        self._free -= len(blocks)
        return blocks

    def release(self, blocks: Sequence[int], keep: bool = True) -> None:
        """Let go of these blocks, in the order of their text; published ones that nobody holds then are kept.

        Args:
            blocks: a block table or the end of one.
            keep: False forgets the content of each that nobody else holds.
        """
        for block in reversed(blocks):  # the end of a text is of no use without its beginning: it goes first
            holders = self._holders[block] = self._holders[block] - 1
            assert holders >= 0, f"block {block} was released once too often"
            if holders:
                self._states[block] = _USED if holders == 1 else _SHARED
                continue
            if not keep:
                self.unpublish(block)
            if self._in_flight:
                self._resting[block] = self._in_flight[-1]
                self._states[block] = _RESTING_KEPT if block in self._content else _RESTING
            else:
                self._lay_down(block)

    def publish(self, block: int, chain: Chain, index: int, token_ids: Sequence[int]) -> None:
        """Let others find a block whose KV has been written: the one at this place of the text's block table."""
        digest = chain.digest(index + 1, token_ids)
        if not self.keeps_prefixes or digest in self._by_digest:
            return
        assert block not in self._content, f"block {block} is published already"
        begin = index * self.block_tokens
        own = tuple(token_ids[begin : begin + self.block_tokens])
        content = self._content[block] = _Content(digest, chain.digest(index, token_ids), own)
        self._by_digest[digest] = block
        self._followers[content.parent] += 1

    def unpublish(self, block: int) -> None:
        """Forget a block's content: it is about to change, or nobody shall find it."""
        content = self._content.pop(block, None)
        if content is None:
            return
        del self._by_digest[content.digest]
        self._followers[content.parent] -= 1
        if not self._followers[content.parent]:
            del self._followers[content.parent]

    def forget(self) -> None:
        """Forget the content of every block; blocks that are held stay held."""
        for block in list(self._content):
            self.unpublish(block)
        self._give_up(len(self._kept))
        for block in self._resting:
            self._states[block] = _RESTING

    def _lay_down(self, block: int) -> None:
        """Put a block that nobody holds where it can be handed out."""
        if block in self._content:
            self._kept[block] = None
            self._states[block] = _KEPT
        else:
            self._free += 1
            self._states[block] = _FREE

    def _give_up(self, count: int) -> None:
        """Make the blocks kept longest free."""
        for _ in range(min(count, len(self._kept))):
            block, _none = self._kept.popitem(last=False)
            self.unpublish(block)
            self._lay_down(block)

    # ------------------------------------------------------------------------------------------ places

    def _next_to(self, after: int, count: int) -> list[int]:
        """Return the free blocks that directly follow this one."""
        if after < 0:
            return []
        run = _FREE_RUN.match(self._states, after + 1, after + 1 + count)
        return list(range(after + 1, run.end())) if run else []

    def _apart(self, count: int, stride: int) -> list[int]:
        """Return free blocks for a new run, or for as few runs as it takes."""
        if stride and (chosen := self._on_a_stride(count, stride)):
            return chosen
        runs = sorted((run.start() - run.end(), run.start()) for run in _FREE_RUN.finditer(self._states))
        spare, start = -runs[0][0] - count, runs[0][1]
        if spare >= _SHARED_ROOM and start and self._states[start - 1] in (_USED, _SHARED):
            start += spare // 2  # the table before this run may want to grow into it
            return list(range(start, start + count))
        chosen = []
        for minus_length, start in runs:
            chosen += range(start, start + min(-minus_length, count - len(chosen)))
            if len(chosen) == count:
                break
        return chosen

    def _on_a_stride(self, count: int, stride: int) -> list[int]:
        """Return the blocks at the first multiple of the stride that begins enough whole free strides, if one does."""
        room = -(-count // stride) * stride
        for start in range(0, self.blocks, stride):
            end = min(start + room, self.blocks)
            if end - start >= count and self._states.count(_FREE, start, end) == end - start:
                return list(range(start, start + count))
        return []

    # ------------------------------------------------------------------------------------------ checks

    def check_invariants(self, tables: Iterable[Sequence[int]]) -> None:
        """Compare every count with the block tables that there are.

        Raises:
            AssertionError: with what does not agree.
        """
        holders: Counter[int] = Counter()
        for table in tables:
            assert len(set(table)) == len(table), f"a block lies twice in {table}"
            holders.update(table)
        assert all(0 <= block < self.blocks for block in holders), "a table names a block that is not the pool's"
        for block, state in enumerate(self._states):
            assert self._holders[block] == holders[block], f"block {block}: {holders[block]} tables name it"
            resting = _RESTING_KEPT if block in self._content else _RESTING
            nobody = resting if block in self._resting else _KEPT if block in self._content else _FREE
            expected = nobody if not holders[block] else _USED if holders[block] == 1 else _SHARED
            assert state == expected, f"block {block} is {state}, not {expected}"
        assert self._free == self._states.count(_FREE), f"{self._free} free blocks are counted"
        assert len(self._kept) == self._states.count(_KEPT), f"{len(self._kept)} kept blocks are counted"
        assert self._free + len(self._kept) + len(self._resting) + len(holders) == self.blocks, "blocks are lost"
        assert all(self._in_flight[:1] <= [newest] for newest in self._resting.values()), "a block rests for no step"
        assert bool(self._in_flight) or not self._resting, "a block rests for no step"
        assert self._by_digest == {content.digest: block for block, content in self._content.items()}
        assert self._followers == Counter(content.parent for content in self._content.values())
