"""Network connections are counted, local sockets are not."""

from __future__ import annotations

import socket

from app.connections import ConnectionCounter


def test_a_network_connection_is_counted_and_a_local_socket_is_not(tmp_path) -> None:
    counter = ConnectionCounter()
    counter.install()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
    assert counter.count == 1
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as local:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        local.connect(str(tmp_path / "s"))
        listening.accept()[0].close()
    assert counter.count == 1


def test_an_attempt_that_fails_counts_too() -> None:
    counter = ConnectionCounter()
    counter.install()
    with socket.socket() as attempt:
        attempt.settimeout(0.5)
        assert attempt.connect_ex(("127.0.0.1", 1)) != 0
    assert counter.count == 1
