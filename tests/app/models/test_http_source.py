"""Ranges of a file from a local server, honest or hostile: few requests, bounded bytes, bounded time, words."""

from __future__ import annotations

import itertools
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.connections import ConnectionCounter
from app.models.http_faults import RemoteError, RemoteFault
from app.models.http_source import HttpLimits, HttpSource, check_address, is_loopback, open_url
from tests.helpers.range_server import RangeServer

MIB = 2**20
HEAD = bytes(range(256)) * 40  # 10,240 bytes
QUICK = HttpLimits(pieces_bytes=(1_000, 2_000), total_bytes=200_000, wait_s=5.0)
IMPATIENT = HttpLimits(pieces_bytes=(1_000,), total_bytes=200_000, wait_s=0.2)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' servers are this machine; a proxy of the environment has no part in it."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[RangeServer]:
    """A server of a file of 1 MiB."""
    with RangeServer(HEAD, MIB) as running:
        yield running


def fault_of(url: str, limits: HttpLimits = QUICK, offset: int = 1_500, **headers: str) -> RemoteError:
    """Return the error of opening the file and reading at a place in its second piece."""
    with pytest.raises(RemoteError) as caught:
        read_at(url, offset, limits, headers)
    return caught.value


def read_at(url: str, offset: int, limits: HttpLimits = QUICK, headers: dict[str, str] | None = None) -> bytes:
    source = open_url(url, headers, limits)
    try:
        return source.read(offset, 10)
    finally:
        source.close()


def closed(source: HttpSource) -> HttpSource:
    source.close()
    return source


# ------------------------------------------------------------------------------------------ an honest server


def test_pieces_grow_and_bytes_at_hand_cost_no_request(server: RangeServer) -> None:
    source = open_url(server.url, limits=QUICK)
    assert (source.size_bytes, source.requests) == (MIB, 1)
    assert source.read(0, 1_000) == HEAD[:1_000]
    assert source.read(900, 500) == HEAD[900:1_000]  # what is at hand, and no more
    assert source.requests == 1
    assert source.read(1_000, 500) == HEAD[1_000:1_500]
    assert source.read(2_999, 500) == HEAD[2_999:3_000]
    assert (source.requests, source.read_bytes) == (2, 3_000)
    assert source.read(9_000, 5) == HEAD[9_000:9_005]  # passed over, never received
    assert source.read(MIB - 3, 100) == bytes(3)
    assert source.read(MIB, 100) == b""
    source.close()
    ranges = [headers["range"] for _path, headers in server.script.requests]
    assert ranges == ["bytes=0-999", "bytes=1000-2999", "bytes=9000-10999", "bytes=1048573-1050572"]
    assert {headers["accept-encoding"] for _path, headers in server.script.requests} == {"identity"}


def test_all_requests_share_one_counted_connection(server: RangeServer) -> None:
    counter = ConnectionCounter()
    counter.install()
    source = open_url(server.url, limits=QUICK)
    source.read(5_000, 1)
    source.read(50_000, 1)
    source.close()
    assert (source.requests, counter.count) == (3, 1)


def test_a_file_smaller_than_the_first_piece_takes_one_request() -> None:
    with RangeServer(HEAD) as server:
        source = open_url(server.url)
        assert source.read(0, MIB) == HEAD
        assert source.read(len(HEAD), 10) == b""
        assert (closed(source).requests, source.read_bytes) == (1, len(HEAD))


def test_a_server_may_give_less_than_was_asked_for() -> None:
    with RangeServer(bytes(300_000)) as server:
        server.script.fault = "small_pieces"
        source = open_url(server.url)
        assert [len(source.read(offset, MIB)) for offset in (0, 100_000, 200_000)] == [100_000] * 3
        assert closed(source).requests == 3


def test_nothing_of_the_network_is_loaded_before_the_first_address() -> None:
    code = "import sys, app.models.remote_header; print(sorted({'httpx2', 'anyio', 'ssl'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root())
    assert "httpx2" not in result.stdout


def root() -> Path:
    return Path(__file__).resolve().parents[3]


