"""What a hub said is kept: fresh answers are not asked for again, old ones stand in while the hub gives none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.http_clients import HttpClients
from app.hub import hub as hub_module
from app.hub.hub import FRESH_S, Hub
from app.hub.hub_errors import HubErrorKind, stale_words
from app.hub.types import SearchQuery
from tests.helpers.hub_asking import Clock, add_three_repos, asked_of, asking, kind_of, small_gguf
from tests.helpers.hub_server import HubServer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server():
    with HubServer() as made:
        add_three_repos(made)
        yield made


@pytest.fixture
def hub(server, tmp_path, clock):
    with asking(server, tmp_path, now=clock) as made:
        yield made


def names(page) -> list[str]:
    return [item.repo for item in page.items]


@pytest.mark.parametrize("what", ["search", "summary", "detail", "publishers"])
def test_a_fresh_answer_is_not_asked_for_again(hub, server, clock, what):
    ask = asked_of(hub, what)
    first = ask()
    count = len(server.requests)
    clock.now_s += FRESH_S - 1
    second = ask()
    assert len(server.requests) == count
    if what != "publishers":
        assert (second.age_s, second.is_stale) == (FRESH_S - 1, False)
    ask(refresh=True)
    assert len(server.requests) > count
    clock.now_s += FRESH_S + 1
    count = len(server.requests)
    assert ask() == first
    assert len(server.requests) > count


@pytest.mark.parametrize("what", ["search", "summary", "detail"])
@pytest.mark.parametrize(
    "kind", ["http_429_seconds", "http_500", "stall_before_headers", "html_page", "invalid_json", "refused"]
)
def test_an_old_answer_is_shown_with_its_age_while_the_hub_gives_none(hub, server, clock, what, kind):
    ask = asked_of(hub, what)
    first = ask()
    clock.now_s += 3 * 3600
    server.fault(kind, "api")
    old = ask()
    assert (old.is_stale, old.age_s) == (True, 3 * 3600)
    assert stale_words(old.fault, old.age_s).endswith("What you see is from before: 3 hours ago.")
    assert old.fault.message
    server.clear_faults()
    assert ask() == first


def test_one_hubs_answers_are_not_shown_for_another(server, tmp_path):
    with asking(server, tmp_path) as hub:
        hub.search(SearchQuery(words="llama"))
    with HubServer() as other, asking(other, tmp_path) as hub:
        assert names(hub.search(SearchQuery(words="llama"))) == []


def test_a_hub_that_went_away_leaves_its_answers(tmp_path, clock):
    with HubServer() as server:
        server.add_repo("ann/Tiny-GGUF", {"m-Q8_0.gguf": small_gguf()})
        with asking(server, tmp_path, now=clock) as hub:
            hub.search(SearchQuery())
            before = hub.detail("ann/Tiny-GGUF")
    clock.now_s += 86_400 * 3
    with asking(server, tmp_path, now=clock) as hub:
        page, detail = hub.search(SearchQuery()), hub.detail("ann/Tiny-GGUF")
        assert names(page) == ["ann/Tiny-GGUF"]
        assert detail.rows == before.rows
        assert stale_words(page.fault, page.age_s) == (
            "127.0.0.1 cannot be reached. What you see is from before: 3 days ago."
        )
        assert kind_of(hub.search, SearchQuery(words="new")) is HubErrorKind.OFFLINE


@pytest.mark.parametrize("kind", ["http_401", "http_403"])
def test_what_a_person_must_do_something_about_is_said_and_not_hidden_by_an_old_answer(hub, server, clock, kind):
    hub.search(SearchQuery())
    clock.now_s += 3600
    server.fault(kind, "api")
    assert kind_of(hub.search, SearchQuery()) in (HubErrorKind.TOKEN_REFUSED, HubErrorKind.NO_ACCESS)


def test_a_repo_that_was_removed_is_gone_though_an_old_answer_is_there(hub, server, clock):
    hub.detail("bob/Qwen-GGUF")
    clock.now_s += 3600
    del server.routes.repos["bob/Qwen-GGUF"]
    assert kind_of(hub.detail, "bob/Qwen-GGUF") is HubErrorKind.NOT_FOUND


def test_switched_off_the_hub_is_not_asked_and_old_answers_are_shown(hub, server, clock, monkeypatch):
    hub.search(SearchQuery())
    clock.now_s += 3600
    count = len(server.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    page = hub.search(SearchQuery())
    assert page.is_stale
    assert "HF_HUB_OFFLINE" in page.fault.message
    assert kind_of(hub.detail, "bob/Qwen-GGUF") is HubErrorKind.SWITCHED_OFF
    assert len(server.requests) == count


def test_forgetting_removes_every_answer(hub, tmp_path):
    hub.search(SearchQuery())
    hub.forget()
    assert list((tmp_path / "cache" / "hub").iterdir()) == []


def test_the_token_is_in_no_file(server, tmp_path):
    server.add_token("hf_CANARY7f3", "ann")
    with asking(server, tmp_path, token="hf_CANARY7f3") as hub:
        hub.search(SearchQuery())
        hub.read_headers(hub.detail("ann/Llama-8B-GGUF"), lambda row: None)
    written = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if b"CANARY7f3" in path.read_bytes() or "CANARY7f3" in path.name]


def test_given_up_no_old_answer_is_shown_either(hub, clock):
    hub.search(SearchQuery())
    clock.now_s += 3600
    cancel = threading.Event()
    cancel.set()
    assert kind_of(hub.search, SearchQuery(), cancel) is HubErrorKind.CANCELLED


def test_several_threads_may_ask_at_once(hub):
    found: list[int] = []

    def ask(word: str) -> None:
        found.append(len(hub.search(SearchQuery(words=word)).items))
        found.append(len(hub.detail("ann/Llama-8B-GGUF").rows))

    threads = [threading.Thread(target=ask, args=(word,)) for word in ("llama", "gguf", "8b", "qwen")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 1, 1, 2, 2, 2, 2, 2]


def test_an_address_that_is_no_hub_is_said(tmp_path):
    clients = HttpClients(environment={"HF_ENDPOINT": "ftp://nonsense"})
    hub = Hub(tmp_path, clients)
    assert kind_of(hub.search, SearchQuery()) is HubErrorKind.BAD_ADDRESS
    assert kind_of(hub.detail, "a/b") is HubErrorKind.BAD_ADDRESS
    clients.close()


def test_nothing_heavy_is_loaded_with_the_module():
    assert "huggingface_hub" not in vars(hub_module)
    assert "httpx2" not in vars(hub_module)
