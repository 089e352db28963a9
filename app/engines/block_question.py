"""Asks the engine what lies in a KV block, one question at a time, and drops answers that nobody waits for any more.

Whoever rests on a map changes his mind faster than a busy engine answers: of the questions that come meanwhile only the
newest is asked. Knows no window.
"""

from __future__ import annotations

from collections.abc import Callable

from backends import protocol
from backends.client import EngineDied

# Ids of requests count up from 1; these count down, so that no answer in a chat is ever taken for one.
_FIRST_ID = -1


class BlockQuestion:
    """The question that is open, and the one that comes next. Lives on one thread.

    Attributes:
        _send: hands a command to the engine; False when there is none to take it.
        _open_id: id of the question the engine has; 0 for none.
        _open_block: its block.
        _wanted: the block that was last asked for; -1 when its answer has come.
    """

    def __init__(self, send: Callable[[protocol.Command], bool]) -> None:
        self._send = send
        self._next_id = _FIRST_ID
        self._open_id = protocol.RequestId(0)
        self._open_block = -1
        self._wanted = -1

    def ask(self, block: int) -> None:
        """Ask what lies in a block; earlier questions are of no interest any more."""
        self._wanted = block
        if not self._open_id:
            self._ask_wanted()

    def take(self, event: object) -> protocol.BlockDescribed | None:
        """Look at an event of the engine; return it when it answers the newest question."""
        match event:
            case protocol.BlockDescribed() if event.request_id == self._open_id:
                answered, self._open_id = self._open_block, protocol.RequestId(0)
                if answered == self._wanted == event.block:
                    self._wanted = -1
                    return event
                self._ask_wanted()
            case protocol.EngineFailed() if self._open_id and event.request_id == self._open_id:
                self._open_id = protocol.RequestId(0)
                if self._open_block == self._wanted:
                    self._wanted = -1
                self._ask_wanted()
            case protocol.ModelLoaded() | EngineDied():
                self._open_id, self._wanted = protocol.RequestId(0), -1
        return None

    def _ask_wanted(self) -> None:
        if self._wanted < 0:
            return
        request_id = protocol.RequestId(self._next_id)
        if self._send(protocol.DescribeBlock(request_id, self._wanted)):
            self._next_id -= 1
            self._open_id, self._open_block = request_id, self._wanted
        else:
            self._wanted = -1
