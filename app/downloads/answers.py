"""What a server's answer says of the bytes behind it, and what it means when there are none.

Reads headers only. References: RFC 9110, sections 8.8.3 (ETag), 14.4 (Content-Range) and 15; the hub's own X-Error-Code
as huggingface_hub 2.4 reads it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from app.http_addresses import host_of, origin_of
from app.http_clients import HttpClients, asked_wait_s
from app.models.http_faults import RemoteError, RemoteFault

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")
_NUMBER = re.compile(r"[0-9]{1,19}")
_STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]{1,256}"')
_STATUS_FAULTS = {
    401: RemoteFault.NO_ACCESS,
    403: RemoteFault.NO_ACCESS,
    404: RemoteFault.MISSING,
    408: RemoteFault.TOO_SLOW,
    410: RemoteFault.MISSING,
    416: RemoteFault.RANGE_REFUSED,
    429: RemoteFault.BUSY,
}


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer says of its bytes.

    Attributes:
        start: where in the file they begin.
        size_bytes: of the whole file; None where it is not said.
        body_bytes: how many come; None where it is not said.
        version: what the server calls this version of the file, if it can be relied on byte for byte; "" for none.
        host: who gives them.
    """

    start: int
    size_bytes: int | None
    body_bytes: int | None
    version: str
    host: str


def checked_head(status: int, headers: Mapping[str, str], host: str, have_bytes: int) -> Head:
    """Return what an answer says; raises RemoteError for one whose bytes are not those that were asked for.

    Args:
        status: 200 or 206.
        headers: of the answer.
        host: who gave it.
        have_bytes: from where on the file was asked for; nothing but its beginning may come instead, with 200.
    """
    if headers.get("content-type", "").lower().startswith("text/html"):
        raise RemoteError(RemoteFault.WEB_PAGE, host)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise RemoteError(RemoteFault.ENCODED, host, detail=encoding)
    told = headers.get("content-length", "")
    body_bytes = int(told) if _NUMBER.fullmatch(told) and "transfer-encoding" not in headers else None
    etag = headers.get("etag", "")
    version = etag if _STRONG_ETAG.fullmatch(etag) else ""
    if status == 200:
        return Head(0, body_bytes, body_bytes, version, host)
    match = _CONTENT_RANGE.fullmatch(headers.get("content-range", "").strip())
    if match is None:
        raise RemoteError(RemoteFault.WRONG_RANGE, host)
    start, last = int(match[1]), int(match[2])
    size_bytes = None if match[3] == "*" else int(match[3])
    is_within = size_bytes is None or last < size_bytes  # less than was asked for is a server's right
    if start != have_bytes or last < start or not is_within or body_bytes not in (None, last + 1 - start):
        raise RemoteError(RemoteFault.WRONG_RANGE, host)
    return Head(start, size_bytes, body_bytes, version, host)


def status_error(status: int, headers: Mapping[str, str], url: str, clients: HttpClients) -> RemoteError:
    """Return the error for an answer that is neither a file nor a redirect.

    Args:
        status: its number.
        headers: its headers.
        url: who gave it; the hub's own host and the hosts that it sends to mean different things.
        clients: says which is the hub's, and whether a token was sent.
    """
    wait_s = asked_wait_s(headers, time.time())
    fault = _STATUS_FAULTS.get(status, RemoteFault.SERVER_FAULT if 500 <= status < 600 else RemoteFault.UNEXPECTED)
    detail = ""
    if fault is RemoteFault.NO_ACCESS:
        code = headers.get("x-error-code", "")
        if origin_of(url) != origin_of(clients.endpoint):
            fault = RemoteFault.EXPIRED
        elif code == "GatedRepo":
            fault, detail = RemoteFault.GATED, url.partition("/resolve/")[0]
        elif status == 401 and not code and clients.authorization(url):
            fault = RemoteFault.TOKEN_REFUSED
    retry_after_s = None if wait_s is None else max(0, round(wait_s))
    return RemoteError(fault, host_of(url), status=status, detail=detail, retry_after_s=retry_after_s)
