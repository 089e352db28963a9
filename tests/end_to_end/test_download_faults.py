"""Every fault of the test hub, on a fresh and on a resumed transfer: the file comes right, or words say why not.

Trust S-20 to S-23, list C-08. Nothing waits here but for a silence of 0.3 s.
"""

from __future__ import annotations

import time

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.faults import DownloadError, DownloadFault
from app.downloads.sidecar import read_sidecar
from app.models.http_faults import RemoteFault
from tests.helpers.downloads import KIB, MIB, Fetch, content_of, file_of, final_names, sha256_of
from tests.helpers.hub_faults import TRANSFER_FAULTS
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

REPO, NAME, TOKEN = "ann/x-GGUF", "m.gguf", "hf_secret"
SIZE = 3 * MIB + 5
LATE = 3 * MIB - 7  # a byte that a resumed transfer still has to fetch
KEPT = 1 * MIB  # what a resumed transfer has at least
COMES = "comes"  # the file comes, the fault or not

# Fault -> value, what becomes of a transfer that meets it once, and of one that always meets it.
OUTCOMES = {
    "http_401": (None, COMES, RemoteFault.EXPIRED),
    "http_403": (None, COMES, RemoteFault.EXPIRED),
    "http_404": (None, RemoteFault.MISSING, RemoteFault.MISSING),
    "http_416": (None, COMES, RemoteFault.RANGE_REFUSED),
    "http_429": (None, COMES, RemoteFault.BUSY),
    "http_429_seconds": (7, COMES, RemoteFault.BUSY),
    "http_429_date": (9, COMES, RemoteFault.BUSY),
    "http_500": (None, COMES, RemoteFault.SERVER_FAULT),
    "http_502": (None, COMES, RemoteFault.SERVER_FAULT),
    "http_503": (5, COMES, RemoteFault.SERVER_FAULT),
    "stall_before_headers": (None, COMES, RemoteFault.TOO_SLOW),
    "stall_in_body": (LATE, COMES, RemoteFault.TOO_SLOW),
    "reset_in_body": (LATE, COMES, RemoteFault.BROKEN_OFF),
    "short_body": (LATE, COMES, RemoteFault.BROKEN_OFF),
    "range_ignored": (None, COMES, COMES),
    "wrong_content_range": (None, COMES, RemoteFault.WRONG_RANGE),
    "no_length": (None, COMES, COMES),
    "gzip": (None, COMES, RemoteFault.ENCODED),
    "html_page": (None, RemoteFault.WEB_PAGE, RemoteFault.WEB_PAGE),
    "redirect_loop": (None, COMES, RemoteFault.REDIRECTS),
    "redirect_to_http": (None, COMES, COMES),  # there is no https here to leave; see test_connection.py
    "redirect_elsewhere": (None, COMES, COMES),
    "flipped_bit": (LATE, COMES, DownloadFault.WRONG_HASH),
    "replaced": (None, COMES, DownloadFault.WRONG_HASH),
    "longer_body": (None, DownloadFault.WRONG_SIZE, DownloadFault.WRONG_SIZE),
}
# What costs the bytes that were here, and says so.
FROM_ZERO = {"flipped_bit", "replaced"}


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo(REPO, {NAME: Generated(SIZE, seed=8)}, card={"license": "mit"})
        server.add_token(TOKEN)
        yield server


def fetch(hub, root):
    return Fetch(hub, file_of(hub, REPO, NAME), root, token=TOKEN, silence_s=0.3)


def begin(hub, root):
    """Leave a transfer unfinished: a server that gives a little more than KEPT and then nothing any more."""
    fault = hub.fault("reset_in_body", "cdn", value=KEPT + 300 * KIB)
    begun = fetch(hub, root)
    assert isinstance(begun.error, DownloadError)
    assert begun.error.kind is RemoteFault.BROKEN_OFF
    assert fault.used > 1
    hub.clear_faults()
    note = read_sidecar(CacheLayout(root).place(file_of(hub, REPO, NAME)).sidecar)
    assert note is not None
    assert KEPT <= note.flushed_bytes < LATE
    hub.requests.clear()
    return note.flushed_bytes


