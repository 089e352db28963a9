"""Names of a hostile repo are taken as they are or refused; trust S-24."""

from __future__ import annotations

import pytest

from app.downloads.faults import DownloadError, DownloadFault
from app.downloads.names import blob_name, check_path, check_repo, check_revision, check_twins, folded
from tests.helpers.hub_files import HOSTILE_NAMES

# Of the names that a hostile repo lists: those that name one and the same harmless place everywhere.
HARMLESS = {"café.gguf", "Twin.gguf", "twin.GGUF", "-rf.gguf", "~/home.gguf", "$HOME/%TEMP%.gguf"}


def reason(name):
    with pytest.raises(DownloadError) as caught:
        check_path(name)
    assert (caught.value.kind, caught.value.action) == (DownloadFault.BAD_NAME, "choose")
    return caught.value.words.message


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=ascii)
def test_a_hostile_name_is_refused_and_a_harmless_one_kept_as_it_is(name):
    if name in HARMLESS:
        assert "/".join(check_path(name)) == name
    else:
        assert "cannot be downloaded" in reason(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a/../b.gguf", "leads elsewhere"),
        ("con.gguf", "that of a device"),
        ("LPT9", "that of a device"),
        ("conout$.txt", "that of a device"),
        ("x?.gguf", "not every system allows"),
        ("x\u200b.gguf", "cannot be seen"),
        ("x\ud800.gguf", "cannot be seen"),
        ("x.gguf ", "begins or ends"),
        ("x/.GIT/hooks/post-checkout", "folder of git"),
        ("git~1/config", "folder of git"),
        ("é" * 128, "too long"),
        ("a/" * 40 + "b", "too long"),
        ("e\u0301.gguf", "not every system keeps"),
    ],
    ids=ascii,
)
def test_the_reason_is_said(name, words):
    assert words in reason(name)


def test_ordinary_names_of_models_are_kept():
    for name in (
        "Q4_K_M/model-00001-of-00003.gguf",
        ".gitattributes",
        "tokenizer.json",
        "Modell (neu) ü.gguf",
        "模型.gguf",
    ):
        assert "/".join(check_path(name)) == name


def test_what_is_shown_of_a_name_is_one_visible_line():
    assert "\n" not in reason("a\nb\u202e.gguf")


@pytest.mark.parametrize("repo", ["owner/name", "gpt2", "Qwen/Qwen3-0.6B-GGUF", "a_b/c.d"])
def test_a_repo_has_a_folder_in_the_cache(repo):
    assert check_repo(repo) == "models--" + repo.replace("/", "--")


@pytest.mark.parametrize(
    "repo", ["", "/", "a/b/c", "../x", "a/..", "a--b/c", "-a/b", "a./b", "a/b.git", "a/b c", "a\\b", "a/" + "b" * 97]
)
def test_what_is_no_repo_is_refused(repo):
    with pytest.raises(DownloadError, match="cannot be downloaded"):
        check_repo(repo)


@pytest.mark.parametrize("revision", ["", "main", "A" * 40, "a" * 39, "a" * 40 + "\n", "../" + "a" * 37])
def test_only_a_commit_is_a_revision(revision):
    assert check_revision("0a" * 20) == "0a" * 20
    with pytest.raises(DownloadError):
        check_revision(revision)


def test_bytes_are_called_what_the_hub_calls_them():
    assert blob_name("a" * 64, "b" * 64) == "a" * 64
    assert blob_name("a" * 40, "") == "a" * 40
    assert blob_name("", "b" * 64) == "b" * 64
    for etag in ("", "../x", "A" * 64, "a" * 63, '"' + "a" * 40 + '"'):
        with pytest.raises(DownloadError):
            blob_name(etag, "")


def test_names_that_are_one_on_some_systems_are_refused_together():
    check_twins(["a/x.gguf", "b/x.gguf", "a/x.gguf"])
    for one, other in (("Twin.gguf", "twin.GGUF"), ("caf\u00e9", "cafe\u0301"), ("straße", "STRASSE")):
        assert folded(one) == folded(other)
        with pytest.raises(DownloadError) as caught:
            check_twins([one, other])
        assert caught.value.kind is DownloadFault.TWIN_NAME