def test_no_log_names_an_address(server: RangeServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    read_at(server.url + "?signature=canary", 1_500, headers={"Authorization": "Bearer canary"})
    assert "canary" not in caplog.text
    assert "127.0.0.1" not in caplog.text


# ------------------------------------------------------------------------------------------ a server without ranges


@pytest.mark.parametrize("size_bytes", [MIB, 2**40])
def test_a_server_that_ignores_ranges_is_read_on_and_never_to_the_end(size_bytes: int) -> None:
    with RangeServer(HEAD, size_bytes) as server:
        server.script.fault = "range_ignored"
        source = open_url(server.url, limits=QUICK)
        assert source.size_bytes == size_bytes
        assert source.read(0, 20) == HEAD[:20]
        assert source.read(990, 20) == HEAD[990:1_000]
        assert source.read(1_000, 20) == HEAD[1_000:1_020]
        assert source.read(7_000, 20) == HEAD[7_000:7_020]
        assert source.read(3_000, 20) == HEAD[3_000:3_020]  # back: asked again from the beginning
        source.close()
        assert len(server.script.requests) == 2
        assert source.read_bytes < 200_000


def test_a_server_without_ranges_and_size_is_refused(server: RangeServer) -> None:
    server.script.fault = "range_ignored_no_size"
    assert fault_of(server.url).fault is RemoteFault.NO_SIZE


def test_what_is_received_is_bounded_with_and_without_ranges() -> None:
    limits = HttpLimits(pieces_bytes=(MIB,), total_bytes=2 * MIB)
    with RangeServer(b"", 2**40) as server:
        source = open_url(server.url, limits=limits)
        assert source.read(2**39, 1) == b"\0"  # ranges jump there
        with pytest.raises(RemoteError) as caught:
            source.read(2**38, 1)
        assert closed(source).read_bytes == 2 * MIB
        assert caught.value.fault is RemoteFault.TOO_LARGE
        server.script.fault = "range_ignored"
        assert fault_of(server.url, limits, offset=2**39).fault is RemoteFault.TOO_LARGE


# ------------------------------------------------------------------------------------------ bad servers


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("wrong_start", RemoteFault.WRONG_RANGE),
        ("wrong_end", RemoteFault.WRONG_RANGE),
        ("unknown_total", RemoteFault.WRONG_RANGE),
        ("no_content_range", RemoteFault.WRONG_RANGE),
        ("nonsense_range", RemoteFault.WRONG_RANGE),
        ("wrong_total", RemoteFault.CHANGED),
        ("new_version", RemoteFault.CHANGED),
        ("gzip", RemoteFault.ENCODED),
        ("short_body", RemoteFault.BROKEN_OFF),
        ("short_chunked", RemoteFault.BROKEN_OFF),
        ("reset", RemoteFault.BROKEN_OFF),
        ("not_http", RemoteFault.BROKEN_OFF),
        ("web_page", RemoteFault.WEB_PAGE),
    ],
)
def test_a_bad_answer_ends_with_its_own_words(server: RangeServer, fault: str, expected: RemoteFault) -> None:
    server.script.fault = fault
    assert fault_of(server.url).fault is expected


@pytest.mark.parametrize("fault", ["stall", "stall_at_once"])
def test_a_silent_server_is_given_up(server: RangeServer, fault: str) -> None:
    server.script.fault = fault
    error = fault_of(server.url, IMPATIENT)
    assert error.fault is RemoteFault.TOO_SLOW
    assert error.words.message == "127.0.0.1 took too long to answer."


def test_a_server_that_drips_is_given_up_when_the_whole_takes_too_long(server: RangeServer) -> None:
    server.script.fault = "drip"
    seconds = itertools.chain((0.0, 0.0), itertools.repeat(61.0))  # late once the first byte is there
    with pytest.raises(RemoteError) as caught:
        open_url(server.url, clock=lambda: next(seconds))
    assert caught.value.fault is RemoteFault.TOO_SLOW


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, RemoteFault.NO_ACCESS),
        (403, RemoteFault.NO_ACCESS),
        (404, RemoteFault.MISSING),
        (410, RemoteFault.MISSING),
        (416, RemoteFault.RANGE_REFUSED),
        (429, RemoteFault.BUSY),
        (500, RemoteFault.SERVER_FAULT),
        (503, RemoteFault.SERVER_FAULT),
        (204, RemoteFault.UNEXPECTED),
        (304, RemoteFault.UNEXPECTED),
        (418, RemoteFault.UNEXPECTED),
    ],
)
def test_a_status_has_its_words(server: RangeServer, status: int, expected: RemoteFault) -> None:
    server.script.status = status
    error = fault_of(server.url)
    assert (error.fault, error.status) == (expected, status)
    assert f"(status {status})" in error.words.message


@pytest.mark.parametrize(("value", "seconds"), [("120", 120), ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("-5", None)])
def test_the_wait_that_a_busy_server_asks_for_is_kept(server: RangeServer, value: str, seconds: int | None) -> None:
    server.script.status = 429
    server.script.answer_headers = {"Retry-After": value}
    assert fault_of(server.url).retry_after_s == seconds


def test_an_empty_file_is_refused() -> None:
    with RangeServer(b"") as server:
        assert fault_of(server.url).fault is RemoteFault.RANGE_REFUSED


