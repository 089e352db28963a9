"""The hub from end to end, against a server that speaks its protocol: search, repos, headers, publishers, age."""

from __future__ import annotations

import pytest

from app.hub.access import access_words
from app.hub.hub import PAGE_ITEMS
from app.hub.hub_errors import HubErrorKind
from app.hub.recommend import recommend
from app.hub.types import SearchQuery
from app.models.fit import fit
from app.models.fit_types import Device, FitQuestion, Machine
from tests.helpers import shape_files
from tests.helpers.hub_asking import GIB, add_three_repos, asked_of, asking, kind_of, small_gguf
from tests.helpers.hub_files import HOSTILE_NAMES
from tests.helpers.hub_server import HubServer


@pytest.fixture
def server():
    with HubServer() as made:
        add_three_repos(made)
        yield made


@pytest.fixture
def hub(server, tmp_path):
    with asking(server, tmp_path) as made:
        yield made


def names(page) -> list[str]:
    return [item.repo for item in page.items]


# ----------------------------------------------------------------------------------------------------- search


def test_words_find_repos_with_what_a_list_shows(hub):
    page = hub.search(SearchQuery(words="llama"))
    (item,) = page.items
    assert (item.repo, item.downloads, item.likes, item.licence) == ("ann/Llama-8B-GGUF", 500, 9, "mit")
    assert (item.parameters_count, item.context_tokens, item.formats) == (8_030_261_248, 131_072, ("gguf",))
    assert (item.updated, item.base_models) == ("2025-03-01T09:30:00+00:00", ("meta/Llama-8B",))
    assert (page.next_cursor, page.age_s, page.is_stale, page.fault) == ("", 0.0, False, None)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (SearchQuery(sort="downloads"), ["ann/Llama-8B-GGUF", "bob/Qwen-GGUF"]),
        (SearchQuery(sort="likes"), ["bob/Qwen-GGUF", "ann/Llama-8B-GGUF"]),
        (SearchQuery(sort="trending"), ["bob/Qwen-GGUF", "ann/Llama-8B-GGUF"]),
        (SearchQuery(format="safetensors"), ["bob/Llama-8B"]),
        (SearchQuery(format="any", sort="downloads"), ["bob/Llama-8B", "ann/Llama-8B-GGUF", "bob/Qwen-GGUF"]),
        (SearchQuery(author="bob"), ["bob/Qwen-GGUF"]),
        (SearchQuery(words="llama 8b gguf"), ["ann/Llama-8B-GGUF"]),
        (SearchQuery(words="nothing"), []),
    ],
)
def test_sort_format_and_author_are_asked_of_the_hub(hub, query, found):
    assert names(hub.search(query)) == found


@pytest.mark.parametrize(
    "words",
    [
        "ann/Llama-8B-GGUF",
        "ann/Llama-8B-GGUF:Q4_K_M",
        "hf.co/ann/Llama-8B-GGUF",
        "https://huggingface.co/ann/Llama-8B-GGUF/blob/main/Llama-8B-Q4_K_M.gguf",
        "https://huggingface.co/ann/Llama-8B-GGUF/tree/main",
    ],
)
def test_a_name_or_an_address_finds_that_very_repo(hub, server, words):
    assert names(hub.search(SearchQuery(words=words, format="safetensors"))) == ["ann/Llama-8B-GGUF"]
    assert [one.target for one in server.requests] == ["/api/models/ann/Llama-8B-GGUF"]


def test_the_address_of_the_hub_in_use_is_understood(hub, server):
    assert names(hub.search(SearchQuery(words=f"{server.endpoint}/bob/Qwen-GGUF"))) == ["bob/Qwen-GGUF"]
    assert hub.parse_reference(f"{server.endpoint}/bob/Qwen-GGUF").repo == "bob/Qwen-GGUF"


