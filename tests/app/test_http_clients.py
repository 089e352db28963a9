"""Proxies, certificates, dates and tokens: what the one way to the network does with each; trust S-22, S-23, S-28."""

from __future__ import annotations

import contextlib
import email.utils
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from app.http_clients import HUB_ENDPOINT, HttpChoices, HttpClients, asked_wait_s, foreign_errors
from app.models.http_faults import RemoteError, RemoteFault
from tests.helpers.certificates import make_certificate, needs_openssl
from tests.helpers.downloads import clients_of
from tests.helpers.hub_server import HubServer

TOKEN = "hf_secret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """The tests' servers are this machine; a proxy of the environment has no part in it."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo("ann/x", {"config.json": "{}"})
        yield server


def ask(clients, url):
    """Ask once with a client of its own; raises RemoteError."""
    with contextlib.closing(clients.make_client(5.0)) as client, foreign_errors(url, clients.proxy_host(url)):
        return client.get(url, headers=clients.authorization(url))


def fault_of(clients, url):
    with pytest.raises(RemoteError) as caught:
        ask(clients, url)
    return caught.value


# ------------------------------------------------------------------------------------------------- endpoint


def test_the_hub_is_chosen_by_the_settings_then_the_environment_then_us():
    environment = {"HF_ENDPOINT": "https://mirror.example/"}
    assert HttpClients(environment={}).endpoint == HUB_ENDPOINT
    assert HttpClients(environment=environment).endpoint == "https://mirror.example"
    assert HttpClients(lambda: HttpChoices(endpoint="https://own.example"), environment=environment).endpoint == (
        "https://own.example"
    )


def test_a_hub_with_a_password_in_its_address_is_refused():
    with pytest.raises(RemoteError) as caught:
        _ = HttpClients(environment={"HF_ENDPOINT": "https://a:b@h"}).endpoint
    assert caught.value.fault is RemoteFault.BAD_ADDRESS


# --------------------------------------------------------------------------------------------------- tokens


def test_a_token_goes_to_the_hub_s_own_host_and_to_no_other():
    clients = HttpClients(lambda: HttpChoices(endpoint="https://hub.example"), lambda _endpoint: TOKEN)
    sent = {"Authorization": "Bearer hf_secret"}
    assert clients.authorization("https://hub.example/a/b") == sent
    assert clients.authorization("https://HUB.example:443/a/b") == sent
    for url in (
        "https://cdn.example/x",
        "https://hub.example:444/x",
        "http://hub.example/x",
        "https://hub.example.evil/",
    ):
        assert clients.authorization(url) == {}


def test_a_token_travels_in_the_clear_within_this_machine_only():
    for endpoint, expected in (("http://127.0.0.1:5", {"Authorization": "Bearer hf_secret"}), ("http://hub.lan", {})):
        clients = HttpClients(lambda endpoint=endpoint: HttpChoices(endpoint=endpoint), lambda _endpoint: TOKEN)
        assert clients.authorization(f"{endpoint}/x") == expected


def test_each_hub_has_its_own_token():
    asked = []
    clients = HttpClients(lambda: HttpChoices(endpoint="https://mirror.example"), asked.append)
    assert clients.authorization("https://mirror.example/x") == {}
    assert asked == ["https://mirror.example"]


def test_no_host_leaves_a_mark(hub):
    clients = clients_of(hub)
    with contextlib.closing(clients.make_client()) as client:
        answer = httpx2.Response(200, headers={"Set-Cookie": "mark=1"}, request=httpx2.Request("GET", hub.endpoint))
        client.cookies.extract_cookies(answer)
        assert list(client.cookies.jar) == []


# -------------------------------------------------------------------------------------------------- clients


