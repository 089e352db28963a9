"""One connection: what it asks, where it follows, whom it tells the token, and how soon it can be broken off."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from app.downloads.connection import Connection, Wanted
from app.downloads.tools import StoppedError
from app.models.http_faults import RemoteError, RemoteFault
from tests.helpers.certificates import make_certificate, needs_openssl
from tests.helpers.downloads import MIB, clients_of, file_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

SILENCE_S = 20.0
REPO, NAME, TOKEN = "ann/x-GGUF", "m.gguf", "hf_secret"
FILE = Generated(3 * MIB + 5, seed=8)
WHOLE = FILE.part(0, FILE.size_bytes)


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo(REPO, {NAME: FILE, "config.json": "{}"}, card={"license": "mit"})
        yield server


def url_of(hub, name=NAME):
    file = file_of(hub, REPO, name)
    return f"{hub.endpoint}/{REPO}/resolve/{file.revision}/{name}"


def never():
    return threading.Event()


class Asked:
    """One connection, taken to its end or to its fault."""

    def __init__(self, hub, url, have_bytes=0, version="", *, silence_s=10.0, stop=None, token=None, **choices):
        self.head, self.body, self.error, self.waits = None, b"", None, 0
        stop = stop or never()
        clients = clients_of(hub, token, **choices)
        with contextlib.closing(clients.make_client(silence_s, keeps_connections=False)) as client:
            connection = Connection(clients, client, Wanted(url, have_bytes, version), silence_s)
            try:
                self.head = connection.open(stop, self._on_wait)
                while pieces := connection.take(stop, self._on_wait):
                    self.body += b"".join(pieces)
            except (RemoteError, StoppedError) as error:
                self.error = error
            finally:
                began_s = time.monotonic()
                connection.close()
                self.close_s = time.monotonic() - began_s

    def _on_wait(self):
        self.waits += 1

    @property
    def fault(self):
        return self.error.fault


def test_a_whole_file_comes_byte_for_byte(hub):
    asked = Asked(hub, url_of(hub))
    assert (asked.error, asked.body == WHOLE) == (None, True)
    assert (asked.head.start, asked.head.size_bytes) == (0, len(WHOLE))
    assert [one.range for one in hub.requests] == ["", ""]
    assert {one.headers["accept-encoding"] for one in hub.requests} == {"identity"}


@pytest.mark.parametrize("have", [1, 65_536, 2 * MIB, len(WHOLE) - 1])
def test_the_rest_of_a_file_comes_byte_for_byte(hub, have):
    version = Asked(hub, url_of(hub)).head.version
    asked = Asked(hub, url_of(hub), have, version)
    assert (asked.error, asked.body == WHOLE[have:]) == (None, True)
    last = hub.requests[-1]
    assert (last.range, last.headers["if-range"], last.status) == (f"bytes={have}-", version, 206)


def test_another_version_comes_whole(hub):
    asked = Asked(hub, url_of(hub), 100, '"another"')
    assert (asked.head.start, asked.body == WHOLE) == (0, True)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 262_144, 524_289])
@pytest.mark.parametrize("manner", ["", "no_length"])
def test_every_size_comes_whole_with_and_without_a_length(hub, size, manner):
    data = Generated(size, seed=2)
    hub.routes.repos[REPO].commit({"sized.gguf": data})
    if manner:
        hub.fault(manner, "cdn")
    asked = Asked(hub, url_of(hub, "sized.gguf"))
    assert (asked.error, asked.body) == (None, data.part(0, size))
    assert asked.head.body_bytes == (None if manner else size)


def test_a_slow_line_is_no_silence(hub):
    hub.fault("throttle", "cdn", value=4_000_000)
    asked = Asked(hub, url_of(hub), 2 * MIB, silence_s=0.2)
    assert (asked.error, len(asked.body)) == (None, len(WHOLE) - 2 * MIB)


# ------------------------------------------------------------------------------------------- redirects, tokens


def test_the_token_goes_to_the_hub_and_not_where_it_sends_us(hub):
    # S-23: the CDN is another port of the same machine.
    hub.add_token(TOKEN)
    assert Asked(hub, url_of(hub), token=TOKEN).error is None
    assert [(one.area, one.token) for one in hub.requests] == [("resolve", TOKEN), ("cdn", "")]
    hub.fault("redirect_elsewhere", "cdn")
    assert Asked(hub, url_of(hub), token=TOKEN).error is None
    assert hub.requests[-1].area == "elsewhere"
    assert hub.leaked_tokens() == []


def test_a_circle_of_redirects_ends_after_five(hub):
    hub.fault("redirect_loop", "resolve")
    assert Asked(hub, url_of(hub)).fault is RemoteFault.REDIRECTS
    assert len(hub.requests) == 6


@needs_openssl
def test_https_never_leads_to_http(tmp_path):
    certificate = make_certificate(tmp_path / "own")
    with HubServer(certificate.whole) as hub:
        hub.add_repo(REPO, {NAME: FILE}, card={"license": "mit"})
        hub.add_token(TOKEN)
        ca_file = str(certificate.public)
        asked = Asked(hub, url_of(hub), token=TOKEN, ca_file=ca_file)
        assert (asked.error, asked.body == WHOLE) == (None, True)  # TLS brings small pieces
        assert Asked(hub, url_of(hub), 2 * MIB, ca_file=ca_file).body == WHOLE[2 * MIB :]
        hub.fault("redirect_to_http", "cdn")
        assert Asked(hub, url_of(hub), ca_file=ca_file).fault is RemoteFault.NOT_SECURE
        assert hub.seen("plain") == []
        assert Asked(hub, url_of(hub)).fault is RemoteFault.CERTIFICATE
        assert hub.leaked_tokens() == []


def test_a_renamed_repo_is_followed_at_the_hub_with_the_token(hub):
    hub.routes.repos[REPO].old_names = ["ann/old"]
    hub.add_token(TOKEN)
    asked = Asked(hub, url_of(hub).replace(REPO, "ann/old"), token=TOKEN)
    assert (asked.error, asked.body == WHOLE) == (None, True)
    assert [one.token for one in hub.requests] == [TOKEN, TOKEN, ""]


@pytest.mark.parametrize("url", ["ftp://h/x", "http://a:b@127.0.0.1/x", "https://"])
def test_no_other_kind_of_address_is_asked(hub, url):
    assert Asked(hub, url).fault is RemoteFault.BAD_ADDRESS


# ------------------------------------------------------------------------------------- silence and being stopped


@pytest.mark.parametrize("kind", ["stall_before_headers", "stall_in_body"])
@pytest.mark.parametrize("area", ["resolve", "cdn"])
def test_silence_of_any_kind_is_noticed(hub, kind, area):
    hub.fault(kind, area, value=MIB if kind == "stall_in_body" and area == "cdn" else None)
    if kind == "stall_in_body" and area == "resolve":
        asked = Asked(hub, url_of(hub, "config.json"), silence_s=0.3)
    else:
        asked = Asked(hub, url_of(hub), silence_s=0.3)
    assert asked.fault is RemoteFault.TOO_SLOW
    assert asked.waits >= 1


def hang(monkeypatch):
    """Let the look-up of names hang until the event is set."""
    release = threading.Event()

    def look_up(*_arguments, **_options):
        assert release.wait(30)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return release


def test_a_look_up_of_a_name_that_hangs_is_silence_too(hub, monkeypatch):
    release = hang(monkeypatch)
    asked = Asked(hub, "http://hub.example/x", silence_s=0.3)
    assert asked.fault is RemoteFault.TOO_SLOW
    release.set()  # the system's own wait, which nobody can end


@pytest.mark.parametrize("place", ["name", "connect", "headers", "first byte", "body", "chunked body"])
def test_a_stop_is_answered_long_before_the_silence_ends_whatever_the_server_does(hub, monkeypatch, place):
    # S-22: Cancel works within a second; tests/benchmarks/download.py measures that.
    stop, url, release = threading.Event(), url_of(hub), threading.Event()
    listener = None
    if place == "name":
        release = hang(monkeypatch)
        url = "http://hub.example/x"
    elif place == "connect":
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)  # accepts into its queue and never answers
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    elif place == "headers":
        hub.fault("stall_before_headers", "cdn")
    elif place == "first byte":
        hub.fault("stall_in_body", "cdn", value=0)
    elif place == "body":
        hub.fault("stall_in_body", "cdn", value=2 * MIB)
    else:
        hub.fault("no_length", "cdn")
        hub.fault("throttle", "cdn", value=1_000_000)
    stopped_s = []

    def stop_later():
        stopped_s.append(time.monotonic())
        stop.set()

    timer = threading.Timer(0.3, stop_later)
    timer.start()
    asked = Asked(hub, url, stop=stop, silence_s=SILENCE_S)
    answered_s = time.monotonic() - stopped_s[0]
    timer.join()
    release.set()
    if listener is not None:
        listener.close()
    assert isinstance(asked.error, StoppedError)
    assert answered_s < SILENCE_S / 4


def test_a_connection_that_was_never_used_closes(hub):
    clients = clients_of(hub)
    with contextlib.closing(clients.make_client()) as client:
        Connection(clients, client, Wanted(url_of(hub))).close()
    assert hub.requests == []
