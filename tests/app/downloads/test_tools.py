"""The defaults of what transfers work with are those of the program."""

from __future__ import annotations

import contextlib
import threading

import pytest

from app.downloads.part_file import FLUSH_BYTES
from app.downloads.space import RESERVE_BYTES
from app.downloads.tools import TransferTools
from app.http_clients import HttpClients


def test_the_defaults_flush_before_64_megabytes_are_at_risk_and_keep_a_gigabyte_free(tmp_path):
    clients = HttpClients()
    with contextlib.closing(clients.make_client(keeps_connections=False)) as client:
        tools = TransferTools(clients, client)
    assert (tools.flush_bytes, tools.reserve_bytes) == (FLUSH_BYTES, RESERVE_BYTES)
    assert 2 * FLUSH_BYTES == 64 * 2**20
    assert RESERVE_BYTES == 10**9
    assert tools.claimed_bytes() == 0
    assert tools.free_bytes(tmp_path) > 0
    assert 0 <= tools.random_share() < 1
    assert tools.now() > 1.7e9


@pytest.mark.parametrize("is_set", [True, False])
def test_a_wait_tells_whether_it_was_ended(is_set):
    clients = HttpClients()
    stop = threading.Event()
    if is_set:
        stop.set()
    with contextlib.closing(clients.make_client()) as client:
        assert TransferTools(clients, client).wait(stop, 0.0 if not is_set else 60.0) is is_set
