"""Every fault of the test hub does on the wire what its name says, to the requests it was meant for and no others."""

from __future__ import annotations

import email.utils
import gzip
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from urllib.parse import urlsplit

import pytest

from tests.helpers import hub_faults
from tests.helpers.hub_files import HOSTILE_NAMES, Generated, OnDisk
from tests.helpers.hub_server import HubServer

MIB = 1 << 20
REPO, NAME = "ann/x-GGUF", "m.gguf"
TARGET = f"{REPO}/{NAME}"
FILE = Generated(3 * MIB + 5, seed=8)
WHOLE = FILE.part(0, FILE.size_bytes)
FROM = 2 * MIB + 1  # where the resumed requests begin


class Told:
    """What came back: status, headers in lower case, the body as far as it came, and how it ended."""

    def __init__(
        self, url: str, headers: dict[str, str] | None = None, method: str = "GET", limit_s: float = 10
    ) -> None:
        place = urlsplit(url)
        self.body, self.end, self.status, self.headers = b"", "whole", 0, {}
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=limit_s)
        try:
            connection.request(method, url[len(f"{place.scheme}://{place.netloc}") :], headers=headers or {})
            response = connection.getresponse()
            self.status = response.status
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            while piece := response.read1(MIB):
                self.body += piece
            if response.length:
                self.end = "short"
        except TimeoutError:
            self.end = "silence"
        except (ConnectionError, http.client.RemoteDisconnected):
            self.end = "reset"
        finally:
            connection.close()


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo(REPO, {NAME: FILE, "config.json": "{}"}, card={"license": "mit"})
        yield server


def resolve_url(hub: HubServer, path: str = NAME) -> str:
    return f"{hub.endpoint}/{REPO}/resolve/main/{path}"


def cdn_url(hub: HubServer) -> str:
    return Told(resolve_url(hub)).headers["location"]


# One line for each fault of a transfer: its value, and what a request for all and one from FROM on must get.
def refused(status, **headers):
    def check(_hub, fresh, resumed):
        for told in (fresh, resumed):
            assert (told.status, told.end) == (status, "whole")
            assert {name: told.headers.get(name.replace("_", "-")) for name in headers} == headers

    return check


def dated(_hub, fresh, resumed):
    for told in (fresh, resumed):
        assert told.status == 429
        in_s = email.utils.parsedate_to_datetime(told.headers["retry-after"]).timestamp() - time.time()
        assert 0 < in_s < 31


def silent(_hub, fresh, resumed):
    assert [(told.status, told.end) for told in (fresh, resumed)] == [(0, "silence")] * 2


def broken_at(place, end):
    def check(hub, fresh, resumed):
        assert [told.status for told in (fresh, resumed)] == [200, 206]
        assert [told.end for told in (fresh, resumed)] == [end] * 2
        assert (fresh.body, resumed.body) == (WHOLE[:place], WHOLE[FROM:place])
        assert fresh.headers["content-length"] == str(len(WHOLE))
        assert hub.sent(TARGET) == [(0, place), (FROM, place)]

    return check


def range_ignored(_hub, fresh, resumed):
    assert [(told.status, told.body == WHOLE) for told in (fresh, resumed)] == [(200, True)] * 2
    assert "content-range" not in resumed.headers


def wrong_content_range(_hub, fresh, resumed):
    assert (fresh.status, resumed.status) == (206, 206)
    assert fresh.headers["content-range"] == f"bytes 7-{len(WHOLE) - 1}/{len(WHOLE)}"
    assert resumed.headers["content-range"] == f"bytes {FROM + 7}-{len(WHOLE) - 1}/{len(WHOLE)}"
    assert (fresh.body, resumed.body) == (WHOLE[7:], WHOLE[FROM + 7 :])


def no_length(_hub, fresh, resumed):
    assert ["content-length" in told.headers for told in (fresh, resumed)] == [False, False]
    assert (fresh.headers["transfer-encoding"], fresh.body, resumed.body) == ("chunked", WHOLE, WHOLE[FROM:])


