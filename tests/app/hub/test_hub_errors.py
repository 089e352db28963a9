"""Why a hub gave no answer, in words."""

from __future__ import annotations

import pytest

from app.errors import Words
from app.hub.hub_errors import PASSING, HubError, HubErrorKind, age_words, of_remote, stale_words
from app.models.http_faults import RemoteError, RemoteFault


@pytest.mark.parametrize("kind", list(HubErrorKind))
def test_every_kind_says_what_happened_and_most_what_to_do(kind):
    error = HubError(kind, "hub.example", status=418, detail="a/b")
    assert error.words.message.endswith(".")
    assert "{" not in error.words.message + error.words.hint
    assert (error.words.hint == "") == (kind is HubErrorKind.CANCELLED)
    assert error.action in ("retry", "token", "licence", "settings", "")


@pytest.mark.parametrize("fault", list(RemoteFault))
def test_every_fault_of_the_network_has_its_kind_and_keeps_its_words(fault):
    remote = RemoteError(fault, "hub.example", status=500, retry_after_s=3)
    error = of_remote(remote)
    assert error.words == remote.words
    assert (error.status, error.retry_after_s) == (500, 3)
    assert isinstance(error.kind, HubErrorKind)


def test_what_passes_is_what_an_old_answer_can_stand_for():
    assert HubErrorKind.OFFLINE in PASSING
    assert HubErrorKind.RATE_LIMITED in PASSING
    assert not PASSING & {
        HubErrorKind.NOT_FOUND,
        HubErrorKind.GATED,
        HubErrorKind.CANCELLED,
        HubErrorKind.TOKEN_REFUSED,
    }


def test_the_pause_that_the_hub_asks_for_is_said():
    assert HubError(HubErrorKind.RATE_LIMITED, "h", retry_after_s=1).words.hint == "It asks to wait 1 second."
    assert HubError(HubErrorKind.RATE_LIMITED, "h", retry_after_s=1200).words.hint == "It asks to wait 1,200 seconds."
    assert "seconds" not in HubError(HubErrorKind.NOT_FOUND, "h", retry_after_s=5).words.hint


def test_strangers_words_are_made_one_line():
    error = HubError(HubErrorKind.NOT_FOUND, "h", detail="a\n\u202eb" + "x" * 500)
    assert "\n" not in error.words.message
    assert "\u202e" not in error.words.message
    assert len(error.words.message) < 200


@pytest.mark.parametrize(
    ("age_s", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (47 * 3600, "47 hours ago"),
        (48 * 3600, "2 days ago"),
        (5000 * 86400, "5,000 days ago"),
    ],
)
def test_ages_are_said_in_words(age_s, words):
    assert age_words(age_s) == words


def test_an_old_answer_says_why_it_is_shown():
    assert stale_words(Words("It is off."), 7200) == "It is off. What you see is from before: 2 hours ago."
    assert stale_words(None, 7200) == "What you see is from before: 2 hours ago."
