"""How many network connections this program has opened since it started, counted where they are opened.

Python tells an audit hook of every socket that connects (PEP 578), whichever library does it. Local sockets, which have
no network address, do not count. The worker and the renderer import no network code at all.
"""

from __future__ import annotations

import sys
from typing import Any


class ConnectionCounter:
    """Counts from install() to the end of the process; an audit hook cannot be taken back.

    Attributes:
        count: connections opened so far, failed attempts included.
    """

    def __init__(self) -> None:
        self.count = 0

    def install(self) -> None:
        """Begin to count."""
        sys.addaudithook(self._on_event)

    def _on_event(self, name: str, arguments: tuple[Any, ...]) -> None:
        # (socket, address): network addresses are tuples, those of local sockets are paths.
        if name == "socket.connect" and isinstance(arguments[1], tuple):
            self.count += 1
