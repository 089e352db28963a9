"""Whether a person may have the files, and what to do when not."""

from __future__ import annotations

import pytest

from app.hub.access import access_of, access_words
from app.hub.types import RepoDetail, RepoSummary

PAGE = "https://huggingface.co/a/b"


def detail(access: str, gated: bool | str = "auto") -> RepoDetail:
    summary = RepoSummary(repo="a/b", name="b", owner="a", gated=gated)
    return RepoDetail(summary=summary, revision="c" * 40, access=access, page_url=PAGE)


@pytest.mark.parametrize(
    ("status", "access"),
    [
        (200, "granted"),
        (302, "granted"),
        (401, "needs_token"),
        (403, "needs_licence"),
        (404, "unknown"),
        (0, "unknown"),
    ],
)
def test_the_answer_for_a_file_tells(status, access):
    assert access_of(status) == access


@pytest.mark.parametrize("access", ["open", "granted"])
def test_nothing_is_in_the_way(access):
    assert access_words(detail(access)) is None
    assert access_words(detail("unknown", gated=False)) is None


def test_a_missing_token_a_missing_licence_and_a_publisher_who_decides_are_told_apart():
    token, licence = access_words(detail("needs_token")), access_words(detail("needs_licence"))
    manual = access_words(detail("needs_licence", "manual"))
    assert "give a token" in token.hint
    assert licence.hint == f"Accept it at {PAGE}, then try again."
    assert manual.hint == f"Ask for access at {PAGE}; its publisher decides. Then try again."
    assert PAGE in access_words(detail("unknown")).hint
