"""What a server's headers say of the bytes behind them; anything that does not fit the question is refused."""

from __future__ import annotations

import email.utils
import time

import pytest

from app.downloads.answers import Head, checked_head, status_error
from app.http_clients import HttpChoices, HttpClients
from app.models.http_faults import RemoteError, RemoteFault

HUB, CDN = "https://hub.example", "https://cdn.example"
URL = f"{HUB}/ann/x-GGUF/resolve/main/m.gguf"


def test_a_whole_file_says_its_size_and_version():
    head = checked_head(200, {"content-length": "100", "etag": '"v1"'}, "h", 40)
    assert head == Head(0, 100, 100, '"v1"', "h")


def test_a_range_says_where_it_begins():
    headers = {"content-length": "60", "content-range": "bytes 40-99/100", "etag": '"v1"'}
    assert checked_head(206, headers, "h", 40) == Head(40, 100, 60, '"v1"', "h")


def test_a_server_may_give_less_than_was_asked_for_and_may_not_know_the_size():
    assert checked_head(206, {"content-range": "bytes 40-49/100"}, "h", 40) == Head(40, 100, None, "", "h")
    assert checked_head(206, {"content-range": "bytes 40-49/*"}, "h", 40).size_bytes is None


def test_a_length_that_no_length_binds_is_not_believed():
    assert checked_head(200, {"transfer-encoding": "chunked", "content-length": "5"}, "h", 0).body_bytes is None
    assert checked_head(200, {"content-length": "5, 5"}, "h", 0).body_bytes is None
    assert checked_head(200, {"content-length": "-5"}, "h", 0).size_bytes is None


@pytest.mark.parametrize("etag", ["", 'W/"weak"', "bare", '"a"b"', '"' + "x" * 300 + '"', '"ü"'])
def test_only_a_strong_etag_tells_versions_apart(etag):
    assert checked_head(200, {"etag": etag}, "h", 0).version == ""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-range": "bytes 41-99/100"},
        {"content-range": "bytes 39-99/100"},
        {"content-range": "bytes 40-100/100"},
        {"content-range": "bytes 40-39/100"},
        {"content-range": "bytes */100"},
        {"content-range": "items 40-99/100"},
        {"content-range": "bytes 40-99/100", "content-length": "61"},
        {"content-range": "bytes ٤٠-99/100"},
    ],
)
def test_a_range_that_was_not_asked_for_is_refused(headers):
    with pytest.raises(RemoteError) as caught:
        checked_head(206, headers, "h", 40)
    assert caught.value.fault is RemoteFault.WRONG_RANGE


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({"content-type": "text/html; charset=utf-8"}, RemoteFault.WEB_PAGE),
        ({"content-type": "Text/HTML"}, RemoteFault.WEB_PAGE),
        ({"content-encoding": "gzip"}, RemoteFault.ENCODED),
        ({"content-encoding": " BR "}, RemoteFault.ENCODED),
    ],
)
@pytest.mark.parametrize("status", [200, 206])
def test_a_page_and_a_compressed_body_are_refused(headers, fault, status):
    with pytest.raises(RemoteError) as caught:
        checked_head(status, headers, "h", 0)
    assert caught.value.fault is fault


def error_of(status, url=URL, token="hf_x", **headers):
    clients = HttpClients(lambda: HttpChoices(endpoint=HUB), lambda _endpoint: token, {})
    found = status_error(status, {name.replace("_", "-"): value for name, value in headers.items()}, url, clients)
    assert found.status == status
    return found


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (404, RemoteFault.MISSING),
        (408, RemoteFault.TOO_SLOW),
        (410, RemoteFault.MISSING),
        (416, RemoteFault.RANGE_REFUSED),
        (429, RemoteFault.BUSY),
        (500, RemoteFault.SERVER_FAULT),
        (503, RemoteFault.SERVER_FAULT),
        (599, RemoteFault.SERVER_FAULT),
        (204, RemoteFault.UNEXPECTED),
        (304, RemoteFault.UNEXPECTED),
        (418, RemoteFault.UNEXPECTED),
    ],
)
def test_a_status_has_its_meaning(status, fault):
    assert error_of(status).fault is fault


def test_a_gate_leads_to_the_model_s_page():
    # Field report 11: where to accept the licence, and that a token is needed.
    for status in (401, 403):
        error = error_of(status, x_error_code="GatedRepo")
        assert error.fault is RemoteFault.GATED
        assert "Accept it at https://hub.example/ann/x-GGUF," in error.words.hint
        assert "token" in error.words.hint


def test_no_access_is_told_from_a_token_that_is_not_accepted():
    assert error_of(401).fault is RemoteFault.TOKEN_REFUSED
    assert error_of(401, token=None).fault is RemoteFault.NO_ACCESS
    assert error_of(401, x_error_code="RepoNotFound").fault is RemoteFault.NO_ACCESS
    assert error_of(403).fault is RemoteFault.NO_ACCESS


def test_a_refusal_of_the_cdn_is_an_address_that_has_expired():
    for status in (401, 403):
        assert error_of(status, url=f"{CDN}/repos/x?Signature=secret").fault is RemoteFault.EXPIRED


def test_the_wait_that_is_asked_for_is_kept():
    assert error_of(429, retry_after="7").retry_after_s == 7
    assert error_of(503, retry_after=email.utils.formatdate(time.time() + 100, usegmt=True)).retry_after_s in (99, 100)
    assert error_of(429, ratelimit='"api";r=0;t=9').retry_after_s == 9
    assert error_of(429).retry_after_s is None
