"""Asking the hub whether there is something newer than what was downloaded, and what a person is told."""

from __future__ import annotations

import pytest

from app.downloads.fetched import FetchedFile, FetchedModel
from app.downloads.types import FileRef
from app.downloads.updates import Update
from app.hub.hub_errors import HubError, HubErrorKind
from app.hub.update_check import check_update, older_here, older_here_words, short_commit, update_words
from app.units import NBSP
from tests.helpers.downloads import file_of
from tests.helpers.hub_asking import asking, small_gguf
from tests.helpers.hub_server import HubServer

REPO, NAME = "ann/Llama-8B-GGUF", "Llama-8B-Q4_K_M.gguf"
DAY_S = 86_400.0


@pytest.fixture
def server():
    with HubServer() as made:
        made.add_repo(REPO, {NAME: small_gguf(), "mmproj-F16.gguf": small_gguf()}, card={"license": "mit"})
        yield made


@pytest.fixture
def hub(server, tmp_path):
    with asking(server, tmp_path) as made:
        yield made


@pytest.fixture
def pinned(server):
    return [file_of(server, REPO, NAME), file_of(server, REPO, "mmproj-F16.gguf")]


def commit(server, *, removed=(), **files):
    return server.routes.repos[REPO].commit(
        {name.replace("__", "."): data for name, data in files.items()}, removed=removed
    )


def plain(words):
    return words.message.replace(NBSP, " "), words.hint.replace(NBSP, " ")


def test_the_newest_commit_is_up_to_date(hub, pinned):
    answer = check_update(hub, pinned)
    assert answer.state is Update.CURRENT
    message, hint = plain(update_words(answer, answer.updated_at + 3 * DAY_S))
    assert message == f"Up to date: this is the newest version (commit {pinned[0].revision[:7]}, 3 days ago)."
    assert hint == ""


def test_a_commit_that_changed_the_card_alone_is_no_news(hub, pinned, server):
    head = commit(server, README__md="# Another word\n")
    answer = check_update(hub, pinned)
    assert (answer.state, answer.head_revision) == (Update.CURRENT, head)
    message, hint = plain(update_words(answer, answer.updated_at))
    assert message == f"Up to date: these files have not changed since commit {pinned[0].revision[:7]}."
    assert hint == f"The newest commit ({head[:7]}, just now) changed others."


def test_other_bytes_are_a_newer_version_and_the_old_ones_are_named(hub, pinned, server):
    head = server.routes.repos[REPO].commit({NAME: small_gguf() + bytes(1024)})
    answer = check_update(hub, pinned)
    assert answer.state is Update.CHANGED
    assert [(file.path, file.revision) for file in answer.head_files] == [(NAME, head), ("mmproj-F16.gguf", head)]
    assert answer.head_files[0].size_bytes == pinned[0].size_bytes + 1024
    message, hint = plain(update_words(answer, answer.updated_at + DAY_S))
    assert (
        message
        == f"There is a newer version: commit {head[:7]}, 24 hours ago. Here is commit {pinned[0].revision[:7]}."
    )
    assert hint.startswith(f"{NAME}: ")
    assert ", was " in hint
    assert "mmproj" not in hint
    assert answer.words.message.startswith("There is a newer version")


def test_bytes_of_the_same_size_are_said_to_be_others(hub, pinned, server):
    data = bytearray(small_gguf())
    data[-1] ^= 1
    server.routes.repos[REPO].commit({NAME: bytes(data)})
    answer = check_update(hub, pinned)
    assert "other bytes" in update_words(answer, 0.0).hint


def test_a_file_that_is_gone_is_no_newer_version(hub, pinned, server):
    server.routes.repos[REPO].commit({"other-Q4_K_M.gguf": small_gguf()}, removed=[NAME])
    answer = check_update(hub, pinned)
    assert answer.state is Update.REMOVED
    message, hint = plain(update_words(answer, 0.0))
    assert "has no file of this name any more" in message
    assert "stays as it is" in hint


def test_many_changed_files_are_counted(server, hub):
    names = [f"m-0000{number}-of-00005.gguf" for number in range(1, 6)]
    server.add_repo("ann/many", {name: small_gguf() + name.encode() for name in names})
    files = [file_of(server, "ann/many", name) for name in names]
    server.routes.repos["ann/many"].commit({name: small_gguf() for name in names})
    assert update_words(check_update(hub, files), 0.0).hint.endswith("2 more files.")


def test_no_network_a_pause_and_a_repo_that_is_gone_are_words(hub, pinned, server):
    hub.detail(REPO)  # what is kept of it says nothing about today
    server.fault("refused", "api:*")
    with pytest.raises(HubError) as offline:
        check_update(hub, pinned)
    assert "127.0.0.1" in offline.value.words.message
    server.clear_faults()
    server.fault("http_429_seconds", "api:*", value=43)
    with pytest.raises(HubError) as limited:
        check_update(hub, pinned)
    assert "wants a pause" in limited.value.words.message
    server.clear_faults()
    del server.routes.repos[REPO]
    with pytest.raises(HubError) as gone:
        check_update(hub, pinned)
    assert gone.value.kind is HubErrorKind.NOT_FOUND
    assert plain(gone.value.words) == (
        f"The hub has no repo {REPO} any more, or hides it.",
        "What is here stays and works.",
    )


def test_a_gate_that_was_put_up_since_is_told(hub, pinned, server):
    server.routes.repos[REPO].gated = "auto"
    server.routes.repos[REPO].commit({NAME: small_gguf() + b"x"})
    answer = check_update(hub, pinned)
    assert answer.state is Update.CHANGED
    assert "licence" in update_words(answer, 0.0).hint


# ------------------------------------------------------------------------------------------ before a download


def ref(path=NAME, revision="1" * 40, letter="a", repo=REPO):
    return FileRef("https://h", repo, revision, path, 5, letter * 64, letter * 64)


def fetched(*files, at=0.0):
    made = tuple(FetchedFile(file=file, has_bytes=True, has_name=True, changed_ns=1) for file in files)
    return FetchedModel(title="t", branch="main", fetched_at=at, files=made)


@pytest.mark.parametrize(
    ("known", "is_older"),
    [
        ([], False),
        ([fetched(ref())], True),
        ([fetched(ref(letter="b"))], False),  # the same bytes at another commit
        ([fetched(ref("other.gguf"))], False),
        ([fetched(ref(repo="bob/x"))], False),
        ([fetched(ref()), fetched(ref(revision="2" * 40, letter="b"))], False),  # the newer one is here as well
    ],
)
def test_what_is_here_of_the_same_files(known, is_older):
    found = older_here(known, [ref(revision="2" * 40, letter="b")])
    assert (found is not None) is is_older


def test_of_several_older_ones_the_last_is_named():
    known = [fetched(ref(revision="0" * 40, letter="c"), at=1.0), fetched(ref(), at=2.0)]
    older = older_here(known, [ref(revision="2" * 40, letter="b")])
    message, hint = plain(older_here_words(older, 2.0 + 3 * DAY_S))
    assert "commit 1111111, downloaded 3 days ago" in message
    assert "stays until you delete it" in hint
    assert short_commit("abc\n" * 10) == "abc abc"
