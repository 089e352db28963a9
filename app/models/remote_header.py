"""The header of a model on a server: what it is and how large, for a few megabytes instead of the whole file.

Knows which reader to use; app/models/http_source.py knows the network, the readers know the formats.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.models.byte_source import ByteSource
from app.models.gguf_header import GgufHeader, read_header_from
from app.models.http_source import HttpLimits, HttpSource, open_url
from app.models.safetensors_tensors import SafeTensor, read_tensors

Header = TypeVar("Header")


@dataclass(frozen=True, slots=True)
class Remote(Generic[Header]):
    """What was read from a server, and what that cost.

    Attributes:
        header: of the file; its file_bytes is the size that the server gives.
        size_bytes: that size.
        requests: how many were sent, redirects included.
        read_bytes: how much of the file was received.
        final_url: where the file really lies; it may hold a signature, so it belongs in no log.
    """

    header: Header
    size_bytes: int
    requests: int
    read_bytes: int
    final_url: str


RemoteHeader = Remote[GgufHeader]
RemoteTensors = Remote[tuple[SafeTensor, ...]]


def read_remote_header(
    url: str,
    headers: Mapping[str, str] | None = None,
    limits: HttpLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RemoteHeader:
    """Return the header of a GGUF file on a server; of a split set, of its first part.

    Blocks for as long as the limits allow: call it on a background thread.

    Args:
        url: an http or https address.
        headers: such as Authorization; see open_url().
        limits: how much it may cost; None for the usual.
        clock: seconds that only go forward.

    Raises:
        RemoteError: the server does not give the file.
        HeaderError: it gives something that is no GGUF, or one that cannot be true.
    """
    return _read(open_url(url, headers, limits, clock), read_header_from)


def read_remote_tensors(
    url: str,
    headers: Mapping[str, str] | None = None,
    limits: HttpLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RemoteTensors:
    """Return the tensors of a safetensors file on a server; otherwise as read_remote_header()."""
    return _read(open_url(url, headers, limits, clock), read_tensors)


def _read(source: HttpSource, reader: Callable[[ByteSource], Header]) -> Remote[Header]:
    try:
        header = reader(source)
        return Remote(header, source.size_bytes, source.requests, source.read_bytes, source.final_url)
    finally:
        source.close()
