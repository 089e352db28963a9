"""One question to a hub: limits, redirects, tokens, faults, each with its kind."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from app.http_clients import HttpChoices, HttpClients
from app.hub.hub_call import HubCall, HubLimits, open_api
from app.hub.hub_errors import HubError, HubErrorKind
from tests.helpers.hub_asking import QUICK, small_gguf
from tests.helpers.hub_server import ROOT, HubServer

SEARCH = "api:/api/models"


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo("ann/Tiny-GGUF", {"m-Q8_0.gguf": small_gguf()}, card_text="# Tiny\n" + "words " * 100_000)
        yield server


@pytest.fixture
def make(hub) -> Callable[..., HubCall]:
    opened: list[HttpClients] = []

    def made(token: str | None = None, environment: Mapping[str, str] | None = None, **options: object) -> HubCall:
        clients = HttpClients(token=lambda _endpoint: token, environment=environment or {"HF_ENDPOINT": hub.endpoint})
        opened.append(clients)
        return HubCall(clients, **{"limits": QUICK, **options})

    yield made
    for clients in opened:
        clients.close()


def search(hub: HubServer, call: HubCall, **options: object) -> list[str]:
    with call:
        return [info.id for info in open_api(hub.endpoint).list_models(limit=5, token=False, **options)]


def error_of(hub: HubServer, call: HubCall) -> HubError:
    with pytest.raises(HubError) as caught:
        search(hub, call)
    return caught.value


def test_huggingface_hub_asks_through_the_call(hub, make):
    assert search(hub, make(), search="tiny") == ["ann/Tiny-GGUF"]
    (request,) = hub.requests
    assert request.headers["user-agent"] == "Cutaway"
    assert request.headers["accept-encoding"] == "identity"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_loading_the_library_tells_nobody_anything_and_needs_no_network(hub):
    words = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "sys.addaudithook(lambda name, args: name == 'socket.connect' and os._exit(9))\n"
        "import app.hub.hub, app.hub.curated, app.hub.card\n"
        "assert 'huggingface_hub' not in sys.modules and 'httpx2' not in sys.modules\n"
        "from app.hub.hub_call import open_api\n"
        "api = open_api('https://hub.example')\n"
        "from huggingface_hub import constants\n"
        "assert constants.HF_HUB_DISABLE_TELEMETRY and constants.HF_HUB_DISABLE_XET and api.token is False\n"
        "assert constants.HF_HUB_DISABLE_IMPLICIT_TOKEN\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", words, str(ROOT)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("kind", "value", "wanted", "waits"),
    [
        ("http_401", None, HubErrorKind.TOKEN_REFUSED, None),
        ("http_403", None, HubErrorKind.NO_ACCESS, None),
        ("http_404", None, HubErrorKind.BAD_ANSWER, None),  # a hub always has its search
        ("http_416", None, HubErrorKind.BAD_ANSWER, None),
        ("http_429", None, HubErrorKind.RATE_LIMITED, None),
        ("http_429_seconds", 17, HubErrorKind.RATE_LIMITED, 17),
        ("http_429_ratelimit", 31, HubErrorKind.RATE_LIMITED, 31),
        ("http_500", None, HubErrorKind.SERVER_FAULT, None),
        ("http_502", None, HubErrorKind.SERVER_FAULT, None),
        ("http_503", 40, HubErrorKind.SERVER_FAULT, 40),
        ("stall_before_headers", None, HubErrorKind.SLOW, None),
        ("stall_in_body", None, HubErrorKind.SLOW, None),
        ("reset_in_body", None, HubErrorKind.SERVER_FAULT, None),
        ("short_body", None, HubErrorKind.SERVER_FAULT, None),
        ("refused", None, HubErrorKind.SERVER_FAULT, None),
        ("gzip", None, HubErrorKind.BAD_ANSWER, None),
        ("html_page", None, HubErrorKind.WEB_PAGE, None),
        ("redirect_loop", None, HubErrorKind.BAD_ADDRESS, None),
        ("listing_bomb", 1_000_000, HubErrorKind.BAD_ANSWER, None),
        ("listing_bomb", 200_000, HubErrorKind.BAD_ANSWER, None),
    ],
)
def test_every_fault_has_its_kind_and_is_asked_about_once(hub, make, kind, value, wanted, waits):
    """huggingface_hub itself would try five times more and sleep between, for up to minutes."""
    hub.fault(kind, SEARCH, value=value)
    error = error_of(hub, make())
    assert (error.kind, error.retry_after_s) == (wanted, waits)
    assert error.words.message
    assert len(hub.requests) <= 6  # a loop of redirects is followed five times


def test_a_pause_until_a_date_is_understood(hub, make):
    hub.fault("http_429_date", SEARCH, value=100)
    assert 90 <= error_of(hub, make()).retry_after_s <= 100


def test_an_answer_without_a_length_is_an_answer(hub, make):
    hub.fault("no_length", SEARCH)
    assert search(hub, make()) == ["ann/Tiny-GGUF"]


def test_a_server_that_is_not_there_is_no_network(make):
    with HubServer() as gone:
        address = gone.endpoint
    with pytest.raises(HubError) as caught, make(environment={"HF_ENDPOINT": address}):
        list(open_api(address).list_models(limit=5, token=False))
    assert caught.value.kind is HubErrorKind.OFFLINE
    assert caught.value.words.message == "127.0.0.1 cannot be reached."


def test_the_whole_question_has_a_time_limit(hub, make):
    times = iter([0.0, 0.0, *[99.0] * 100])
    error = error_of(hub, make(clock=lambda: next(times), limits=replace(QUICK, total_s=20.0)))
    assert error.kind is HubErrorKind.SLOW


def test_whoever_gave_up_is_not_answered(hub, make):
    cancel = threading.Event()
    cancel.set()
    assert error_of(hub, make(cancel=cancel)).kind is HubErrorKind.CANCELLED
    assert hub.requests == []


def test_giving_up_while_the_answer_comes_ends_it(hub, make):
    for number in range(300):
        hub.add_repo(f"bob/Model{number}-GGUF", {"config.json": "{}"}, gguf={"chat_template": "x" * 3000})
    cancel = threading.Event()
    times = iter(range(10_000))

    def clock() -> float:
        if next(times) >= 3:
            cancel.set()
        return 0.0

    call = make(cancel=cancel, clock=clock)
    with pytest.raises(HubError) as caught, call:
        list(open_api(hub.endpoint).list_models(limit=300, expand=["gguf"], token=False))
    assert caught.value.kind is HubErrorKind.CANCELLED


# ----------------------------------------------------------------------------------------------------- tokens


def test_the_token_goes_to_the_hub(hub, make):
    hub.add_token("hf_reader", "ann")
    assert search(hub, make("hf_reader")) == ["ann/Tiny-GGUF"]
    assert hub.requests[0].token == "hf_reader"


def test_a_token_that_is_not_known_is_said(hub, make):
    error = error_of(hub, make("hf_wrong"))
    assert (error.kind, error.action) == (HubErrorKind.TOKEN_REFUSED, "token")


@pytest.mark.parametrize("token", ["hf_\n", "hf_é", "hf_\x00x"])
def test_a_token_that_cannot_be_sent_is_not(hub, make, token):
    assert error_of(hub, make(token)).kind is HubErrorKind.TOKEN_REFUSED
    assert hub.requests == []


def test_no_other_host_sees_the_token(hub, make):
    hub.add_token("hf_reader", "ann")
    hub.fault("redirect_elsewhere", SEARCH)
    search(hub, make("hf_reader"))
    assert [one.area for one in hub.requests] == ["api", "elsewhere"]
    assert hub.leaked_tokens() == []


def test_a_repo_that_was_renamed_is_found_where_it_is(hub, make):
    hub.routes.repos["ann/Tiny-GGUF"].old_names = ["ann/Old-GGUF"]
    with make(about="ann/Old-GGUF"):
        assert open_api(hub.endpoint).model_info("ann/Old-GGUF", token=False).id == "ann/Tiny-GGUF"


@pytest.mark.parametrize(
    ("prepare", "token", "wanted"),
    [
        ({}, None, HubErrorKind.NOT_FOUND),
        ({"private": True}, None, HubErrorKind.NOT_FOUND),
        ({"private": True}, "hf_stranger", HubErrorKind.NOT_FOUND),
    ],
)
def test_a_repo_that_is_not_there_or_not_for_this_person(hub, make, prepare, token, wanted):
    hub.add_token("hf_stranger", "eve")
    if prepare:
        hub.add_repo("bob/secret", {"config.json": "{}"}, **prepare)
    with pytest.raises(HubError) as caught, make(token, about="bob/secret"):
        open_api(hub.endpoint).model_info("bob/secret", token=False)
    assert caught.value.kind is wanted
    assert "bob/secret" in caught.value.words.message


def test_a_revision_that_is_not_there(hub, make):
    with pytest.raises(HubError) as caught, make(about="ann/Tiny-GGUF", revision="nothing"):
        open_api(hub.endpoint).model_info("ann/Tiny-GGUF", revision="nothing", token=False)
    assert caught.value.kind is HubErrorKind.NO_REVISION
    assert "“nothing”" in caught.value.words.message


# ------------------------------------------------------------------------------------------------------ pages


def test_one_call_is_one_page_and_says_where_the_next_one_is(hub, make):
    for number in range(7):
        hub.add_repo(f"bob/M{number}-GGUF", {"m-Q8_0.gguf": small_gguf()}, downloads=100 - number)
    hub.routes.page_entries = 3
    first = make()
    assert search(hub, first, sort="downloads", author="bob") == ["bob/M0-GGUF", "bob/M1-GGUF", "bob/M2-GGUF"]
    assert first.next_cursor
    second = make(cursor=first.next_cursor)
    assert search(hub, second, sort="downloads", author="bob") == ["bob/M3-GGUF", "bob/M4-GGUF", "bob/M5-GGUF"]
    third = make(cursor=second.next_cursor)
    assert search(hub, third, sort="downloads", author="bob") == ["bob/M6-GGUF"]
    assert third.next_cursor == ""
    assert len(hub.requests) == 3


# ------------------------------------------------------------------------------------------------------ files


def test_the_beginning_of_a_file_is_enough(hub, make):
    url = f"{hub.endpoint}/ann/Tiny-GGUF/resolve/main/README.md"
    with make() as call:
        assert call.beginning(url, 20) == b"# Tiny\nwords words w"
    with make() as call:
        assert len(call.beginning(url, 10_000_000)) == 600_007


def test_whether_a_file_may_be_had_is_asked_without_asking_for_it(hub, make):
    hub.add_repo("bob/Gated-GGUF", {"m-Q8_0.gguf": small_gguf()}, gated="auto")
    hub.add_token("hf_reader", "eve", ["bob/Gated-GGUF"])
    hub.add_token("hf_stranger", "joe")
    url = f"{hub.endpoint}/bob/Gated-GGUF/resolve/main/m-Q8_0.gguf"
    found = []
    for token in (None, "hf_stranger", "hf_reader"):
        with make(token) as call:
            found.append(call.status(url)[0])
    assert found == [401, 403, 302]
    assert {one.method for one in hub.requests} == {"HEAD"}
    assert hub.seen("cdn") == []


@pytest.mark.parametrize(("kind", "wanted"), [("http_429", "rate_limited"), ("http_503", "server_fault")])
def test_a_hub_that_does_not_say_whether_a_file_may_be_had(hub, make, kind, wanted):
    hub.fault(kind, "resolve")
    with make() as call, pytest.raises(HubError) as caught:
        call.status(f"{hub.endpoint}/ann/Tiny-GGUF/resolve/main/m-Q8_0.gguf")
    assert caught.value.kind == wanted


def test_a_proxy_that_cannot_be_used_is_said(hub):
    clients = HttpClients(lambda: HttpChoices(proxy="nonsense://x"), environment={"HF_ENDPOINT": hub.endpoint})
    with pytest.raises(HubError) as caught, HubCall(clients, limits=QUICK):
        list(open_api(hub.endpoint).list_models(limit=5, token=False))
    clients.close()
    assert (caught.value.kind, caught.value.action) == (HubErrorKind.BAD_PROXY, "settings")


def test_the_usual_limits_are_those_of_the_promise():
    limits = HubLimits()
    assert (limits.connect_s, limits.wait_s) == (5.0, 10.0)
    assert json.dumps(limits.listing_bytes) == str(16 * 2**20)
