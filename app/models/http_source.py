"""The beginning of a file on a server, read by HTTP ranges in few requests; never the whole file.

Knows HTTP and its bad servers, no model format. Each wait and the whole have a time limit; only the look-up of a
host's name has none of its own, since the system gives none. httpx2 is loaded with the first address, so that the
program at rest does without it.
Reference: RFC 9110, sections 14 (ranges) and 15.4 (redirects).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.http_addresses import check_address, is_loopback, redirected
from app.http_clients import HttpClients, asked_wait_s, foreign_errors
from app.models.http_faults import RemoteError, RemoteFault

if TYPE_CHECKING:
    import httpx2

__all__ = ["HttpLimits", "HttpSource", "check_address", "is_loopback", "open_url"]

_MIB = 2**20
_MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_OWN_HEADERS = ("range", "accept-encoding", "host", "user-agent")
_NUMBER = re.compile(r"[0-9]{1,19}")
_STATUS_FAULTS = {
    401: RemoteFault.NO_ACCESS,
    403: RemoteFault.NO_ACCESS,
    404: RemoteFault.MISSING,
    410: RemoteFault.MISSING,
    416: RemoteFault.RANGE_REFUSED,
    429: RemoteFault.BUSY,
}


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """How much one header may cost.

    Attributes:
        pieces_bytes: how much each request asks for; the last value holds for all further ones. Most headers come
            with the first piece, that of a Llama 3 (8 MiB) with the second, all known ones with the third.
        total_bytes: what may be received in all.
        total_s: how long all of it may take.
        wait_s: how long a server may be silent.
        max_requests: redirects included.
    """

    pieces_bytes: tuple[int, ...] = (2 * _MIB, 8 * _MIB, 6 * _MIB, 16 * _MIB)
    total_bytes: int = 64 * _MIB
    total_s: float = 60.0
    wait_s: float = 10.0
    max_requests: int = 32


class HttpSource:
    """A file on a server, as a ByteSource; made by open_url().

    Attributes:
        size_bytes: see ByteSource.
        requests: how many were sent, redirects included.
        read_bytes: how much of the file was received.
        final_url: where the redirects led; it may hold a signature, so it belongs in no log.
        proxy_host: the proxy in between, for the words; "" for none.
    """

    def __init__(
        self,
        client: httpx2.Client,
        url: str,
        private: Mapping[str, str],
        limits: HttpLimits,
        clock: Callable[[], float],
    ) -> None:
        self.size_bytes = 0
        self.requests = 0
        self.read_bytes = 0
        self.final_url = url
        self.proxy_host = ""
        self._client = client
        self._private = private  # headers for the first host alone
        self._first_origin = ""
        self._limits = limits
        self._clock = clock
        self._deadline_s = clock() + limits.total_s
        self._version = ""  # the ETag, so that no two versions of a file are mixed
        self._piece = b""
        self._piece_start = 0
        self._num_pieces = 0
        self._whole: _Body | None = None  # of a server that knows no ranges; read on bit by bit

    def read(self, offset: int, count: int) -> bytes:
        """Return what is left of the piece at hand, or of the next one; raises RemoteError."""
        if not self._piece_start <= offset < self._piece_start + len(self._piece):
            if offset >= self.size_bytes:
                return b""
            self.fetch(offset)
        at = offset - self._piece_start
        return self._piece[at : at + count]

    def close(self) -> None:
        """End the connections; an answer that is still under way is broken off."""
        self._drop_whole()
        self._client.close()

    def fetch(self, offset: int) -> None:
        """Get the piece that begins here; raises RemoteError."""
        pieces = self._limits.pieces_bytes
        wanted = min(pieces[min(self._num_pieces, len(pieces) - 1)], self._limits.total_bytes - self.read_bytes)
        if wanted <= 0:
            raise self._too_large()
        self._num_pieces += 1
        if self._whole is None or self._whole.position > offset:
            self._drop_whole()
            body = self._open_body(offset, offset + wanted - 1)
        else:
            body = self._whole
        with self._foreign_errors():
            self._piece, self._piece_start = body.take(offset, wanted), offset
            if body is not self._whole:
                body.close()
        if len(self._piece) < min(wanted, body.end - offset):
            raise self._fault(RemoteFault.BROKEN_OFF)

    def count_received(self, count: int) -> None:
        """Note bytes that came; raises RemoteError when they were too many or took too long."""
        self.read_bytes += count
        if self._clock() > self._deadline_s:
            raise self._fault(RemoteFault.TOO_SLOW)
        if self.read_bytes > self._limits.total_bytes + _MIB:  # a network read may go a little too far
            raise self._too_large()

    def _open_body(self, first: int, last: int) -> _Body:
        """Ask for a range and return the answer's body, checked against what was asked."""
        response = self._follow(first, last)
        try:
            body = self._checked_body(response, first, last)
        except RemoteError:
            response.close()
            raise
        if response.status_code == 200:
            self._whole = body
        return body

    def _checked_body(self, response: httpx2.Response, first: int, last: int) -> _Body:
        headers = response.headers
        if response.status_code not in (200, 206):
            raise self._status_fault(response)
        if headers.get("content-type", "").lower().startswith("text/html"):
            raise self._fault(RemoteFault.WEB_PAGE)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise self._fault(RemoteFault.ENCODED, detail=encoding)
        if response.status_code == 206:
            match = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
            if match is None:
                raise self._fault(RemoteFault.WRONG_RANGE)
            start, end, size = (int(number) for number in match.groups())
            if start != first or not first <= end <= last or end >= size:
                raise self._fault(RemoteFault.WRONG_RANGE)
            body = _Body(response, start, end + 1, self.count_received)
        else:
            length = headers.get("content-length", "")
            if not _NUMBER.fullmatch(length) or int(length) == 0:
                raise self._fault(RemoteFault.NO_SIZE)
            size = int(length)
            body = _Body(response, 0, size, self.count_received)
        version = headers.get("etag", "")
        if (self.size_bytes and size != self.size_bytes) or (self._version and version and version != self._version):
            raise self._fault(RemoteFault.CHANGED)
        self.size_bytes, self._version = size, version or self._version
        return body

    def _follow(self, first: int, last: int) -> httpx2.Response:
        """Send the request, to where its redirects lead; later ones go there at once."""
        for _hop in range(_MAX_REDIRECTS + 1):
            response = self._send(first, last)
            if response.status_code not in _REDIRECTS:
                return response
            location = response.headers.get("location", "")
            response.close()
            self.final_url = redirected(self.final_url, location)
        raise self._fault(RemoteFault.REDIRECTS)

    def _send(self, first: int, last: int) -> httpx2.Response:
        import httpx2

        if self.requests >= self._limits.max_requests:
            raise self._too_large()
        if self._clock() > self._deadline_s:
            raise self._fault(RemoteFault.TOO_SLOW)
        url = httpx2.URL(self.final_url)
        origin = f"{url.scheme}://{url.netloc.decode()}"
        self._first_origin = self._first_origin or origin
        headers = {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
        if self._private and origin == self._first_origin:
            if url.scheme != "https" and not is_loopback(url.host):
                raise self._fault(RemoteFault.NOT_SECURE)
            headers = {**self._private, **headers}
        self.requests += 1
        with self._foreign_errors():
            return self._client.send(self._client.build_request("GET", url, headers=headers), stream=True)

    def _status_fault(self, response: httpx2.Response) -> RemoteError:
        status = response.status_code
        other = RemoteFault.SERVER_FAULT if 500 <= status < 600 else RemoteFault.UNEXPECTED
        wait_s = asked_wait_s(response.headers, time.time())
        return RemoteError(
            _STATUS_FAULTS.get(status, other),
            response.url.host,
            status=status,
            retry_after_s=None if wait_s is None else round(wait_s),
        )

    def _foreign_errors(self) -> AbstractContextManager[None]:
        return foreign_errors(self.final_url, self.proxy_host)

    def _fault(self, fault: RemoteFault, detail: str = "") -> RemoteError:
        import httpx2

        return RemoteError(fault, httpx2.URL(self.final_url).host, detail=detail)

    def _too_large(self) -> RemoteError:
        return RemoteError(RemoteFault.TOO_LARGE, limit_bytes=self._limits.total_bytes)

    def _drop_whole(self) -> None:
        if self._whole is not None:
            self._whole.close()
            self._whole = None


class _Body:
    """The bytes of one answer, taken forwards.

    Attributes:
        position: where in the file the next byte is.
        end: where in the file the answer ends.
    """

    def __init__(self, response: httpx2.Response, start: int, end: int, on_bytes: Callable[[int], None]) -> None:
        self.position = start
        self.end = end
        self._response = response
        self._chunks = response.iter_raw()
        self._rest = b""
        self._on_bytes = on_bytes

    def take(self, offset: int, count: int) -> bytes:
        """Pass over what lies in front of the offset and return the next bytes, fewer where the answer ends."""
        taken = bytearray()
        while len(taken) < count:
            if not self._rest:
                chunk = next(self._chunks, None)
                if chunk is None:
                    break
                self._on_bytes(len(chunk))
                self._rest = chunk
            passed = min(len(self._rest), max(0, offset - self.position))
            kept = self._rest[passed : passed + count - len(taken)]
            taken += kept
            self.position += passed + len(kept)
            self._rest = self._rest[passed + len(kept) :]
        return bytes(taken)

    def close(self) -> None:
        """Let go of the answer; what has not come yet never will. A connection whose answer is complete is kept."""
        if self.position == self.end and "content-length" in self._response.headers:
            next(self._chunks, None)  # sees the end, which is at hand already
        self._response.close()


def open_url(
    url: str,
    headers: Mapping[str, str] | None = None,
    limits: HttpLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
    clients: HttpClients | None = None,
) -> HttpSource:
    """Ask a server for the beginning of a file.

    Args:
        url: an http or https address.
        headers: such as Authorization; they go to this host alone, and only over https or within this machine.
        limits: how much it may cost; None for the usual.
        clock: seconds that only go forward.
        clients: proxy and certificates; None for what the system says. Its token is not used.

    Raises:
        RemoteError: the file cannot be read from there.
    """
    limits = limits or HttpLimits()
    clients = clients or HttpClients()
    check_address(url)
    private = _checked_headers(headers or {})
    client = clients.make_client(limits.wait_s)
    source = HttpSource(client, url, private, limits, clock)
    source.proxy_host = clients.proxy_host(url)
    try:
        source.fetch(0)
    except RemoteError:
        source.close()
        raise
    return source


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be sent along; raises RemoteError for one that no server would take."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise RemoteError(RemoteFault.BAD_HEADER, detail=name)
    return {name: value.strip() for name, value in headers.items() if name.lower() not in _OWN_HEADERS}