def test_a_typed_name_that_is_not_there_is_looked_for_and_an_address_is_not(hub):
    assert names(hub.search(SearchQuery(words="ann/Llama"))) == ["ann/Llama-8B-GGUF"]
    assert kind_of(hub.search, SearchQuery(words="https://huggingface.co/ann/Llama")) is HubErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    "words", ["https://example.org/a/b", "https://huggingface.co/datasets/a/b", "hf.co/owner", "file:///etc/passwd"]
)
def test_an_address_of_anything_else_is_no_search(hub, server, words):
    assert kind_of(hub.search, SearchQuery(words=words)) is HubErrorKind.NO_REFERENCE
    assert server.requests == []


def test_odd_words_are_words(hub):
    for words in ("\u202e\x00\n", "x" * 10_000, "a&b=c#d%/?", "<img src=x>"):
        assert names(hub.search(SearchQuery(words=words))) in ([], ["bob/Qwen-GGUF", "ann/Llama-8B-GGUF"])


def test_pages_follow_each_other(hub, server):
    for number in range(PAGE_ITEMS + 5):
        server.add_repo(f"eve/M{number:02d}-GGUF", {"m-Q8_0.gguf": small_gguf()}, downloads=99 - number)
    query = SearchQuery(author="eve", sort="downloads")
    first = hub.search(query)
    assert names(first) == [f"eve/M{number:02d}-GGUF" for number in range(PAGE_ITEMS)]
    second = hub.search(SearchQuery(author="eve", sort="downloads", cursor=first.next_cursor))
    assert names(second) == [f"eve/M{number:02d}-GGUF" for number in range(PAGE_ITEMS, PAGE_ITEMS + 5)]
    assert second.next_cursor == ""


def test_private_repos_are_for_those_who_may_see_them(server, tmp_path):
    server.add_repo("bob/Secret-GGUF", {"m-Q8_0.gguf": small_gguf()}, private=True)
    server.add_token("hf_bob", "bob")
    with asking(server, tmp_path) as hub:
        assert names(hub.search(SearchQuery(words="secret"))) == []
        assert kind_of(hub.detail, "bob/Secret-GGUF") is HubErrorKind.NOT_FOUND
    with asking(server, tmp_path, token="hf_bob") as hub:
        assert names(hub.search(SearchQuery(words="secret"))) == ["bob/Secret-GGUF"]
        assert hub.detail("bob/Secret-GGUF").access == "granted"
    with asking(server, tmp_path) as hub:  # what one token was told is not shown without it
        assert names(hub.search(SearchQuery(words="secret"))) == []


# --------------------------------------------------------------------------------------------------- one repo


def test_a_repo_is_shown_with_its_rows_and_its_card(hub, server):
    detail = hub.detail("ann/Llama-8B-GGUF")
    assert detail.revision == server.routes.repos["ann/Llama-8B-GGUF"].branches["main"]
    assert [row.key for row in detail.rows] == ["Q4_K_M", "Q8_0"]
    assert detail.card_markdown == "# Llama\n\nGood page"
    assert detail.card_links == (("page", "https://e.example"),)
    assert (detail.access, detail.page_url) == ("open", f"{server.endpoint}/ann/Llama-8B-GGUF")
    file = detail.rows[0].files[0]
    content = server.routes.repos["ann/Llama-8B-GGUF"].find("main").files["Llama-8B-Q4_K_M.gguf"].content
    assert (file.sha256, file.size_bytes, file.revision) == (content.sha256, content.size_bytes, detail.revision)
    assert file.endpoint == server.endpoint


def test_an_older_commit_is_shown_as_it_was(hub, server):
    repo = server.routes.repos["ann/Llama-8B-GGUF"]
    before = repo.branches["main"]
    repo.commit({"Llama-8B-Q2_K.gguf": small_gguf()})
    assert len(hub.detail("ann/Llama-8B-GGUF").rows) == 3
    old = hub.detail("ann/Llama-8B-GGUF", before)
    assert (len(old.rows), old.revision) == (2, before)
    assert kind_of(hub.detail, "ann/Llama-8B-GGUF", "nothing") is HubErrorKind.NO_REVISION


