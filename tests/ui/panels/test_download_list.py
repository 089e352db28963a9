"""The list: order, rows that stay, keys from row to row, leftovers apart, many of them."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.downloads.types import DownloadState
from app.units import NBSP
from tests.helpers.hub_values import download, every_download
from ui.models.download_words import Button
from ui.panels.download_list import DownloadList
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

STATE = DownloadState


@pytest.fixture
def shown(qtbot):
    made = DownloadList(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 600)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


def texts(shown):
    return [label.text().replace(NBSP, " ") for label in shown.findChildren(QLabel) if label.isVisible()]


def ids(shown):
    return [row.download.download_id for row in shown.rows]


def test_without_any_there_is_a_sentence_and_the_way_back(shown, qtbot):
    assert "No download is on its way." in texts(shown)
    with qtbot.waitSignal(shown.left):
        shown._nothing.action_requested.emit()
    shown.focus_first()
    assert shown._back.hasFocus()
    with qtbot.waitSignal(shown.left):
        shown._back.click()


def test_they_stand_in_the_queues_order_and_leftovers_last(shown):
    every = every_download()
    shown.set_downloads([every[-1], *every[:-1]])
    assert ids(shown) == [one.download_id for one in every]
    assert "Unfinished, from an earlier time" in texts(shown)
    assert any(text.endswith("GiB in unfinished files") for text in texts(shown))
    tops = [row.mapTo(shown, row.rect().topLeft()).y() for row in shown.rows]
    assert tops == sorted(tops)


def test_a_change_keeps_every_row_and_touches_only_its_own(shown, monkeypatch):
    every = every_download()
    shown.set_downloads(every)
    rows = shown.rows
    touched = []
    for row in rows:
        monkeypatch.setattr(row, "set_download", touched.append)
    changed = msgspec.structs.replace(every[1], done_bytes=every[1].done_bytes + 1)
    shown.set_downloads([every[0], changed, *every[2:]])
    assert shown.rows == rows
    assert touched == [changed]


def test_what_goes_takes_its_row_along_and_the_focus_stays_in_the_list(shown, qtbot):
    every = every_download()
    shown.set_downloads(every)
    qtbot.waitUntil(shown.rows[0].isVisible, timeout=PATIENCE_MS)
    shown.rows[0].setFocus()
    shown.set_downloads(every[1:])
    assert shown.rows[0].hasFocus()
    assert ids(shown) == [one.download_id for one in every[1:]]
    shown.set_downloads([])
    assert shown.rows == []


def test_the_arrows_go_from_row_to_row(shown, qtbot):
    shown.set_downloads(every_download())
    qtbot.waitUntil(shown.rows[1].isVisible, timeout=PATIENCE_MS)
    shown.focus_first()
    qtbot.keyClick(shown.rows[0], Qt.Key.Key_Down)
    assert shown.rows[1].hasFocus()
    qtbot.keyClick(shown.rows[1], Qt.Key.Key_Up)
    qtbot.keyClick(shown.rows[0], Qt.Key.Key_Up)
    assert shown.rows[0].hasFocus()


def test_esc_leads_back_and_first_out_of_a_question(shown, qtbot):
    shown.set_downloads([download(STATE.RUNNING)])
    qtbot.waitUntil(shown.rows[0].isVisible, timeout=PATIENCE_MS)
    shown.rows[0].ask_to_end()
    with qtbot.assertNotEmitted(shown.left):
        qtbot.keyClick(shown.window().focusWidget(), Qt.Key.Key_Escape)
    with qtbot.waitSignal(shown.left):
        qtbot.keyClick(shown.window().focusWidget(), Qt.Key.Key_Escape)


def test_wishes_are_passed_on_and_themes_taken(shown, qtbot):
    shown.set_downloads([download(STATE.RUNNING)])
    with qtbot.waitSignal(shown.pressed) as caught:
        shown.rows[0].main.click()
    assert caught.args[1] is Button.PAUSE
    shown.set_theme(load_theme("light"))


def test_three_hundred_leftovers_are_listed(shown):
    many = [download(STATE.PAUSED, "F16", is_leftover=True, download_id=f"{number}") for number in range(300)]
    shown.set_downloads(many)
    assert len(shown.rows) == 300
    assert shown.minimumSizeHint().width() <= 560