def compressed(_hub, fresh, resumed):
    assert [told.headers["content-encoding"] for told in (fresh, resumed)] == ["gzip", "gzip"]
    assert (gzip.decompress(fresh.body), gzip.decompress(resumed.body)) == (WHOLE, WHOLE[FROM:])
    assert int(fresh.headers["content-length"]) == len(fresh.body)


def web_page(_hub, fresh, resumed):
    for told in (fresh, resumed):
        assert (told.status, told.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert told.body.startswith(b"<!DOCTYPE html>")


def loop(hub, fresh, resumed):
    assert (fresh.status, fresh.headers["location"], resumed.status) == (302, cdn_url(hub), 302)


def elsewhere(hub, fresh, resumed):
    secret = {"Authorization": "Bearer hf_secret"}
    assert [told.status for told in (fresh, resumed)] == [302, 302]
    assert fresh.headers["location"].startswith(hub.origin("elsewhere"))
    assert Told(fresh.headers["location"], secret).body == WHOLE
    assert [(one.area, one.target) for one in hub.leaked_tokens()] == [("elsewhere", TARGET)]


def without_tls(hub, fresh, _resumed):
    assert fresh.headers["location"].startswith(hub.origin("plain") + "/repos/")
    assert Told(fresh.headers["location"], {"Range": f"bytes={FROM}-"}).body == WHOLE[FROM:]


def flipped(_hub, fresh, resumed):
    other = bytearray(WHOLE)
    other[2 * MIB + 50] ^= 0x10
    assert (fresh.body, resumed.body) == (bytes(other), bytes(other)[FROM:])


def replaced(hub, fresh, resumed):
    hub.clear_faults()
    honest = Told(cdn_url(hub), method="HEAD").headers["etag"]
    assert fresh.headers["etag"] == resumed.headers["etag"] != honest
    assert (len(fresh.body), fresh.body[:4096]) == (len(WHOLE), WHOLE[:4096])
    assert not any(a == b for a, b in zip(fresh.body[4096:9000], WHOLE[4096:9000], strict=True))
    assert resumed.body == fresh.body[FROM:]


def longer(_hub, fresh, resumed):
    assert (fresh.body, resumed.body) == (WHOLE + bytes(9), WHOLE[FROM:] + bytes(9))
    assert resumed.headers["content-range"] == f"bytes {FROM}-{len(WHOLE) + 8}/{len(WHOLE) + 9}"


TRANSFERS = {
    "http_401": (None, refused(401)),
    "http_403": (None, refused(403, content_type="application/xml")),
    "http_404": (None, refused(404)),
    "http_416": (None, refused(416)),
    "http_429": (None, refused(429, retry_after=None)),
    "http_429_seconds": (3, refused(429, retry_after="3")),
    "http_429_date": (30, dated),
    "http_500": (None, refused(500)),
    "http_502": (None, refused(502, content_type="text/html")),
    "http_503": (5, refused(503, retry_after="5")),
    "stall_before_headers": (None, silent),
    "stall_in_body": (FROM + 9, broken_at(FROM + 9, "silence")),
    "reset_in_body": (FROM + 9, broken_at(FROM + 9, "reset")),
    "short_body": (FROM + 9, broken_at(FROM + 9, "short")),
    "range_ignored": (None, range_ignored),
    "wrong_content_range": (None, wrong_content_range),
    "no_length": (None, no_length),
    "gzip": (None, compressed),
    "html_page": (None, web_page),
    "redirect_loop": (None, loop),
    "redirect_to_http": (None, without_tls),
    "redirect_elsewhere": (None, elsewhere),
    "flipped_bit": (2 * MIB + 50, flipped),
    "replaced": (None, replaced),
    "longer_body": (9, longer),
}


@pytest.mark.parametrize("kind", TRANSFERS)
def test_a_fault_of_a_transfer_does_what_it_says(hub, kind):
    value, check = TRANSFERS[kind]
    url = cdn_url(hub)
    hub.fault(kind, "GET cdn:*.gguf", value=value)
    limit_s = 0.5 if "stall" in kind else 10
    fresh = Told(url, limit_s=limit_s)
    resumed = Told(url, {"Range": f"bytes={FROM}-"}, limit_s=limit_s)
    assert [one.fault for one in hub.seen("cdn")] == [kind, kind]
    check(hub, fresh, resumed)


def test_there_are_25_faults_of_a_transfer_and_all_are_tried():
    assert list(TRANSFERS) == list(hub_faults.TRANSFER_FAULTS)
    assert len(TRANSFERS) == 25


@pytest.mark.parametrize("kind", ["reset_in_body", "short_body", "flipped_bit"])
def test_a_file_on_disk_has_the_same_faults(hub, tmp_path, kind):
    (tmp_path / "disk.gguf").write_bytes(WHOLE)
    hub.add_repo("ann/disk", {NAME: OnDisk(tmp_path / "disk.gguf")})
    hub.fault(kind, "cdn", value=100)
    told = Told(Told(f"{hub.endpoint}/ann/disk/resolve/main/{NAME}").headers["location"])
    end = {"reset_in_body": "reset", "short_body": "short", "flipped_bit": "whole"}[kind]
    assert (told.end, told.body[:100], told.status) == (end, WHOLE[:100], 200)
    assert told.body[100:] in (b"", bytes([WHOLE[100] ^ 0x10]) + WHOLE[101:])


def test_a_body_breaks_off_in_the_middle_of_what_was_asked_for(hub):
    hub.fault("short_body", "cdn")
    assert Told(cdn_url(hub), {"Range": "bytes=100-199"}).body == WHOLE[100:150]


@pytest.mark.parametrize("kind", ["http_401", "http_403", "http_404", "http_429_seconds", "http_500", "html_page"])
@pytest.mark.parametrize("area", ["api", "resolve"])
def test_the_hub_itself_may_refuse(hub, kind, area):
    hub.fault(kind, area)
    told = Told(resolve_url(hub) if area == "resolve" else f"{hub.endpoint}/api/models/{REPO}")
    status = 200 if kind == "html_page" else int(kind.split("_")[1])
    assert told.status == status
    if status != 200:
        assert json.loads(told.body)["error"] == told.headers["x-error-message"]


def test_a_rate_limit_is_told_as_the_hub_tells_it(hub):
    hub.fault("http_429_ratelimit", "api", value=55)
    told = Told(f"{hub.endpoint}/api/models")
    assert (told.status, told.headers["ratelimit"], "retry-after" in told.headers) == (429, '"api";r=0;t=55', False)


def test_a_refused_connection_is_reset_before_any_answer(hub):
    hub.fault("refused", "api")
    told = Told(f"{hub.endpoint}/api/models")
    assert (told.status, told.end) == (0, "reset")


def test_silence_may_end(hub):
    hub.fault("stall_before_headers", "api", value=0.2)
    began_s = time.monotonic()
    assert Told(f"{hub.endpoint}/api/models").status == 200
    assert time.monotonic() - began_s >= 0.2


def listed(hub: HubServer) -> list[tuple[str, int, str]]:
    """Name, size and hash of every file, by the two listings, which must agree."""
    info = json.loads(Told(f"{hub.endpoint}/api/models/{REPO}?blobs=true").body)
    tree = json.loads(Told(f"{hub.endpoint}/api/models/{REPO}/tree/main?recursive=true").body)
    found = [(one["rfilename"], one["size"], one.get("lfs", {}).get("sha256", "")) for one in info["siblings"]]
    assert found == [(one["path"], one["size"], one.get("lfs", {}).get("oid", "")) for one in tree]
    return found


def test_a_listing_may_tell_wrong_sizes_and_hashes(hub):
    honest = listed(hub)
    hub.fault("wrong_listed_size", value=-3)
    assert [size for _name, size, _sha in listed(hub)] == [size - 3 for _name, size, _sha in honest]
    assert Told(resolve_url(hub)).headers["x-linked-size"] == str(len(WHOLE) - 3)
    hub.clear_faults()
    hub.fault("wrong_listed_sha256")
    told = Told(resolve_url(hub)).headers["x-linked-etag"].strip('"')
    assert [sha for _name, _size, sha in listed(hub)] == ["", "", told]
    assert honest[2][2] == FILE.sha256 != told


def test_a_listing_may_be_a_bomb(hub):
    for path, key in ((f"/{REPO}/tree/main", None), ("", None), (f"/{REPO}", "siblings")):
        hub.clear_faults()
        hub.fault("listing_bomb", "api", value=5000)
        value = json.loads(Told(f"{hub.endpoint}/api/models{path}").body)
        assert len(value if key is None else value[key]) == 5000
    hub.clear_faults()
    hub.fault("deep_json", "api", value=100_000)
    assert Told(f"{hub.endpoint}/api/models").body == b"[" * 100_000


def test_a_listing_may_be_torn(hub):
    hub.fault("invalid_json", "api")
    told = Told(f"{hub.endpoint}/api/models/{REPO}")
    assert (told.status, told.end, told.body[:1]) == (200, "whole", b"{")
    with pytest.raises(json.JSONDecodeError):
        json.loads(told.body)


def test_a_listing_may_name_hostile_files(hub):
    hub.fault("hostile_names", "api")
    assert [name for name, _size, _sha in listed(hub)][3:] == list(HOSTILE_NAMES)


def test_a_fault_meets_the_requests_it_is_meant_for(hub):
    url = cdn_url(hub)
    hub.fault("http_500", "GET cdn:*/m.gguf", times=2, after=1)
    hub.fault("http_404", "resolve:*/config.json", times=1)
    assert [Told(url).status for _turn in range(4)] == [200, 500, 500, 200]
    assert Told(url, method="HEAD").status == 200
    assert [Told(resolve_url(hub, name)).status for name in (NAME, "config.json", "config.json")] == [302, 404, 200]
    hub.fault("http_503")
    hub.fault("http_502", times=1)
    assert [Told(url).status for _turn in range(2)] == [503, 503]  # the first that is due
    hub.clear_faults()
    assert Told(url).status == 200


def test_a_slow_line_is_shared(hub):
    url = cdn_url(hub)
    hub.fault("throttle", "cdn", value=8e6)
    began_s = time.monotonic()
    threads = [threading.Thread(target=Told, args=(url,)) for _turn in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began_s
    assert took_s >= 2 * len(WHOLE) / 8e6 - 0.15
    assert hub.wait_idle()
    assert hub.repeated(TARGET) == [(0, len(WHOLE))]


def test_a_slow_line_has_other_faults_too(hub):
    hub.fault("throttle", "cdn", value=5e7)
    hub.fault("short_body", "cdn", value=99)
    assert Told(cdn_url(hub)).body == WHOLE[:99]


def test_what_a_dead_client_was_sent_is_no_more_than_it_could_have_taken(hub):
    url = urlsplit(cdn_url(hub))
    hub.add_repo("ann/large", {NAME: Generated(64 * MIB)})
    large = urlsplit(Told(f"{hub.endpoint}/ann/large/resolve/main/{NAME}").headers["location"])
    client = socket.create_connection((url.hostname, url.port))
    client.sendall(f"GET {large.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    client.recv(100_000, socket.MSG_WAITALL)  # the headers and some of the body
    client.close()
    assert hub.wait_idle()
    assert [end < 64 * MIB for _start, end in hub.sent(f"ann/large/{NAME}")] == [True]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
def test_it_speaks_tls_and_may_send_one_away_from_it(tmp_path):
    key, certificate, both = (tmp_path / name for name in ("key.pem", "certificate.pem", "both.pem"))
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    line += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(line, check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    with HubServer(certificate=both) as hub:
        hub.add_repo(REPO, {NAME: FILE})
        hub.fault("redirect_to_http", "resolve")
        place = urlsplit(hub.endpoint)
        trust = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection(place.hostname, place.port, context=trust, timeout=10)
        connection.request("GET", f"/{REPO}/resolve/main/{NAME}")
        location = connection.getresponse().headers["Location"]
        assert (place.scheme, urlsplit(location).scheme) == ("https", "http")
        told = Told(location)
        assert (told.status, urlsplit(told.headers["location"]).scheme) == (302, "https")
        connection.close()