def test_nobody_listening_is_said_so(server: RangeServer) -> None:
    with RangeServer(HEAD) as other:
        url = other.url
    assert fault_of(url).fault is RemoteFault.UNREACHABLE


def test_endless_small_pieces_are_given_up() -> None:
    with RangeServer(b"", 2**40) as server:
        server.script.fault = "small_pieces"
        source = open_url(server.url, limits=HttpLimits(max_requests=5))
        for number in range(5):
            source.read(number * 100_000, 1)
        with pytest.raises(RemoteError) as caught:
            source.read(500_000, 1)
        assert closed(source).requests == 5
    assert caught.value.fault is RemoteFault.TOO_LARGE


# ------------------------------------------------------------------------------------------ redirects and secrets


def test_redirects_are_followed_once_and_remembered(server: RangeServer) -> None:
    with RangeServer(HEAD, MIB) as hub:
        hub.script.locations = ["/moved", server.url + "?signature=x"]
        source = open_url(hub.url, limits=QUICK)
        source.read(5_000, 1)
        source.close()
        assert [path for path, _headers in hub.script.requests] == ["/model.gguf", "/moved"]
    assert source.final_url == server.url + "?signature=x"
    assert (len(server.script.requests), source.requests) == (2, 4)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed(server: RangeServer, status: int) -> None:
    server.script.locations = ["/a", "/b", "/c", "/d", "/e"]
    server.script.redirect_status = status
    assert read_at(server.url, 0) == HEAD[:10]


@pytest.mark.parametrize("locations", [["/a"] * 6, [""]])
def test_redirects_without_end_or_aim_are_given_up(server: RangeServer, locations: list[str]) -> None:
    server.script.locations = locations
    assert fault_of(server.url).fault is RemoteFault.REDIRECTS
    assert len(server.script.requests) <= 6


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://name:secret@127.0.0.1/x"])
def test_a_redirect_to_another_kind_of_address_is_refused(server: RangeServer, location: str) -> None:
    server.script.locations = [location]
    error = fault_of(server.url)
    assert error.fault is RemoteFault.BAD_ADDRESS
    assert "secret" not in error.words.message


def test_a_token_reaches_the_first_host_and_no_other(server: RangeServer) -> None:
    with RangeServer(HEAD, MIB) as hub:
        hub.script.locations = ["/moved", server.url]
        token = {"Authorization": "Bearer secret", "X-Own": "1", "Accept-Encoding": "gzip"}
        assert read_at(hub.url, 0, headers=token) == HEAD[:10]
        assert [headers.get("authorization") for _path, headers in hub.script.requests] == ["Bearer secret"] * 2
    (elsewhere,) = (headers for _path, headers in server.script.requests)
    assert not {"authorization", "x-own"} & set(elsewhere)
    assert elsewhere["accept-encoding"] == "identity"


def test_a_token_never_travels_in_the_clear() -> None:
    with pytest.raises(RemoteError) as caught:
        open_url("http://hub.example/model.gguf", {"Authorization": "Bearer secret"})
    assert caught.value.fault is RemoteFault.NOT_SECURE


@pytest.mark.parametrize("value", ["Bearer secret\r\nX: y", "Bearer sécret", "Bearer secret\n"])
def test_a_token_that_no_server_takes_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(RemoteError) as caught:
        open_url("https://hub.example/x", {"Authorization": value})
    assert caught.value.fault is RemoteFault.BAD_HEADER
    assert "secret" not in str(caught.value.words)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "model.gguf",
        "file:///etc/passwd",
        "ftp://a/b",
        "https://",
        "http://[::1",
        "https://me:secret@a/b",
    ],
)
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(RemoteError) as caught:
        check_address(url)
    assert caught.value.fault is RemoteFault.BAD_ADDRESS
    assert "secret" not in str(caught.value.words)


def test_this_machine_is_known_by_its_names() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1")] == [True] * 4
    assert [is_loopback(host) for host in ("hub.example", "10.0.0.1", "0.0.0.0", "localhost.example")] == [False] * 4


def test_a_proxy_of_an_unknown_kind_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    with pytest.raises(RemoteError) as caught:
        open_url("https://hub.example/x")
    assert caught.value.fault is RemoteFault.BAD_PROXY


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
def test_certificates_are_checked_against_the_system_or_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Part of field report 12: a company's own certificate can be set, and the words name it where it is missing.
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    line += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(line, check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    with RangeServer(HEAD, MIB, certificate=both) as server:
        error = fault_of(server.url)
        assert (error.fault, server.script.requests) == (RemoteFault.CERTIFICATE, [])
        assert "certificate" in error.words.message
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert read_at(server.url, 0, headers={"Authorization": "Bearer secret"}) == HEAD[:10]
        assert server.script.requests[0][1]["authorization"] == "Bearer secret"