def test_the_table_names_every_fault():
    assert set(OUTCOMES) == set(TRANSFER_FAULTS)
    assert len(OUTCOMES) == 25


@pytest.mark.parametrize("is_resumed", [False, True], ids=["fresh", "resumed"])
@pytest.mark.parametrize("times", [1, None], ids=["once", "always"])
@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_file_comes_right_or_words_say_why_not(hub, tmp_path, kind, times, is_resumed):
    kept = begin(hub, tmp_path) if is_resumed else 0
    value, once, always = OUTCOMES[kind]
    hub.fault(kind, "cdn", times=times, value=value)
    began_s = time.monotonic()
    done = fetch(hub, tmp_path)
    expected = once if times == 1 else always
    if expected == COMES:
        assert done.error is None
        assert sha256_of(done.path) == content_of(hub, REPO, NAME).sha256
        assert final_names(tmp_path) == [NAME]
        assert not list(tmp_path.rglob("*.part*"))
    else:
        assert isinstance(done.error, DownloadError)
        assert done.error.kind == expected
        assert done.error.words.message
        assert done.error.words.hint
        assert done.error.action
        assert final_names(tmp_path) == []
        assert time.monotonic() - began_s < 30  # no wait but those that the silences need
    assert hub.leaked_tokens() == []
    assert all(one.words is not None for one in done.steps_back())
    assert bool(done.steps_back()) == (kind in FROM_ZERO)
    if is_resumed and kind not in FROM_ZERO:
        assert kind == "range_ignored" or all(start >= kept for start, _end in hub.sent(f"{REPO}/{NAME}"))
        assert hub.seen("cdn")[0].range == f"bytes={kept}-"
        assert done.progress[0].have_bytes == kept


@pytest.mark.parametrize(
    ("kind", "expected", "action"),
    [
        ("http_401", RemoteFault.TOKEN_REFUSED, "token"),
        ("http_403", RemoteFault.NO_ACCESS, "token"),
        ("http_404", RemoteFault.MISSING, "choose"),
        ("http_416", RemoteFault.RANGE_REFUSED, "retry"),
        ("http_429", RemoteFault.BUSY, "retry"),
        ("http_500", RemoteFault.SERVER_FAULT, "retry"),
    ],
)
def test_what_the_hub_itself_refuses_ends_with_one_sentence_and_one_action(hub, tmp_path, kind, expected, action):
    # Field report 4: none of these stays hidden behind a spinner.
    hub.fault(kind, "resolve")
    done = fetch(hub, tmp_path)
    assert (done.error.kind, done.error.action) == (expected, action)
    assert f"status {kind[-3:]}" in done.error.words.message


def test_a_server_that_knows_no_ranges_costs_no_byte_that_is_here(hub, tmp_path):
    kept = begin(hub, tmp_path)
    hub.fault("range_ignored", "cdn")
    done = fetch(hub, tmp_path)
    assert sha256_of(done.path) == content_of(hub, REPO, NAME).sha256
    assert min(one.have_bytes for one in done.progress) == kept
    assert "cannot continue where it stopped" in done.progress[-1].words.message


def test_another_file_under_another_etag_is_never_added_to_what_is_here(hub, tmp_path):
    begin(hub, tmp_path)
    hub.fault("replaced", "cdn", times=1)
    done = fetch(hub, tmp_path)
    assert [one.words.message for one in done.steps_back()] == [
        "The file on the server is not the one that was begun, so it is fetched from its beginning.",
        "The file arrived damaged, so it is fetched once more from its beginning.",
    ]
    assert sha256_of(done.path) == content_of(hub, REPO, NAME).sha256
