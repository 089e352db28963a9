"""One connection that brings the rest of one file: asked for by a range, led on by redirects, checked, then read.

A thread of its own waits for the network, so that whoever takes the bytes can be stopped at any moment and notices
silence of any kind: of the names service, of a proxy, before the answer, in its middle. Knows no disk and no hash.
References: RFC 9110, sections 13.1.5 (If-Range), 14 (ranges) and 15.4 (redirects).
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.downloads.answers import Head, checked_head, status_error
from app.downloads.tools import StoppedError
from app.http_addresses import check_address, host_of, redirected
from app.http_clients import HttpClients, foreign_errors
from app.models.http_faults import RemoteError, RemoteFault

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_PIECE_BYTES = 512 * 1024
_GATHERED_BYTES = 256 * 1024  # TLS brings 16 KiB at a time; each hand-over costs a switch of threads
_MAX_WAITING = 16  # hand-overs that nobody has taken yet
_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        url: where the hub has the file.
        have_bytes: how many bytes from its beginning are here already.
        version: what the server calls the version that they are of (a strong ETag); "" when it is not known.
    """

    url: str
    have_bytes: int = 0
    version: str = ""


class Connection:
    """A request and the bytes that it brings. One thread uses it; close it.

    Args:
        clients: says what may be told whom.
        client: keeps no connections, so that each of them can be broken off.
        wanted: what is asked for.
        silence_s: how long nothing may come.
    """

    def __init__(self, clients: HttpClients, client: httpx2.Client, wanted: Wanted, silence_s: float = 30.0) -> None:
        self._clients = clients
        self._client = client
        self._wanted = wanted
        self._silence_s = silence_s
        self._queue: queue.Queue[Head | list[bytes] | RemoteError] = queue.Queue(_MAX_WAITING)
        self._is_closing = threading.Event()
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._url = wanted.url
        # It may hang where nobody can wake it (the look-up of a name), and must not keep the program from ending.
        self._thread = threading.Thread(target=self._work, name="download connection", daemon=True)

    def open(self, stop: threading.Event, on_wait: Callable[[], None]) -> Head:
        """Ask, and return what the answer says of its bytes.

        Args:
            stop: set by whoever wants the end.
            on_wait: called several times a second meanwhile.

        Raises:
            RemoteError: no bytes will come.
            StoppedError: stop is set.
        """
        self._thread.start()
        began_s = time.monotonic()
        while True:
            found = self._next(stop, began_s)
            if isinstance(found, Head):
                return found
            on_wait()

    def take(self, stop: threading.Event, on_wait: Callable[[], None]) -> list[bytes]:
        """Return the next bytes; nothing when all came. See open()."""
        began_s = time.monotonic()
        while True:
            found = self._next(stop, began_s)
            if isinstance(found, list):
                return found
            on_wait()

    def _next(self, stop: threading.Event, began_s: float) -> Head | list[bytes] | None:
        """Return what the thread hands over; None where there is nothing yet."""
        if stop.is_set():
            raise StoppedError
        try:
            found = self._queue.get(timeout=min(_POLL_S, self._silence_s))
        except queue.Empty:
            if time.monotonic() - began_s >= self._silence_s:
                raise RemoteError(RemoteFault.TOO_SLOW, host_of(self._url)) from None
            return None
        if isinstance(found, RemoteError):
            raise found
        return found

    def close(self) -> None:
        """Break off whatever is under way; a thread that cannot be woken ends when the system lets it."""
        self._is_closing.set()
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join(_POLL_S)

    # ------------------------------------------------------------------------- on the connection's own thread

    def _work(self) -> None:
        try:
            self._bring()
        except RemoteError as error:
            self._hand_over(error)
        except (OSError, RuntimeError):
            if not self._is_closing.is_set():
                raise
        finally:
            with self._lock:
                if self._socket is not None:
                    self._socket.close()
                    self._socket = None

    def _bring(self) -> None:
        response = self._follow()
        try:
            head = checked_head(response.status_code, response.headers, host_of(self._url), self._wanted.have_bytes)
            if self._hand_over(head):
                with foreign_errors(self._url):
                    self._relay(self._pieces(response, head))
                self._hand_over([])
        finally:
            response.close()

    def _relay(self, pieces: Iterator[bytes]) -> None:
        """Hand pieces over, many at a time, but hold none back for long; an empty one says that no more is there."""
        waiting: list[bytes] = []
        count, since_s = 0, 0.0
        try:
            for piece in pieces:
                if piece:
                    since_s = since_s if waiting else time.monotonic()
                    waiting.append(piece)
                    count += len(piece)
                if waiting and (not piece or count >= _GATHERED_BYTES or time.monotonic() - since_s >= _POLL_S):
                    ready, waiting, count = waiting, [], 0
                    if not self._hand_over(ready):
                        return
        finally:  # what came before a fault counts
            if waiting:
                self._hand_over(waiting)

    def _hand_over(self, found: Head | list[bytes] | RemoteError) -> bool:
        """Let the other thread have it; returns False when nobody wants it any more."""
        while not self._is_closing.is_set():
            with contextlib.suppress(queue.Full):
                self._queue.put(found, timeout=_POLL_S)
                return True
        return False

    def _follow(self) -> httpx2.Response:
        """Ask the hub, and go where it sends us."""
        for _hop in range(MAX_REDIRECTS + 1):
            response = self._send()
            if response.status_code in (200, 206):
                return response
            try:
                if response.status_code not in _REDIRECTS:
                    raise status_error(response.status_code, response.headers, self._url, self._clients)
                self._url = redirected(self._url, response.headers.get("location", ""))
            finally:
                response.close()
        raise RemoteError(RemoteFault.REDIRECTS, host_of(self._url))

    def _send(self) -> httpx2.Response:
        check_address(self._url)
        headers = {"Accept-Encoding": "identity", **self._clients.authorization(self._url)}
        if self._wanted.have_bytes:
            headers["Range"] = f"bytes={self._wanted.have_bytes}-"
            if self._wanted.version:
                headers["If-Range"] = self._wanted.version
        with foreign_errors(self._url, self._clients.proxy_host(self._url)):
            request = self._client.build_request("GET", self._url, headers=headers)
            request.extensions["trace"] = self._on_trace
            return self._client.send(request, stream=True)

    def _on_trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep a handle of the connection, so that another thread can break it off."""
        if event != "connection.connect_tcp.complete":
            return
        opened = info["return_value"].get_extra_info("socket")
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = opened.dup()
            if self._is_closing.is_set():
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _pieces(self, response: httpx2.Response, head: Head) -> Iterator[bytes]:
        """Yield the body as it comes.

        The library's own way costs twice the processor's time of curl. What it has read is taken from it first; the
        rest of a body whose length is known is read from the connection itself, which then cannot be used again.
        """
        import httpcore2

        chunks = response.iter_raw()
        stream = response.extensions.get("network_stream")
        if head.body_bytes is None or stream is None:
            yield from chunks
            return
        left = head.body_bytes
        if left > 0:
            first = next(chunks, b"")
            left -= len(first)
            yield first
        while left > 0 and not self._is_closing.is_set():
            try:
                piece = stream.read(min(_PIECE_BYTES, left), timeout=_POLL_S)
            except httpcore2.ReadTimeout:
                yield b""
                continue
            if not piece:
                raise RemoteError(RemoteFault.BROKEN_OFF, host_of(self._url))
            left -= len(piece)
            yield piece
