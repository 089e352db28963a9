"""One question to a hub over the network: bounded in time, bytes and values; given up when the caller wants that.

huggingface_hub asks through it too: its client is one of ours whose every request ends here, so that the proxy, the
certificates, the token's rules and the limits are the program's own, and no answer is waited for with its silent
retries. Whatever goes wrong is a HubError.
Reference: set_client_factory() of huggingface_hub 2.4.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from app.http_addresses import check_address, host_of, redirected
from app.http_clients import HttpClients, asked_wait_s, foreign_errors
from app.hub.hub_errors import HubError, HubErrorKind, of_remote
from app.i18n import _
from app.models.bounded_json import check_values
from app.models.byte_source import HeaderError
from app.models.http_faults import RemoteError, RemoteFault

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub import HfApi

_MIB = 2**20
_MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_MAX_CURSOR = 4_096
_MAX_WAIT_S = 24 * 3600.0  # who asks for longer has a wrong clock
# What huggingface_hub reads when it is loaded: it tells nobody anything, and looks for no token by itself.
_ENVIRONMENT = (
    "HF_HUB_DISABLE_TELEMETRY",
    "HF_HUB_DISABLE_XET",
    "HF_HUB_DISABLE_PROGRESS_BARS",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN",
    "HF_HUB_DISABLE_UPDATE_CHECK",
)


@dataclass(frozen=True, slots=True)
class HubLimits:
    """How much one question may cost.

    Attributes:
        connect_s: how long a connection may take.
        wait_s: how long the hub may be silent.
        total_s: how long the whole question may take.
        listing_bytes: the largest listing; one of 10,000 files takes 3 MB.
        listing_values: how many values it may hold.
        card_bytes: how much of a model card is read.
    """

    connect_s: float = 5.0
    wait_s: float = 10.0
    total_s: float = 20.0
    listing_bytes: int = 16 * _MIB
    listing_values: int = 300_000
    card_bytes: int = _MIB // 4


_CALL: ContextVar[HubCall | None] = ContextVar("hub_call", default=None)


class HubCall:
    """A question; use it in a `with`, on one thread. What huggingface_hub asks meanwhile goes through it.

    Attributes:
        next_cursor: of the listing's next page, as the last answer said; "" when there is none.
        _about: what is asked for, such as a repo's name: for the words; "" for a search.
        _revision: the branch or commit that is asked for: likewise.
        _cursor: of the page that is wanted.
    """

    def __init__(
        self,
        clients: HttpClients,
        about: str = "",
        cancel: threading.Event | None = None,
        limits: HubLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        cursor: str = "",
        revision: str = "",
    ) -> None:
        self.next_cursor = ""
        self._clients = clients
        self._about = about
        self._cancel = cancel
        self._limits = limits or HubLimits()
        self._clock = clock
        self._cursor = cursor
        self._revision = revision
        self._deadline_s = clock() + self._limits.total_s
        self._reset: Token[HubCall | None] | None = None

    def __enter__(self) -> HubCall:
        self._reset = _CALL.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._reset is not None
        _CALL.reset(self._reset)

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Return what the hub says to a request of huggingface_hub, whole; raises HubError."""
        import httpx2

        url = request.url.copy_set_param("cursor", self._cursor) if self._cursor else request.url
        with _as_hub_error(), self._opened(request.method, str(url)) as response:
            self._check_answer(response)
            data = self._read(response, self._limits.listing_bytes, is_whole=True)
            self._check_values(data, response.url.host)
            self.next_cursor = _cursor_of(response)
            headers = {"Content-Type": "application/json"}
            return httpx2.Response(200, headers=headers, content=data, request=request)

    def beginning(self, url: str, max_bytes: int) -> bytes:
        """Return the beginning of a file of words; raises HubError."""
        with _as_hub_error(), self._opened("GET", url) as response:
            self._check_answer(response)
            return self._read(response, max_bytes, is_whole=False)

    def status(self, url: str) -> tuple[int, Mapping[str, str]]:
        """Return whether a file may be had, without asking for it: the status and the headers. Raises HubError."""
        with _as_hub_error(), self._opened("HEAD", url, follows=False) as response:
            if response.status_code == 429 or response.status_code >= 500:
                raise self._refusal(response)
            return response.status_code, response.headers

    # The exchange.

    @contextlib.contextmanager
    def _opened(self, method: str, url: str, *, follows: bool = True) -> Iterator[httpx2.Response]:
        """Ask, go where the hub sends, and give the last answer before its body."""
        check_address(url)
        for _hop in range(_MAX_REDIRECTS + 1):
            response = self._send(method, url)
            if not follows or response.status_code not in _REDIRECTS:
                break
            location = response.headers.get("location", "")
            response.close()
            url = redirected(url, location)
        else:
            raise RemoteError(RemoteFault.REDIRECTS, host_of(url))
        try:
            yield response
        finally:
            response.close()

    def _send(self, method: str, url: str) -> httpx2.Response:
        import httpx2

        self._check_time(host_of(url))
        client = self._clients.client()
        headers = {"Accept-Encoding": "identity", **self._authorization(url)}
        waits = httpx2.Timeout(self._limits.wait_s, connect=self._limits.connect_s)
        request = client.build_request(method, url, headers=headers, timeout=waits)
        with foreign_errors(url, self._clients.proxy_host(url)):
            return client.send(request, stream=True, follow_redirects=False)

    def _authorization(self, url: str) -> Mapping[str, str]:
        headers = self._clients.authorization(url)
        if any(not value.isascii() or not value.isprintable() for value in headers.values()):
            raise RemoteError(RemoteFault.BAD_HEADER, detail="Authorization")
        return headers

    def _read(self, response: httpx2.Response, max_bytes: int, *, is_whole: bool) -> bytes:
        """Return the body, at most so much of it; a whole one may not be longer."""
        host = response.url.host
        data = bytearray()
        with foreign_errors(str(response.url)):
            for chunk in response.iter_raw():
                self._check_time(host)
                data += chunk
                if len(data) > max_bytes:
                    break
        if len(data) > max_bytes and is_whole:
            raise HubError(HubErrorKind.BAD_ANSWER, host, detail=_("it is far larger than any listing"))
        return bytes(data[:max_bytes])

    # Checks.

    def _check_time(self, host: str) -> None:
        if self._cancel is not None and self._cancel.is_set():
            raise HubError(HubErrorKind.CANCELLED)
        if self._clock() > self._deadline_s:
            raise HubError(HubErrorKind.SLOW, host)

    def _check_answer(self, response: httpx2.Response) -> None:
        if response.status_code != 200:
            raise self._refusal(response)
        host = response.url.host
        if response.headers.get("content-type", "").lower().startswith("text/html"):
            raise HubError(HubErrorKind.WEB_PAGE, host)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise HubError(HubErrorKind.BAD_ANSWER, host, detail=_("it is compressed, though nobody asked for that"))

    def _check_values(self, data: bytes, host: str) -> None:
        try:
            check_values(data, "the listing", self._limits.listing_values)
        except HeaderError as error:
            raise HubError(HubErrorKind.BAD_ANSWER, host, detail=_("it is far longer than any listing")) from error

    def _refusal(self, response: httpx2.Response) -> HubError:
        """Return the error for a status that is none of success."""
        status, host = response.status_code, response.url.host
        code, message = response.headers.get("x-error-code", ""), response.headers.get("x-error-message", "")
        wait_s = asked_wait_s(response.headers, time.time())
        waits = None if wait_s is None else int(min(wait_s, _MAX_WAIT_S))
        kind = _kind_of(status, code, message, has_token="authorization" in response.request.headers)
        if kind is HubErrorKind.NOT_FOUND and not self._about:  # a hub has its search always: this is none
            kind = HubErrorKind.BAD_ANSWER
        details = {
            HubErrorKind.BAD_ANSWER: _("status {status}").format(status=status),
            HubErrorKind.NO_REVISION: self._revision,
        }
        detail = details.get(kind, self._about)
        is_limit = kind in (HubErrorKind.RATE_LIMITED, HubErrorKind.SERVER_FAULT)
        return HubError(kind, host, status=status, detail=detail, retry_after_s=waits if is_limit else None)