def test_short_requests_share_a_client_until_the_choices_change(hub):
    choices = [HttpChoices(endpoint=hub.endpoint)]
    clients = HttpClients(lambda: choices[0], environment={})
    first = clients.client()
    assert clients.client() is first
    assert first.get(f"{hub.endpoint}/api/models/ann/x").status_code == 200
    choices[0] = HttpChoices(endpoint=hub.endpoint, proxy="http://127.0.0.1:9")
    second = clients.client()
    assert second is not first
    assert first.get(f"{hub.endpoint}/api/models/ann/x").status_code == 200  # whoever is reading may go on
    clients.close()
    assert (first.is_closed, second.is_closed) == (True, True)
    clients.close()


def test_nothing_of_the_network_is_loaded_before_it_is_needed():
    code = "import sys, app.http_clients, app.downloads.queue; print({'httpx2', 'keyring'} & set(sys.modules))"
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


# -------------------------------------------------------------------------------------------------- proxies


class Proxy:
    """A proxy that answers every request itself and remembers it."""

    def __init__(self, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"):
        self.asked = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        socket.create_connection(self._socket.getsockname()).close()
        self._thread.join()
        self._socket.close()

    def _serve(self):
        while True:
            connection, _address = self._socket.accept()
            with connection:
                asked = connection.recv(65_536)
                if not asked:
                    return
                self.asked.append(asked.split(b"\r\n")[0].decode())
                connection.sendall(self._answer)


def test_a_chosen_proxy_is_used_for_every_host_but_this_machine(hub):
    with Proxy() as proxy:
        clients = clients_of(hub, proxy=proxy.url.removeprefix("http://"))
        assert ask(clients, "http://hub.example/x").text == "hi"
        assert ask(clients, f"{hub.endpoint}/ann/x/resolve/main/config.json").text == "{}"
        assert proxy.asked == ["GET http://hub.example/x HTTP/1.1"]
        assert clients.proxy_host("http://hub.example/x") == "127.0.0.1"
        assert clients.proxy_host(hub.endpoint) == ""


def test_the_system_s_proxy_is_used_where_none_was_chosen(monkeypatch):
    with Proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "other.example")
        clients = HttpClients()
        assert ask(clients, "http://hub.example/x").text == "hi"
        assert clients.proxy_host("http://hub.example/x") == "127.0.0.1"
        assert clients.proxy_host("http://other.example/x") == ""
        assert len(proxy.asked) == 1


def test_a_proxy_that_does_not_answer_is_named_and_not_the_host_behind_it():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    clients = HttpClients(lambda: HttpChoices(proxy=f"http://127.0.0.1:{address[1]}"))
    error = fault_of(clients, "http://hub.example/x")
    assert error.fault is RemoteFault.PROXY_UNREACHABLE
    assert error.words.message == "The proxy 127.0.0.1 cannot be reached."


def test_a_proxy_that_refuses_is_named():
    with Proxy(
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ) as proxy:
        error = fault_of(HttpClients(lambda: HttpChoices(proxy=proxy.url)), "https://hub.example/x")
    assert error.fault is RemoteFault.BAD_PROXY
    assert "127.0.0.1: 407" in error.words.message


@pytest.mark.parametrize("proxy", ["ftp://user:pass@h:1", "socks5://h:1", "http://h:x"])
def test_a_proxy_of_another_kind_is_refused_without_its_password(proxy):
    clients = HttpClients(lambda: HttpChoices(proxy=proxy))
    with pytest.raises(RemoteError) as caught:
        clients.make_client()
    assert caught.value.fault is RemoteFault.BAD_PROXY
    assert "pass" not in caught.value.words.message
    assert "pass" not in clients.proxy_host("https://hub.example")


# --------------------------------------------------------------------------------------------- certificates


@needs_openssl
def test_a_company_s_own_certificate_is_trusted_once_its_file_was_chosen(tmp_path):
    # Field report 12: the words name the CA file and the proxy.
    certificate = make_certificate(tmp_path / "company")
    with HubServer(certificate.whole) as hub:
        hub.add_repo("ann/x", {"config.json": "{}"})
        url = f"{hub.endpoint}/ann/x/resolve/main/config.json"
        error = fault_of(clients_of(hub), url)
        assert error.fault is RemoteFault.CERTIFICATE
        assert "CA file" in error.words.hint
        assert "proxy" in error.words.hint
        assert ask(clients_of(hub, ca_file=str(certificate.public)), url).text == "{}"


