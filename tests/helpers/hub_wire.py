"""The sockets of a test hub: reads requests, sends answers as honestly or as badly as they want to be sent.

One thread waits at all ports; each connection has a thread of its own, and ending ends them all at once. Knows nothing
of hubs, and shares no code with app/.
"""

from __future__ import annotations

import contextlib
import http.server
import selectors
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.helpers.hub_answers import Answer, Request
from tests.helpers.hub_faults import Pace
from tests.helpers.hub_files import OnDisk

# (the port's area, method, path, headers, body) -> what is answered, and over which line.
Responder = Callable[[str, str, str, dict[str, str], bytes], tuple[Request, Answer, Pace | None]]
_MAX_BODY_BYTES = 1 << 20
_DRAIN_S = 5.0


class Ports:
    """Listens at one free port of this machine for each area.

    Attributes:
        origins: each area's address, such as http://127.0.0.1:1234.
        ending: is set when everything ends.
        faults: what went wrong in a thread of ours; the tests are told at the end.
    """

    def __init__(self, areas: dict[str, Path | None], respond: Responder) -> None:
        self.ending = threading.Event()
        self.faults: list[BaseException] = []
        self.origins: dict[str, str] = {}
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._servers = []
        for area, certificate in areas.items():
            members = {"ports": self, "respond": staticmethod(respond), "area": area}
            server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), members))
            server.ports = self
            if certificate is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            self._servers.append(server)
            self.origins[area] = f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
        self._bell, self._listener = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="hub server")

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Cut every connection and return when every thread has ended."""
        with self._lock:
            self.ending.set()
        self._bell.send(b"!")
        self._thread.join()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)  # below TLS, where there is some
        for server in self._servers:
            server.server_close()
        self._bell.close()
        self._listener.close()

    def enter(self, connection: socket.socket) -> None:
        """Remember a connection, so that ending cuts it."""
        with self._lock:
            self._connections.add(connection)
            if self.ending.is_set():
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def leave(self, connection: socket.socket) -> None:
        """Forget a connection."""
        with self._lock:
            self._connections.discard(connection)

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            for server in self._servers:
                selector.register(server.socket, selectors.EVENT_READ, server)
            while not self.ending.is_set():
                for key, _events in selector.select():
                    if key.data is not None:
                        key.data.handle_request()


class _Server(http.server.ThreadingHTTPServer):
    ports: Ports
    daemon_threads = False  # so that closing it waits for their end
    timeout = 0  # it is asked only when somebody is there
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep what a handler raised, for whoever closes the server."""
        self.ports.faults += filter(None, [sys.exc_info()[1]])


class _Handler(http.server.BaseHTTPRequestHandler):
    ports: Ports
    respond: Responder
    area: str
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        self.ports.enter(self.connection)
        try:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().handle()
        except OSError:
            pass  # the client went away, or spoke no TLS
        finally:
            self.ports.leave(self.connection)

    def do_GET(self) -> None:
        """Answer whatever was asked."""
        length = min(int(self.headers.get("Content-Length", 0)), _MAX_BODY_BYTES)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, answer, pace = self.respond(self.area, self.command, self.path, headers, self.rfile.read(length))
        try:
            self._send(request, answer, pace)
        except OSError:
            self.close_connection = True
        finally:
            request.is_done = True

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer as if it had been asked."""
        self.do_GET()

    def _send(self, request: Request, answer: Answer, pace: Pace | None) -> None:
        if answer.manner == "late":
            self.ports.ending.wait(answer.stall_s)
        elif answer.manner in ("silent", "refuse"):
            self._break_off("reset" if answer.manner == "refuse" else "stall")
            return
        request.status, request.first_byte, request.carries_file = answer.status, answer.start, answer.is_file
        is_chunked = answer.manner == "chunked"
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif answer.status != 304:
            self.send_header("Content-Length", str(answer.end - answer.start))
        self.end_headers()
        if self.command == "HEAD" or answer.status == 304:
            return
        is_broken = answer.manner in ("short", "stall", "reset")
        end = answer.end
        if is_broken:
            middle = (answer.start + answer.end) // 2
            end = min(max(middle if answer.break_at < 0 else answer.break_at, answer.start), answer.end)
        if isinstance(answer.content, OnDisk) and not is_chunked and not isinstance(self.connection, ssl.SSLSocket):
            self._send_from_disk(request, answer.content, answer.start, end, pace)
        else:
            self._send_pieces(request, answer.content.pieces(answer.start, end), pace, is_chunked=is_chunked)
        if is_broken:
            self._break_off(answer.manner)

    def _send_pieces(
        self, request: Request, pieces: Iterator[bytes | memoryview], pace: Pace | None, *, is_chunked: bool
    ) -> None:
        for whole in pieces:
            step = len(whole) if pace is None else pace.piece_bytes
            for place in range(0, len(whole), step or 1):
                piece = memoryview(whole)[place : place + step]
                if is_chunked:
                    self.wfile.write(f"{len(piece):x}\r\n".encode())
                self._send_all(request, piece)
                if is_chunked:
                    self.wfile.write(b"\r\n")
                if pace is not None:
                    pace.wait(len(piece), self.ports.ending)
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _send_all(self, request: Request, piece: memoryview) -> None:
        request.sent_bytes += len(piece)  # before it is true: whoever has the last byte may ask for it at once
        try:
            while piece:
                piece = piece[self.connection.send(piece) :]
        finally:
            request.sent_bytes -= len(piece)

    def _send_from_disk(self, request: Request, content: OnDisk, start: int, end: int, pace: Pace | None) -> None:
        """Let the kernel carry the file; it costs next to no time of the processor."""
        step = 1 << 24 if pace is None else pace.piece_bytes
        with content.path.open("rb") as file:
            while start < end:
                count = min(step, end - start)
                request.sent_bytes += count
                try:
                    self.connection.sendfile(file, start, count)
                finally:
                    request.sent_bytes -= start + count - file.tell()
                start += count
                if pace is not None:
                    pace.wait(count, self.ports.ending)

    def _break_off(self, manner: str) -> None:
        self.close_connection = True
        if manner == "stall":
            self.ports.ending.wait()
        elif manner == "reset":
            self._drain()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.ports.leave(self.connection)
            self.connection.close()

    def _drain(self) -> None:
        """Wait until the other side's system has everything: a reset would destroy what is still on its way."""
        with contextlib.suppress(ImportError, OSError):
            import fcntl
            import termios

            for _turn in range(int(_DRAIN_S / 0.002)):
                unsent = fcntl.ioctl(self.connection.fileno(), termios.TIOCOUTQ, b"\0" * 4)
                if unsent == b"\0" * 4 or self.ports.ending.wait(0.002):
                    return