def test_a_renamed_repo_has_its_new_name(hub, server):
    server.routes.repos["ann/Llama-8B-GGUF"].old_names = ["ann/Old-GGUF"]
    detail = hub.detail("ann/Old-GGUF")
    assert detail.summary.repo == detail.rows[0].files[0].repo == "ann/Llama-8B-GGUF"


@pytest.mark.parametrize("name", ["nothing", "", "../x", "a/b/c", "a b/c"])
def test_what_is_no_name_is_not_asked_for(hub, server, name):
    assert kind_of(hub.detail, name) is HubErrorKind.NO_REFERENCE
    assert server.requests == []


def test_hostile_files_are_left_out_of_every_list(hub, server):
    server.fault("hostile_names", "api")
    detail = hub.detail("ann/Llama-8B-GGUF")
    shown = [file.path for row in detail.rows for file in row.files]
    shown += [file.path for file in (*detail.projectors, *detail.others)]
    assert detail.refused_files == len(HOSTILE_NAMES) - 5
    assert set(shown) & set(HOSTILE_NAMES) == {"café.gguf", "Twin.gguf", "-rf.gguf", "~/home.gguf", "$HOME/%TEMP%.gguf"}


@pytest.mark.parametrize(
    ("token", "access", "words"),
    [(None, "needs_token", True), ("hf_stranger", "needs_licence", True), ("hf_reader", "granted", False)],
)
def test_a_gated_repo_shows_its_listing_and_says_who_may_have_the_files(server, tmp_path, token, access, words):
    server.add_repo("bob/Gated-GGUF", {"m-Q8_0.gguf": small_gguf()}, gated="manual", card_text="# Gated\n")
    server.add_token("hf_reader", "ann", ["bob/Gated-GGUF"])
    server.add_token("hf_stranger", "eve")
    with asking(server, tmp_path, token) as hub:
        detail = hub.detail("bob/Gated-GGUF")
        assert (detail.summary.gated, detail.access) == ("manual", access)
        assert [row.key for row in detail.rows] == ["Q8_0"]
        assert detail.card_markdown == ("# Gated" if access == "granted" else "")
        assert (access_words(detail) is not None) is words
    assert server.leaked_tokens() == []


def test_a_card_that_does_not_come_is_no_reason_to_show_nothing(hub, server):
    server.fault("http_500", "resolve:*README.md")
    detail = hub.detail("ann/Llama-8B-GGUF")
    assert (detail.card_markdown, len(detail.rows)) == ("", 2)


@pytest.mark.parametrize("kind", ["listing_bomb", "deep_json", "invalid_json"])
@pytest.mark.parametrize("what", ["search", "detail", "publishers"])
def test_a_listing_that_makes_no_sense_is_said(hub, server, kind, what):
    server.fault(kind, "api")
    assert kind_of(asked_of(hub, what)) is HubErrorKind.BAD_ANSWER


@pytest.mark.parametrize(
    "facts",
    [
        {"siblings": [{"size": 5}]},
        {"siblings": 5},
        {"siblings": [None]},
        {"lastModified": "yesterday"},
        {"sha": None},
        {"id": "x"},
        {"cardData": {"self": 1}},
    ],
)
def test_facts_that_cannot_be_are_no_listing(hub, server, facts):
    server.add_repo("eve/Odd-GGUF", {"m-Q8_0.gguf": small_gguf()}, **facts)
    assert kind_of(hub.detail, "eve/Odd-GGUF") is HubErrorKind.BAD_ANSWER


