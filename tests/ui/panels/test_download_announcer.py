"""A screen reader hears ends and faults at once, progress every ten seconds at most."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from app.downloads.types import DownloadState
from app.units import NBSP
from tests.helpers.hub_values import download
from ui.panels import download_announcer
from ui.panels.download_announcer import DownloadAnnouncer, announce_from

STATE = DownloadState


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def heard():
    return []


@pytest.fixture
def announcer(clock, heard):
    return DownloadAnnouncer(lambda words: heard.append(words.replace(NBSP, " ")), clock, clock)


def test_progress_is_heard_every_ten_seconds_and_only_when_it_is_other_words(announcer, clock, heard):
    for second in range(31):
        clock.now_s = float(second)
        running = download(STATE.RUNNING, done_bytes=second * 10**8, total_bytes=10**10)
        announcer.tell([running], [running])
    assert heard == [
        "1 download · 10 % · 48 MB/s",
        "1 download · 20 % · 48 MB/s",
        "1 download · 30 % · 48 MB/s",
    ]
    clock.now_s = 60.0
    announcer.tell([running], [running])
    assert len(heard) == 3


def test_an_end_is_heard_at_once(announcer, heard):
    running, done = download(STATE.RUNNING), download(STATE.DONE)
    announcer.tell([running], [running])
    assert heard == []
    announcer.tell([done], [done])
    assert heard[0].startswith("bartowski/Llama-3.1-8B-Instruct-GGUF:Q4_K_M. Done")
    announcer.tell([done], [done])
    assert len(heard) == 1


def test_what_was_so_at_the_start_is_no_news(announcer, heard):
    failed = download(STATE.FAILED)
    announcer.start_with([failed])
    announcer.tell([failed], [failed])
    assert heard == []


def test_it_is_said_in_the_name_of_a_widget(qtbot, monkeypatch):
    widget = QWidget()
    qtbot.addWidget(widget)
    sent = []
    monkeypatch.setattr(download_announcer.QAccessible, "updateAccessibility", sent.append)
    announce_from(widget)("Done.")
    assert sent[0].type() == QAccessible.Event.Announcement
    assert sent[0].message() == "Done."
