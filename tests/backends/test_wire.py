"""The pipe: framing, order, limits and the ways it ends."""

from __future__ import annotations

import os
import struct
from multiprocessing.connection import Connection

import pytest

from backends import protocol, wire


@pytest.fixture
def ends():
    ours, theirs = wire.connection_pair()
    other = Connection(theirs)
    yield wire.event_pipe(ours), wire.command_pipe(other), other
    ours.close()
    other.close()


def test_commands_and_events_arrive_in_order(ends) -> None:
    program, worker, _raw = ends
    program.send(protocol.Shutdown())
    program.send(protocol.Abort(protocol.RequestId(3)))
    assert [worker.receive(), worker.receive()] == [protocol.Shutdown(), protocol.Abort(protocol.RequestId(3))]
    worker.send(protocol.Hello(1, "1", 2))
    assert program.receive() == protocol.Hello(1, "1", 2)


def test_the_end_of_the_other_side_is_an_end_of_file(ends) -> None:
    program, worker, _raw = ends
    worker.close()
    with pytest.raises(EOFError):
        program.receive()


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa4type\xa7Unknown", b"\x81\xa4type\xa4Quit", b"[" * 5000])
def test_nonsense_is_a_message_error(ends, data: bytes) -> None:
    program, _worker, raw = ends
    raw.send_bytes(data)
    with pytest.raises(wire.MessageError):
        program.receive()


def test_deeply_nested_nonsense_is_a_message_error(ends) -> None:
    program, _worker, raw = ends
    raw.send_bytes(b"\x91" * 200_000)
    with pytest.raises(wire.MessageError):
        program.receive()


def test_a_command_is_no_event(ends) -> None:
    program, _worker, raw = ends
    wire.command_pipe(raw).send(protocol.Shutdown())
    with pytest.raises(wire.MessageError):
        program.receive()


def test_a_frame_over_the_limit_is_refused_before_it_is_read(ends) -> None:
    program, _worker, raw = ends
    os.write(raw.fileno(), struct.pack("!i", protocol.MAX_MESSAGE_BYTES + 1) + b"x" * 100)
    with pytest.raises(wire.MessageError):
        program.receive()


def test_a_frame_torn_by_the_end_of_the_worker_is_an_end(ends) -> None:
    program, _worker, raw = ends
    os.write(raw.fileno(), struct.pack("!i", 1000) + b"only the beginning")
    raw.close()
    with pytest.raises((EOFError, OSError)):
        program.receive()
