"""What tests of the hub share: a Hub that asks a test server, repos with true headers and no weights, fits by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.http_clients import HttpClients
from app.hub.hub import Hub
from app.hub.hub_call import HubLimits
from app.hub.hub_errors import HubError, HubErrorKind
from app.hub.types import QuantizationRow, SearchQuery
from app.models.fit_types import Device, Fit, Verdict
from tests.helpers.gguf_files import U32, TinyGguf, entry, string_entry, u32
from tests.helpers.hub_server import HubServer

# A server of this machine answers at once; what waits longer waits for nothing.
QUICK = HubLimits(connect_s=2.0, wait_s=0.4, total_s=5.0)
GIB = 2**30
LLAMA = {"total": 8_030_261_248, "architecture": "llama", "context_length": 131_072}


@contextmanager
def asking(
    server: HubServer,
    folder: Path,
    token: str | None = None,
    limits: HubLimits = QUICK,
    now: Callable[[], float] | None = None,
) -> Iterator[Hub]:
    """Give a Hub that knows this server and this token, and keeps its answers in the folder."""
    clients = HttpClients(token=lambda _endpoint: token, environment={"HF_ENDPOINT": server.endpoint})
    more = {"now": now} if now is not None else {}
    try:
        yield Hub(folder / "cache", clients, limits, **more)
    finally:
        clients.close()


def small_gguf(**metadata: int) -> bytes:
    """Return a whole GGUF of some kilobytes; `metadata` adds numbers, with `__` for a point in their keys."""
    more = tuple(entry(key.replace("__", "."), U32, u32(value)) for key, value in metadata.items())
    base = (string_entry("general.name", "Tiny"), entry("llama.block_count", U32, u32(1)))
    return TinyGguf(metadata=(*base, *more)).to_bytes()


def fit_of(room: int, verdict: Verdict = Verdict.FITS, speed: float | None = None) -> Fit:
    """Return a fit with so much room for context."""
    device = Device("CPU", "This computer", 16 * GIB, 12 * GIB)
    return Fit(verdict, None, 8192, {"f16": room, "q8_0": 2 * room}, decode_tokens_per_s=speed, device=device)


def row(quantization: str, size_bytes: int = 1000, **fields: object) -> QuantizationRow:
    """Return a row of a table."""
    made: dict[str, object] = {"key": quantization, "files": (), **fields}
    return QuantizationRow(quantization=quantization, size_bytes=size_bytes, **made)  # type: ignore[arg-type]


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def add_three_repos(server: HubServer) -> None:
    """Add ann's Llama in GGUF, its base in safetensors, and bob's Qwen."""
    server.add_repo(
        *("ann/Llama-8B-GGUF", {"Llama-8B-Q4_K_M.gguf": small_gguf(), "Llama-8B-Q8_0.gguf": small_gguf()}),
        card={"license": "mit", "base_model": "meta/Llama-8B"},
        card_text="# Llama\n\n<b>Good</b> [page](https://e.example)\n",
        downloads=500,
        likes=9,
        gguf=LLAMA,
    )
    server.add_repo("bob/Llama-8B", {"model.safetensors": b"x" * 100, "config.json": "{}"}, downloads=900, likes=5)
    server.add_repo("bob/Qwen-GGUF", {"q-Q8_0.gguf": small_gguf()}, downloads=100, likes=90)


def kind_of(ask: Callable[..., object], *arguments: object, **named: object) -> HubErrorKind:
    """Return why a question gets no answer."""
    with pytest.raises(HubError) as caught:
        ask(*arguments, **named)
    assert caught.value.words.message
    return caught.value.kind


def asked_of(hub: Hub, what: str) -> Callable[..., object]:
    """Return a question of this kind."""
    return {
        "search": lambda **options: hub.search(SearchQuery(words="llama"), **options),
        "summary": lambda **options: hub.search(SearchQuery(words="ann/Llama-8B-GGUF"), **options),
        "detail": lambda **options: hub.detail("ann/Llama-8B-GGUF", **options),
        "publishers": lambda **options: hub.publishers("meta/Llama-8B", **options),
    }[what]
