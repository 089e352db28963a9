"""A local HTTP server that gives one file by ranges, honestly or with one of many faults.

Shares no code with app/. The file is a beginning in memory and zeros behind it, so it may be of any size.
"""

from __future__ import annotations

import http.server
import re
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = (
    "",  # honest
    "range_ignored",  # 200 with the whole file
    "range_ignored_no_size",  # the same, chunked
    "wrong_start",  # a Content-Range that begins elsewhere
    "wrong_end",  # one that reaches further than was asked
    "wrong_total",  # another size with every answer
    "unknown_total",  # bytes 0-9/*
    "no_content_range",
    "nonsense_range",
    "gzip",
    "short_body",  # fewer bytes than promised, then the end
    "short_chunked",  # the same without a promised length
    "reset",  # the connection is reset in the middle
    "stall",  # silence in the middle of the body
    "stall_at_once",  # silence before any answer
    "drip",  # one byte at a time
    "web_page",
    "new_version",  # another ETag with every answer
    "small_pieces",  # far less than was asked for, as a server may
    "not_http",
)
_PIECE = 64 * 1024
_DRIP_BYTES = 1_000


@dataclass
class Script:
    """What the server does; a test may change it between requests.

    Attributes:
        head: the beginning of the file.
        size_bytes: of the whole file.
        fault: one of FAULTS.
        status: another status than the honest one; 0 for none.
        locations: where the next requests are redirected to, one each; the last may repeat.
        does_redirects_end: whether each location is used once.
        redirect_status: the status of those answers.
        answer_headers: more headers for every answer.
        requests: path and headers of every request so far.
        sent_bytes: of all bodies.
    """

    head: bytes
    size_bytes: int
    fault: str = ""
    status: int = 0
    locations: list[str] = field(default_factory=list)
    does_redirects_end: bool = True
    redirect_status: int = 302
    answer_headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    sent_bytes: int = 0

    def part(self, start: int, end: int) -> bytes:
        """Return these bytes of the file."""
        found = self.head[start:end]
        return found + bytes(max(0, min(end, self.size_bytes) - start - len(found)))


class RangeServer:
    """A server on a free port of this machine; use it in a `with`.

    Attributes:
        script: what it does.
        url: the address of its file.
    """

    def __init__(self, head: bytes, size_bytes: int | None = None, certificate: Path | None = None) -> None:
        self.script = Script(head, len(head) if size_bytes is None else size_bytes)
        self._ending = threading.Event()
        handler = type("Handler", (_Handler,), {"script": self.script, "ending": self._ending})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False  # so that closing it waits for their end
        if certificate is not None:  # a file with the key in it
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="range server")
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/model.gguf"

    def __enter__(self) -> RangeServer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    script: Script
    ending: threading.Event
    protocol_version = "HTTP/1.1"
    timeout = 5  # a kept connection that says nothing more

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        script = self.script
        script.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if script.locations:
            location = script.locations.pop(0) if script.does_redirects_end else script.locations[0]
            self._answer(script.redirect_status, {"Location": location} if location else {}, b"")
        elif script.status:
            self._answer(script.status, {}, b"no")
        else:
            self._give_file()

    def _give_file(self) -> None:
        script, fault = self.script, self.script.fault
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, last = (int(asked[1]), int(asked[2])) if asked else (0, script.size_bytes - 1)
        end = min(last + 1, script.size_bytes)
        if fault == "small_pieces":
            end = min(end, start + 100_000)
        if fault == "not_http":
            self._raw(b"SSH-2.0-OpenSSH_9.2\r\n")
            self.close_connection = True
        elif fault == "web_page":
            self._answer(200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Sign in</html>")
        elif fault == "stall_at_once":
            self.ending.wait()
            self.close_connection = True
        elif fault.startswith("range_ignored"):
            self._give_whole(has_size=fault == "range_ignored")
        elif start >= script.size_bytes:
            self._answer(416, {"Content-Range": f"bytes */{script.size_bytes}"}, b"")
        else:
            self._give_part(start, end)

    def _give_part(self, start: int, end: int) -> None:
        script, fault = self.script, self.script.fault
        number = len(script.requests)
        total: object = script.size_bytes + (number if fault == "wrong_total" else 0)
        total = "*" if fault == "unknown_total" else total
        shown_start = start + 7 if fault == "wrong_start" else start
        shown_end = end + 7 if fault == "wrong_end" else end - 1
        headers = {"Content-Range": f"bytes {shown_start}-{shown_end}/{total}", "ETag": '"one"'}
        if fault == "new_version":
            headers["ETag"] = f'"{number}"'
        if fault == "no_content_range":
            del headers["Content-Range"]
        if fault == "nonsense_range":
            headers["Content-Range"] = "bytes 10-5/abc"
        if fault == "gzip":
            headers["Content-Encoding"] = "gzip"
        body = script.part(start, end)
        if fault == "short_chunked":
            self._head(206, {**headers, "Transfer-Encoding": "chunked"})
            half = body[: len(body) // 2]
            self._raw(f"{len(half):x}\r\n".encode() + half + b"\r\n0\r\n\r\n")
        elif fault in ("short_body", "reset", "stall", "drip"):
            self._head(206, {**headers, "Content-Length": str(len(body))})
            self._break_off(body)
        else:
            self._answer(206, headers, body)

    def _break_off(self, body: bytes) -> None:
        fault = self.script.fault
        self.close_connection = True
        if fault == "drip":
            for place in range(_DRIP_BYTES):
                self._raw(body[place : place + 1])
            self.ending.wait()
            return
        self._raw(body[: len(body) // 2])
        if fault == "stall":
            self.ending.wait()
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _give_whole(self, has_size: bool) -> None:
        size = self.script.size_bytes
        self._head(200, {"Content-Length": str(size)} if has_size else {"Transfer-Encoding": "chunked"})
        for start in range(0, size, _PIECE):
            piece = self.script.part(start, start + _PIECE)
            framed = piece if has_size else f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
            if self.ending.is_set() or not self._raw(framed):
                break
        if not has_size and not self.close_connection:
            self._raw(b"0\r\n\r\n")

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self._head(status, {**headers, "Content-Length": str(len(body))})
        self._raw(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in {**headers, **self.script.answer_headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _raw(self, data: bytes) -> bool:
        """Send bytes; returns whether anybody still takes them."""
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True
            return False
        self.script.sent_bytes += len(data)
        return True
