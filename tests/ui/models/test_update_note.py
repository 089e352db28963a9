"""What is said under a finished download about newer versions of it."""

from __future__ import annotations

import msgspec
import pytest

from app.downloads.types import DownloadState
from app.downloads.updates import Update
from app.errors import Words
from app.hub.update_check import UpdateAnswer
from app.units import NBSP
from tests.helpers.hub_values import download
from ui.models.download_words import Button
from ui.models.update_note import answer_note, checking_note, fault_note, newer_note, newer_of, slow_note

STATE = DownloadState


def newer(state=STATE.DONE, letter="e", **fields):
    made = download(state, download_id="newer", **fields)
    files = [
        msgspec.structs.replace(one, revision="f" * 40, sha256=letter * 64, etag=letter * 64) for one in made.files
    ]
    return msgspec.structs.replace(made, files=tuple(files))


def test_asking_waiting_and_failing():
    assert (checking_note().is_busy, slow_note().is_busy) == (True, True)
    words = Words("The hub cannot be reached.", "Check the network.")
    found = fault_note(words)
    assert (found.words, found.button, found.is_fault) == (words, Button.CHECK, True)


@pytest.mark.parametrize(
    ("state", "button"),
    [(Update.CURRENT, Button.CHECK), (Update.REMOVED, Button.CHECK), (Update.CHANGED, Button.NEWER)],
)
def test_an_answer_with_what_can_be_done(state, button):
    found = answer_note(UpdateAnswer(state, download(STATE.DONE).files, "f" * 40))
    assert (found.button, found.is_busy, found.is_fault) == (button, False, False)
    assert found.words.message


def test_the_newer_one_is_found_among_the_later_ones():
    old = download(STATE.DONE)
    other = download(STATE.DONE, "Q8_0")
    assert newer_of(old, [old, other]) is None
    assert newer_of(old, [old, other, newer()]) == newer()
    assert newer_of(newer(), [old, other, newer()]) is None
    assert newer_of(old, [newer(), old]) is None
    assert newer_of(old, [other]) is None
    assert newer_of(download(STATE.PAUSED), [download(STATE.PAUSED), newer()]) is None


def test_the_same_bytes_a_leftover_and_a_cancelled_one_are_no_newer_version():
    old = download(STATE.DONE)
    same = msgspec.structs.replace(
        newer(), files=tuple(msgspec.structs.replace(one, revision="f" * 40) for one in old.files)
    )
    for found in (same, newer(is_leftover=True), newer(STATE.CANCELLED)):
        assert newer_of(old, [old, found]) is None


def test_how_far_the_newer_one_is():
    old = download(STATE.DONE)
    here = newer_note(old, newer())
    assert here.button is Button.DELETE_OLD
    assert here.words.hint.replace(NBSP, " ") == "This older one still takes 4.57 GiB."
    coming = newer_note(old, newer(STATE.RUNNING))
    assert (coming.button, coming.words.message) == (None, "The newer version is on its way (commit fffffff).")
    assert "is not here yet" in newer_note(old, newer(STATE.PAUSED)).words.message
