"""What a transfer works with and what it tells: everything around it that tests replace.

Does nothing by itself.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.downloads.part_file import FLUSH_BYTES
from app.downloads.space import RESERVE_BYTES, free_bytes
from app.downloads.types import DownloadState
from app.errors import Words
from app.http_clients import HttpClients

if TYPE_CHECKING:
    import httpx2


class StoppedError(Exception):
    """Somebody asked for the end."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a transfer stands.

    Attributes:
        state: RUNNING, WAITING or VERIFYING.
        have_bytes: how much of the file is here.
        checked_bytes: while VERIFYING, how much of that was read.
        retry_at: while WAITING for a time, that time (seconds since 1970).
        words: what a person should know meanwhile; None when all is well.
    """

    state: DownloadState
    have_bytes: int
    checked_bytes: int = 0
    retry_at: float | None = None
    words: Words | None = None


def _wait(stop: threading.Event, seconds: float) -> bool:
    return stop.wait(seconds)


def _nothing() -> int:
    return 0


@dataclass(frozen=True)
class TransferTools:
    """What a transfer works with; the defaults are those of the program, tests take others.

    Attributes:
        clients: proxies, certificates and the token.
        client: keeps no connections; see HttpClients.make_client.
        silence_s: how long a server may send nothing.
        flush_bytes: how often what was received is put on the disk for good.
        reserve_bytes: what the disk must have left afterwards.
        claimed_bytes: what other downloads will still write to the same disk.
        free_bytes: what may be written to a folder's disk.
        wait: waits for some seconds; returns True at once when the event is set.
        random_share: a number from 0 to 1, which spreads the waits.
        now: seconds since 1970.
    """

    clients: HttpClients
    client: httpx2.Client
    silence_s: float = 30.0
    flush_bytes: int = FLUSH_BYTES
    reserve_bytes: int = RESERVE_BYTES
    claimed_bytes: Callable[[], int] = field(default=_nothing)
    free_bytes: Callable[[Path], int] = field(default=free_bytes)
    wait: Callable[[threading.Event, float], bool] = field(default=_wait)
    random_share: Callable[[], float] = field(default=random.random)
    now: Callable[[], float] = field(default=time.time)
