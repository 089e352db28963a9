"""Addresses that may be asked for files: checked before a connection is made, and again at every redirect.

Knows which hosts a secret may be sent to; sends nothing. httpx2 is loaded with the first address.
"""

from __future__ import annotations

import ipaddress

from app.models.http_faults import RemoteError, RemoteFault


def check_address(url: str) -> None:
    """Refuse what is no plain http or https address; raises RemoteError."""
    import httpx2

    shown = url.partition("?")[0]  # what stands behind may be a signature
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise RemoteError(RemoteFault.BAD_ADDRESS, detail=shown) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise RemoteError(RemoteFault.BAD_ADDRESS, detail=shown)
    if parsed.userinfo:
        raise RemoteError(RemoteFault.BAD_ADDRESS, detail=f"{parsed.scheme}://…@{parsed.host}")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its very name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Return the host of an address that was checked, for words and comparisons."""
    import httpx2

    return httpx2.URL(url).host


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address that was checked: who is asked, whatever for."""
    import httpx2

    parsed = httpx2.URL(url)
    port = parsed.port or {"http": 80, "https": 443}[parsed.scheme]
    return f"{parsed.scheme}://{parsed.host}:{port}"


def is_private(url: str) -> bool:
    """Return whether nobody on the way can read what is sent: https, or this very machine."""
    import httpx2

    parsed = httpx2.URL(url)
    return parsed.scheme == "https" or is_loopback(parsed.host)


def redirected(url: str, location: str) -> str:
    """Return where an answer of this address sends its client.

    Args:
        url: the address that was asked.
        location: what the answer's Location header says, perhaps relative to it.

    Raises:
        RemoteError: that is no address, or https would lead to http.
    """
    import httpx2

    before = httpx2.URL(url)
    if not location:
        raise RemoteError(RemoteFault.REDIRECTS, before.host)
    try:
        after = before.join(location)
    except (httpx2.InvalidURL, ValueError) as error:
        raise RemoteError(RemoteFault.REDIRECTS, before.host) from error
    check_address(str(after))
    if before.scheme == "https" and after.scheme != "https":
        raise RemoteError(RemoteFault.NOT_SECURE, after.host)
    return str(after)
