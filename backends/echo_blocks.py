"""The KV blocks that the echo engine claims to have: scripted neighbours, and the answer that is under way.

Only the bookkeeping is real: which block holds which token. Nothing is shared or found again by its content; for that
see the torch engine's pool.
"""

from __future__ import annotations

import msgspec

from backends import protocol

FREE, KEPT, USED, SHARED = range(4)

# Ids of the scripted sequences, far from those of a program's own requests.
_FIRST_SCRIPTED_ID = 1_000_000_000


class EchoSequence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sequence that is held beside the answers, all the time.

    Attributes:
        tokens: how many tokens it has.
        shared_blocks: how many of its first blocks all scripted sequences share.
        text: what its tokens say, over and over.
    """

    tokens: int
    shared_blocks: int = 0
    text: str = "Somebody else's words. "


class EchoBlocks:
    """A pool of blocks and who holds them.

    Attributes:
        states: one byte a block, as in protocol.BlockMap.
    """

    def __init__(self, blocks: int, block_tokens: int, sequences: tuple[EchoSequence, ...], kept_blocks: int) -> None:
        """Take the scripted sequences' blocks, then the kept ones; what does not fit is left out."""
        self.states = bytearray(blocks)
        self._block_tokens = block_tokens
        self._texts: dict[int, bytes] = {}
        self._answer: list[int] = []
        self._scripted: list[protocol.BlockOwner] = []
        shared = self._take(max((one.shared_blocks for one in sequences), default=0), SHARED)
        for number, one in enumerate(sequences):
            count = -(-one.tokens // block_tokens)
            prefix = shared[: min(one.shared_blocks, count)]
            table = [*prefix, *self._take(count - len(prefix), USED)]
            self._write(table, one.text.encode() * (one.tokens // max(1, len(one.text.encode())) + 1), one.tokens)
            owner_id = protocol.RequestId(_FIRST_SCRIPTED_ID + number)
            self._scripted.append(protocol.BlockOwner(owner_id, tuple(table), one.tokens))
        for block in self._take(kept_blocks, KEPT):
            self._texts[block] = b"an earlier chat's "[:block_tokens]

    def grow(self, text: bytes) -> None:
        """Hold the answer's tokens, its prompt first: blocks are added as it grows, kept ones when none is free."""
        missing = -(-len(text) // self._block_tokens) - len(self._answer)
        added = self._take(missing, USED)
        while len(added) < missing and KEPT in self.states:
            block = self.states.index(KEPT)
            self.states[block] = USED
            added.append(block)
        self._answer += added
        self._write(self._answer, text, len(text))

    def end_answer(self) -> None:
        """Keep the answer's blocks for later."""
        for block in self._answer:
            self.states[block] = KEPT
        self._answer.clear()

    def block_map(self, request_id: protocol.RequestId, tokens: int) -> protocol.BlockMap:
        """Return the map, with the answer under way if there is one."""
        owners = [*self._scripted]
        if self._answer:
            owners.append(protocol.BlockOwner(request_id, tuple(self._answer), tokens))
        return protocol.BlockMap(self._block_tokens, bytes(self.states), tuple(owners))

    def describe(self, command: protocol.DescribeBlock) -> protocol.BlockDescribed:
        """Return what lies in a block; nothing for one that is free or does not exist."""
        text = self._texts.get(command.block, b"")
        is_held = 0 <= command.block < len(self.states) and self.states[command.block] != FREE
        tables = [owner.blocks for owner in self._scripted] + [tuple(self._answer)]
        return protocol.BlockDescribed(
            request_id=command.request_id,
            block=command.block,
            token_ids=tuple(text) if is_held else (),
            text=text.decode(errors="replace") if is_held else "",
            users=sum(command.block in table for table in tables),
        )

    def _take(self, count: int, state: int) -> list[int]:
        free = [block for block, now in enumerate(self.states) if now == FREE][: max(0, count)]
        for block in free:
            self.states[block] = state
        return free

    def _write(self, table: list[int], text: bytes, tokens: int) -> None:
        for order, block in enumerate(table):
            first = order * self._block_tokens
            self._texts[block] = text[first : min(first + self._block_tokens, tokens)]