def _kind_of(status: int, code: str, message: str, *, has_token: bool) -> HubErrorKind:
    by_code = {
        "GatedRepo": HubErrorKind.GATED,
        "RepoNotFound": HubErrorKind.NOT_FOUND,
        "EntryNotFound": HubErrorKind.NOT_FOUND,
        "RevisionNotFound": HubErrorKind.NO_REVISION,
    }
    if status == 429:
        return HubErrorKind.RATE_LIMITED
    if status >= 500 or status == 408:
        return HubErrorKind.SERVER_FAULT
    if 400 <= status < 500 and code in by_code:
        return by_code[code]
    if status == 401 and (has_token or "credentials" in message.lower()):
        return HubErrorKind.TOKEN_REFUSED
    if status in (401, 403):
        return HubErrorKind.NO_ACCESS
    return HubErrorKind.NOT_FOUND if status in (404, 410) else HubErrorKind.BAD_ANSWER


@contextlib.contextmanager
def _as_hub_error() -> Iterator[None]:
    try:
        yield
    except RemoteError as error:
        raise of_remote(error) from error


def _cursor_of(response: httpx2.Response) -> str:
    """Return the place of the next page in the Link header; the rest of that address is not used."""
    import httpx2

    try:
        cursor = str(httpx2.URL(response.links.get("next", {}).get("url", "")).params.get("cursor", ""))
    except (httpx2.InvalidURL, ValueError):
        return ""
    return cursor if len(cursor) <= _MAX_CURSOR else ""


# ---------------------------------------------------------------------------------------------- huggingface_hub


class _Bridge:
    """What huggingface_hub's client sends through: the question that this thread is at. A transport for httpx2."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request."""
        call = _CALL.get()
        assert call is not None, "huggingface_hub is asked outside of a HubCall"
        return call.answer(request)

    def close(self) -> None:
        """Do nothing: no connection is its own."""


def _bridge_client() -> httpx2.Client:
    import httpx2

    return httpx2.Client(transport=cast("httpx2.BaseTransport", _Bridge()), trust_env=False)


def open_api(endpoint: str) -> HfApi:
    """Load huggingface_hub, which takes half a second and more, and return its face.

    Every request it makes must be made within a HubCall.
    """
    _load_library()
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, token=False, library_name="cutaway")


@functools.cache
def _load_library() -> None:
    """Load huggingface_hub and put our client into it; once, since that ends the client that it had."""
    for name in _ENVIRONMENT:
        os.environ.setdefault(name, "1")
    import huggingface_hub

    huggingface_hub.set_client_factory(_bridge_client)
