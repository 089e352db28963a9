"""One download: its words, its buttons, its keys, and the question before anything is thrown away."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.downloads.types import DownloadState
from app.errors import Words
from app.models.removal import Deletion
from app.units import NBSP
from tests.helpers.hub_values import LLAMA, download
from ui.models.download_words import Button
from ui.models.update_note import UpdateNote, checking_note
from ui.panels.download_row import DownloadRow
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

STATE = DownloadState
ID = f"{LLAMA}:Q4_K_M"


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def row(qtbot, clock):
    made = DownloadRow(load_theme("dark"), clock, clock)
    qtbot.addWidget(made)
    made.resize(700, 200)
    made.set_download(download(STATE.RUNNING))
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    made.setFocus()
    made.wishes = []
    made.pressed.connect(lambda found, button: made.wishes.append((found, button)))
    return made


def texts(row):
    return [label.text().replace(NBSP, " ") for label in row.findChildren(QLabel) if label.isVisible()]


def answer(row, key):
    row.confirm.findChild(QPushButton, f"answer_{key}").click()


def test_it_says_what_it_is_and_how_far(row):
    assert texts(row)[:2] == [f"{LLAMA}:Q4_K_M", "2.93 of 4.57 GiB · 63 % · 48 MB/s · 40 s left"]
    assert (row.main.text(), row.other.text()) == ("Pause", "Cancel…")
    assert row.main.accessibleName() == f"Pause {LLAMA}:Q4_K_M"


def test_a_failure_is_told_with_its_one_action(row):
    row.set_download(download(STATE.FAILED, words=Words("It is gone.", "Choose another."), action="choose"))
    assert texts(row)[-2:] == ["It is gone.", "Choose another."]
    row.main.click()
    assert row.wishes == [(ID, Button.CHOOSE)]
    row.set_download(download(STATE.RUNNING))
    assert "It is gone." not in texts(row)


def test_the_keys(row, qtbot):
    for key in (Qt.Key.Key_Space, Qt.Key.Key_Return):
        qtbot.keyClick(row, key)
    assert row.wishes == [(ID, Button.PAUSE), (ID, Button.PAUSE)]
    row.set_download(download(STATE.PAUSED))
    qtbot.keyClick(row, Qt.Key.Key_Space)
    assert row.wishes[-1] == (ID, Button.RESUME)
    row.set_download(download(STATE.DONE))
    qtbot.keyClick(row, Qt.Key.Key_Space)
    assert len(row.wishes) == 3
    steps = []
    row.stepped.connect(steps.append)
    qtbot.keyClick(row, Qt.Key.Key_Down)
    qtbot.keyClick(row, Qt.Key.Key_Up)
    assert steps == [1, -1]


def test_cancelling_asks_what_becomes_of_what_is_here(row, qtbot):
    qtbot.keyClick(row, Qt.Key.Key_Delete)
    assert "Cancel this download?" in texts(row)
    assert row.confirm.findChild(QPushButton, "answer_cancel").text() == "Go back"
    answer(row, "cancel")
    assert row.wishes == []
    row.ask_to_end()
    answer(row, "keep")
    row.ask_to_end()
    answer(row, "delete")
    assert row.wishes == [(ID, Button.CANCEL), (ID, Button.DELETE)]
    assert row.hasFocus()


def test_where_nothing_is_lost_nothing_is_asked(row):
    row.set_download(download(STATE.QUEUED, part=0.0))
    row.other.click()
    row.set_download(download(STATE.DONE))
    row.other.click()
    assert row.wishes == [(ID, Button.DELETE), (ID, Button.REMOVE)]
    assert not row.confirm.isVisible()


def test_a_leftover_is_deleted_only_after_a_question(row):
    row.set_download(download(STATE.PAUSED, is_leftover=True, files=()))
    assert not row.main.isVisible()
    row.other.click()
    assert "Delete what is here of it?" in texts(row)
    answer(row, "delete")
    assert row.wishes == [(ID, Button.DELETE)]


def test_the_question_goes_when_the_download_is_done(row):
    row.ask_to_end()
    row.set_download(download(STATE.DONE))
    assert not row.confirm.isVisible()


def test_the_spoken_name_changes_every_ten_seconds_or_with_the_state(row, clock):
    first = row.accessibleName()
    row.set_download(download(STATE.RUNNING, part=0.7))
    assert row.accessibleName() == first
    clock.now_s = 11.0
    row.set_download(download(STATE.RUNNING, part=0.8))
    assert "79 %" in row.accessibleName().replace(NBSP, " ")
    row.set_download(download(STATE.PAUSED, part=0.8))
    assert "Paused" in row.accessibleName()


def test_before_it_shows_anything_it_does_nothing(qtbot):
    row = DownloadRow(load_theme("dark"))
    qtbot.addWidget(row)
    row.ask_to_end()
    row.main.click()
    qtbot.keyClick(row, Qt.Key.Key_Delete)
    row.set_theme(load_theme("light"))
    assert row.download is None


def test_a_strangers_title_is_plain(row):
    row.set_download(download(STATE.RUNNING, title="<b>bold</b>\n" * 3, words=Words("<i>x</i>")))
    assert "<b>bold</b> <b>bold</b> <b>bold</b>" in texts(row)
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in row.findChildren(QLabel))


# ------------------------------------------------------------------------------------------ what can be done besides


def test_one_that_waits_can_be_tried_now_or_paused(row):
    assert not row.more.isVisible()
    row.set_download(download(STATE.WAITING))
    assert (row.main.text(), row.more.text(), row.other.text()) == ("Try now", "Pause", "Cancel…")
    row.main.click()
    row.more.click()
    assert row.wishes == [(ID, Button.NOW), (ID, Button.PAUSE)]


def test_a_finished_one_is_checked_for_a_newer_version_when_a_person_asks(row):
    row.set_download(download(STATE.DONE))
    assert row.more.text() == "Check for a newer version"
    row.more.click()
    assert row.wishes == [(ID, Button.CHECK)]
    row.set_note(checking_note())
    assert not row.more.isEnabled()
    assert "Asking the hub whether there is a newer version…" in texts(row)
    row.set_note(UpdateNote(Words("There is a newer version.", "m.gguf: 5 GiB, was 4 GiB."), Button.NEWER))
    assert (row.more.text(), row.more.isEnabled()) == ("Download the newer version", True)
    assert texts(row)[-2:] == ["There is a newer version.", "m.gguf: 5 GiB, was 4 GiB."]
    row.more.click()
    assert row.wishes[-1] == (ID, Button.NEWER)
    row.set_note(None)
    assert row.more.text() == "Check for a newer version"
    assert "There is a newer version." not in texts(row)


def test_a_note_is_of_a_finished_one_alone(row):
    row.set_note(UpdateNote(Words("There is a newer version."), Button.NEWER))
    assert "There is a newer version." not in texts(row)
    assert not row.more.isVisible()
    row.set_download(download(STATE.DONE))
    assert "There is a newer version." in texts(row)
    row.set_note(UpdateNote(Words("It is on its way.")))
    assert not row.more.isVisible()


@pytest.mark.parametrize(("key", "button"), [("trash", Button.TRASH), ("forever", Button.FOREVER)])
def test_an_older_one_is_deleted_after_a_question(row, key, button):
    row.set_download(download(STATE.DONE))
    row.ask_to_delete(Deletion((Path("/m/a"),), 4 * 2**30, True))
    assert "Delete 1 file and free 4.00 GiB?" in texts(row)
    answer(row, key)
    assert row.wishes == [(ID, button)]


def test_why_it_may_not_be_deleted_is_said(row):
    row.set_download(download(STATE.DONE))
    row.ask_to_delete(Deletion((), 0, False, "It is loaded."))
    assert "It is loaded." in texts(row)
    answer(row, "cancel")
    assert row.wishes == []