@needs_openssl
@pytest.mark.parametrize("days", [(-10, -5), (5, 10)], ids=["expired", "not yet valid"])
def test_a_wrong_date_is_told_from_a_stranger(tmp_path, days):
    # S-28: a computer whose clock is years off gets a sentence about its date.
    certificate = make_certificate(tmp_path / "dated", *days)
    with HubServer(certificate.whole) as hub:
        error = fault_of(clients_of(hub, ca_file=str(certificate.public)), f"{hub.endpoint}/x")
    assert error.fault is RemoteFault.CERTIFICATE_DATE
    assert error.words.hint == "Check this computer's date and time, then try again."


@needs_openssl
def test_a_certificate_of_another_host_is_a_stranger(tmp_path):
    certificate = make_certificate(tmp_path / "other", host="127.0.0.2")
    with HubServer(certificate.whole) as hub:
        error = fault_of(clients_of(hub, ca_file=str(certificate.public)), f"{hub.endpoint}/x")
    assert error.fault is RemoteFault.CERTIFICATE


def test_a_server_that_speaks_no_tls_is_said_so(hub):
    error = fault_of(clients_of(hub), hub.endpoint.replace("http://", "https://") + "/x")
    assert error.fault is RemoteFault.NOT_TLS
    assert "proxy" in error.words.hint


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_ca_file_that_is_none_is_named(tmp_path, content):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RemoteError) as caught:
        HttpClients(lambda: HttpChoices(ca_file=str(path))).make_client()
    assert caught.value.fault is RemoteFault.BAD_CA_FILE
    assert "ca.pem" in caught.value.words.message


def test_the_system_s_certificates_are_trusted(monkeypatch):
    trusted = []
    plain = httpx2.Client.__init__

    def note(client, **options):
        trusted.append(options["verify"])
        plain(client, **options)

    monkeypatch.setattr(httpx2.Client, "__init__", note)
    HttpClients().make_client().close()
    (context,) = trusted
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.get_ca_certs() or ssl.get_default_verify_paths().capath or sys.platform in ("win32", "darwin")


# --------------------------------------------------------------------------------------------------- waiting


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "9" * 30}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": email.utils.formatdate(1_000_100, usegmt=True)}, 100),
        ({"retry-after": email.utils.formatdate(999_000, usegmt=True)}, 0),
        ({"ratelimit": '"api";r=0;t=12'}, 12),
        ({"ratelimit": "limit=5, t=3"}, 3),
        ({"ratelimit": '"api";r=0'}, None),
    ],
)
def test_a_server_s_wish_is_read_in_seconds_and_as_a_date(headers, expected):
    assert asked_wait_s(headers, 1_000_000.0) == expected


def test_a_name_that_cannot_be_looked_up_is_an_unreachable_host(monkeypatch):
    def fail(*_arguments, **_options):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert fault_of(HttpClients(), "http://hub.example/x").fault is RemoteFault.UNREACHABLE


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "127.0.0.1:99999", "a..b"])
def test_a_host_that_cannot_be_is_a_bad_address_or_out_of_reach(host):
    error = fault_of(HttpClients(), f"http://{host}/x")
    assert error.fault in (RemoteFault.BAD_ADDRESS, RemoteFault.UNREACHABLE)


def test_a_header_that_cannot_be_sent_is_not_quoted():
    error = None
    try:
        with contextlib.closing(HttpClients().make_client()) as client, foreign_errors("http://127.0.0.1:9/x"):
            client.get("http://127.0.0.1:9/x", headers={"Authorization": "Bearer hf\nsecret"})
    except RemoteError as caught:
        error = caught
    assert error is not None
    assert "secret" not in error.words.message
