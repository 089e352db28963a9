"""How protocol messages travel: msgpack in length-prefixed frames over one inherited pipe.

No listener, no address, no key: the two ends are made together and one is inherited by the child. Knows nothing of
what the messages mean.
"""

from __future__ import annotations

import socket
import sys
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

import msgspec

from backends import protocol

Incoming = TypeVar("Incoming")


class MessageError(Exception):
    """What came over the pipe is torn, oversized, of an unknown kind or of a wrong shape."""


class MessagePipe(Generic[Incoming]):
    """One end of the pipe: sends messages of any kind and receives those of one union.

    One thread may receive while one other sends; two may not send at once.

    Attributes:
        _connection: the framed byte stream.
        _decoder: the validating decoder of what arrives here.
    """

    def __init__(self, connection: Connection, incoming: object) -> None:
        self._connection = connection
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Incoming] = msgspec.msgpack.Decoder(incoming)

    def send(self, message: protocol.Command | protocol.Event) -> None:
        """Write one message; raises OSError when the other end is gone."""
        self._connection.send_bytes(self._encoder.encode(message))

    def receive(self) -> Incoming:
        """Block for one message.

        Raises:
            EOFError: the other end is gone.
            OSError: the pipe was closed on this side.
            MessageError: what came is not a message.
        """
        try:
            data = self._connection.recv_bytes(protocol.MAX_MESSAGE_BYTES)
        except OSError as error:
            if str(error) == "bad message length":  # multiprocessing's words for a frame over the limit
                raise MessageError("a message over the size limit") from error
            raise
        return self.decode(data)

    def decode(self, data: bytes) -> Incoming:
        """Return the message in these bytes; raises MessageError."""
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MessageError(str(error)) from error

    def close(self) -> None:
        """Close this end; the other one reads the end of the stream."""
        self._connection.close()


def command_pipe(connection: Connection) -> MessagePipe[protocol.Command]:
    """Return the worker's end: receives commands."""
    return MessagePipe(connection, protocol.Command)


def event_pipe(connection: Connection) -> MessagePipe[protocol.Event]:
    """Return the client's end: receives events."""
    return MessagePipe(connection, protocol.Event)


def connection_pair() -> tuple[Connection, int]:
    """Return the parent's connection and the descriptor that the child inherits (POSIX)."""
    if sys.platform == "win32":  # pragma: no cover - the Windows pair comes with its package
        raise NotImplementedError("inherited pipe handles come with the Windows package")
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), theirs.detach()
