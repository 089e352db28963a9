"""Every fault of a server has words, whatever the server put into them."""

from __future__ import annotations

import pytest

from app.models.http_faults import RemoteError, RemoteFault


@pytest.mark.parametrize("fault", list(RemoteFault))
def test_every_fault_says_what_happened_and_what_to_do(fault: RemoteFault) -> None:
    words = RemoteError(fault, "hub.example", status=418, detail="a detail", limit_bytes=2**26).words
    assert words.message.endswith((".", "a detail"))
    assert words.hint.endswith(".")
    assert not set("{}") & set(words.message + words.hint)


def test_the_words_name_host_status_and_limit() -> None:
    assert RemoteError(RemoteFault.MISSING, "hub.example", status=404).words.message == (
        "hub.example has no such file (status 404)."
    )
    assert "64.0\u00a0MiB" in RemoteError(RemoteFault.TOO_LARGE, limit_bytes=2**26).words.message
    assert RemoteError(RemoteFault.UNREACHABLE).words.message == "unknown cannot be reached."


def test_a_wait_that_the_server_asks_for_is_named() -> None:
    error = RemoteError(RemoteFault.BUSY, "hub.example", status=429, retry_after_s=1_200)
    assert error.words.hint == "The server asks to wait 1,200 seconds."
    assert (error.fault, error.status, error.retry_after_s) == (RemoteFault.BUSY, 429, 1_200)
    assert "wait" not in RemoteError(RemoteFault.MISSING, status=404, retry_after_s=5).words.hint


def test_what_a_server_wrote_becomes_one_visible_line() -> None:
    error = RemoteError(RemoteFault.ENCODED, "a\nb\u202ec{host}" + "x" * 200, detail="{status}\x00" + "y" * 500)
    assert "\n" not in error.words.message
    assert "\u202e" not in error.words.message
    assert "{status}" in error.words.message  # inserted as it is, never read as a place
    assert len(error.words.message) < 320
