"""The program's one way to the network: proxy, certificates, waiting times and the hub's address, decided here.

A proxy comes from the settings, else from the system; certificates are those that the system trusts and, if a person
chose one, a company's own. The token goes to the hub's own host and to no other. httpx2 is loaded with the first
client, so that the program at rest does without it. Knows no API and no file.
"""

from __future__ import annotations

import email.utils
import logging
import os
import re
import ssl
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

from app.http_addresses import check_address, host_of, is_loopback, is_private, origin_of
from app.models.http_faults import RemoteError, RemoteFault

if TYPE_CHECKING:
    import httpx2

HUB_ENDPOINT = "https://huggingface.co"
_USER_AGENT = "Cutaway"
_LOOPBACK = ("all://localhost", "all://127.0.0.1", "all://[::1]")  # never through a proxy
_SECONDS = re.compile(r"[0-9]{1,9}")
_RATE_LIMIT_RESET = re.compile(r"(?:^|[;,\s])t=([0-9]{1,9})(?:$|[;,\s])")
# OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and _HAS_EXPIRED, Windows' CERT_E_EXPIRED, macOS' errSecCertificateExpired
# and errSecCertificateNotValidYet.
_DATE_CODES = {9, 10, 0x800B0101, -67818, -67819}
_DATE_WORDS = re.compile(r"has expired|is expired|not yet valid|not valid yet|validity period", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpChoices:
    """What a person may have chosen.

    Attributes:
        proxy: its address, such as http://proxy.example:8080; "" for what the system says.
        ca_file: a file with certificates to be trusted besides the system's; "" for none.
        endpoint: the hub's address; "" for HF_ENDPOINT, and where that is not set, Hugging Face itself.
    """

    proxy: str = ""
    ca_file: str = ""
    endpoint: str = ""


def _no_token(_endpoint: str) -> str | None:
    return None


class HttpClients:
    """Makes HTTP clients, and says what they may tell whom. Any thread may call any method; close it at the end.

    Args:
        choices: read whenever a client is needed, so that a change of the settings counts at once.
        token: what a hub knows a person by, asked for with its address; None without one. It may ask the keyring.
        environment: where HF_ENDPOINT is looked up; None takes the process's own.
    """

    def __init__(
        self,
        choices: Callable[[], HttpChoices] = HttpChoices,
        token: Callable[[str], str | None] = _no_token,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._choices = choices
        self._token = token
        self._environment = os.environ if environment is None else environment
        self._lock = threading.Lock()
        self._shared: httpx2.Client | None = None
        self._shared_choices = HttpChoices()
        self._retired: list[httpx2.Client] = []

    @property
    def endpoint(self) -> str:
        """The hub's address without a slash at its end; raises RemoteError for one that is none."""
        chosen = self._choices().endpoint.strip() or self._environment.get("HF_ENDPOINT", "").strip() or HUB_ENDPOINT
        chosen = chosen.rstrip("/")
        check_address(chosen)
        return chosen

    def client(self) -> httpx2.Client:
        """Return the client that all short requests share; do not close it. Raises RemoteError."""
        with self._lock:
            choices = self._choices()
            if self._shared is None or choices != self._shared_choices:
                made = self.make_client()
                if self._shared is not None:
                    self._retired.append(self._shared)  # somebody may still be reading
                self._shared, self._shared_choices = made, choices
            return self._shared

    def make_client(
        self, wait_s: float = 10.0, *, keeps_connections: bool = True, follows_redirects: bool = False
    ) -> httpx2.Client:
        """Return a client of its own, which the caller closes.

        Args:
            wait_s: how long a server may be silent.
            keeps_connections: whether a connection is used again for the next request.
            follows_redirects: whether the client goes where it is sent by itself; it takes no token elsewhere.

        Raises:
            RemoteError: the proxy or the file of certificates cannot be used.
        """
        import httpx2

        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.WARNING)  # below it they write down every address
        choices = self._choices()
        trusted = _trusted(choices.ca_file.strip())
        kept = httpx2.Limits() if keeps_connections else httpx2.Limits(max_keepalive_connections=0)
        try:
            return httpx2.Client(
                verify=trusted,
                proxy=_with_scheme(choices.proxy) or None,
                trust_env=not choices.proxy.strip(),  # its proxies; certificates were chosen above
                mounts=dict.fromkeys(_LOOPBACK),
                timeout=wait_s,
                limits=kept,
                headers={"User-Agent": _USER_AGENT},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no host may mark a person
                follow_redirects=follows_redirects,
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:  # a proxy of a kind that it does not know
            raise RemoteError(RemoteFault.BAD_PROXY, detail=str(error)) from error

    def authorization(self, url: str) -> dict[str, str]:
        """Return the header that tells the hub who asks: for its own host only, and only where nobody listens."""
        endpoint = self.endpoint
        if origin_of(url) != origin_of(endpoint) or not is_private(url):
            return {}
        token = self._token(endpoint)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def proxy_host(self, url: str) -> str:
        """Return the host of the proxy that this address is reached through; "" for none."""
        import httpx2

        host = host_of(url)
        if is_loopback(host):
            return ""
        proxy = _with_scheme(self._choices().proxy)
        if not proxy and not urllib.request.proxy_bypass(host):
            known = urllib.request.getproxies()
            proxy = _with_scheme(known.get(httpx2.URL(url).scheme) or known.get("all") or "")
        try:
            return httpx2.URL(proxy).host if proxy else ""
        except (httpx2.InvalidURL, ValueError):
            return proxy.rpartition("@")[2]

    def close(self) -> None:
        """End every connection of the shared client."""
        with self._lock:
            ended = [*self._retired, *([] if self._shared is None else [self._shared])]
            self._shared, self._retired = None, []
        for client in ended:
            client.close()


def _with_scheme(proxy: str) -> str:
    """Return a proxy's address as a client wants it: "proxy:8080" is one of http."""
    proxy = proxy.strip()
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _trusted(ca_file: str) -> ssl.SSLContext:
    """Return the certificates that the system trusts and those of the file; raises RemoteError."""
    import httpcore2

    context = httpcore2.default_ssl_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
            raise RemoteError(RemoteFault.BAD_CA_FILE, detail=f"{ca_file} ({reason})") from error
    return context


# ------------------------------------------------------------------------------------------- foreign errors


@contextmanager
def foreign_errors(url: str, proxy_host: str = "") -> Iterator[None]:
    """Turn the library's errors into RemoteError, in this one place.

    Args:
        url: what is asked, for the words; only its host is shown.
        proxy_host: the proxy in between, which is what cannot be reached then.
    """
    import httpcore2
    import httpx2

    try:
        yield
    except (httpx2.TimeoutException, httpcore2.TimeoutException) as error:
        raise RemoteError(RemoteFault.TOO_SLOW, host_of(url)) from error
    except (httpx2.ConnectError, httpcore2.ConnectError) as error:
        raise _connect_error(error, host_of(url), proxy_host) from error
    except (httpx2.ProxyError, httpcore2.ProxyError) as error:
        detail = f"{proxy_host}: {error}" if proxy_host else str(error)
        raise RemoteError(RemoteFault.BAD_PROXY, detail=detail) from error
    except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, UnicodeError, OverflowError) as error:
        # A host or port that cannot be, or a header; the text may quote it, and so a token.
        raise RemoteError(RemoteFault.BAD_ADDRESS, detail=host_of(url)) from error
    except (httpx2.HTTPError, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise RemoteError(RemoteFault.BROKEN_OFF, host_of(url)) from error


def _connect_error(error: Exception, host: str, proxy_host: str) -> RemoteError:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        is_date = getattr(cause, "verify_code", 0) in _DATE_CODES or _DATE_WORDS.search(str(cause))
        return RemoteError(RemoteFault.CERTIFICATE_DATE if is_date else RemoteFault.CERTIFICATE, host)
    if isinstance(cause, ssl.SSLError):
        return RemoteError(RemoteFault.NOT_TLS, host, detail=cause.reason or type(cause).__name__)
    if proxy_host:
        return RemoteError(RemoteFault.PROXY_UNREACHABLE, proxy_host)
    return RemoteError(RemoteFault.UNREACHABLE, host)


def asked_wait_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return how long a server asks to wait; None when it does not say. RFC 9110, section 10.2.3.

    Args:
        headers: of its answer, by names in lower case or of any case if the mapping knows none.
        now_s: seconds since 1970, for a wait that is given as a date.
    """
    told = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(told):
        return float(told)
    if told:
        try:
            return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - now_s)
        except (ValueError, TypeError, OverflowError):
            return None
    # "RateLimit" of the IETF's draft-ietf-httpapi-ratelimit-headers, which the hub sends.
    match = _RATE_LIMIT_RESET.search(headers.get("ratelimit", ""))
    return float(match[1]) if match else None