@pytest.mark.parametrize(
    "facts",
    [
        {"gguf": []},
        {"safetensors": {"parameters": {"F16": "x"}, "total": "x"}},
        {"likes": "many"},
        {"gated": 7},
        {"gguf": {"total": -1}},
    ],
)
def test_odd_facts_that_matter_little_break_nothing(hub, server, facts):
    server.add_repo("eve/Odd-GGUF", {"m-Q8_0.gguf": small_gguf()})
    server.routes.repos["eve/Odd-GGUF"].extra = facts
    assert [row.key for row in hub.detail("eve/Odd-GGUF").rows] == ["Q8_0"]


# ---------------------------------------------------------------------------------------------------- headers


def test_the_table_says_what_fits_before_anything_is_downloaded(hub, server, tmp_path):
    path = shape_files.write_shape("llama-3.1-8b", tmp_path, is_full=True)
    server.add_repo("ann/Real-GGUF", {"Real-Q4_K_M.gguf": path, "Real-Q8_0.gguf": small_gguf(), "mmproj.gguf": b"GGUF"})
    told = []
    detail = hub.read_headers(hub.detail("ann/Real-GGUF"), told.append)
    read = detail.row("Q4_K_M")
    assert (read.state, read.is_shape_exact, round(read.bits_per_weight, 2)) == ("read", True, 4.89)
    assert len(detail.projectors) == 1
    machine = Machine((Device("CPU", "This computer", 16 * GIB, 12 * GIB),))
    fits = [(row, fit(row.shape, FitQuestion(), machine)) for row in detail.rows]
    assert recommend(fits).key == "Q4_K_M"
    assert sum(one.sent_bytes for one in server.seen("cdn")) < 24 * 2**20 < path.stat().st_size
    again = hub.read_headers(hub.detail("ann/Real-GGUF"), told.append)
    assert again.rows == detail.rows


def test_a_listing_that_lies_about_sizes_is_found_out(hub, server):
    server.fault("wrong_listed_size", "api")
    detail = hub.read_headers(hub.detail("ann/Llama-8B-GGUF"), lambda row: None)
    assert all(row.is_broken for row in detail.rows)
    assert "The hub lists" in detail.rows[0].fault


def test_switched_off_no_header_is_asked_for(hub, server, monkeypatch):
    detail = hub.detail("ann/Llama-8B-GGUF")
    count = len(server.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert {row.state for row in hub.read_headers(detail, lambda row: None).rows} == {"unread"}
    assert len(server.requests) == count


# ------------------------------------------------------------------------------------------------- publishers


def test_the_publishers_of_a_model_stand_side_by_side(hub, server):
    base = {"base_model": "meta/Llama-8B"}
    server.add_repo(
        *("mrad/Llama-8B-i1-GGUF", {"Llama-8B.i1-Q2_K.gguf": small_gguf(), "Llama-8B.i1-IQ1_S.gguf": small_gguf()}),
        **{"card": base, "downloads": 700},
    )
    server.add_repo("eve/Llama-8B-tuned", {"model.safetensors": b"x"}, card={**base, "base_model_relation": "finetune"})
    found = hub.publishers("meta/Llama-8B")
    assert [(one.repo, one.has_importance_matrix, one.quantizations) for one in found] == [
        ("mrad/Llama-8B-i1-GGUF", True, ("IQ1_S", "Q2_K")),
        ("ann/Llama-8B-GGUF", None, ("Q4_K_M", "Q8_0")),
    ]
    assert found[0].updated == "2025-03-01T09:30:00+00:00"


@pytest.mark.parametrize("model", ["Qwen", "qwen-gguf", "someone/Qwen"])
def test_without_a_base_model_the_name_finds_them(hub, server, model):
    server.add_repo("eve/big_Qwen-GGUF", {"q-Q2_K.gguf": small_gguf()})
    server.add_repo("eve/Qwen-tuned-GGUF", {"q-Q2_K.gguf": small_gguf()})
    assert [one.repo for one in hub.publishers(model)] == ["bob/Qwen-GGUF", "eve/big_Qwen-GGUF"]


def test_nobody_publishes_nothing(hub):
    assert hub.publishers("") == []
    assert hub.publishers("nobody/Nothing") == []
