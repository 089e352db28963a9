"""However often the queue tells, the screen hears four times a second at most, on its own thread, of changes only."""

from __future__ import annotations

import threading

import pytest

from app.downloads.types import DownloadState
from tests.helpers.hub_values import download
from ui.models import download_feed
from ui.models.download_feed import DownloadFeed

PATIENCE_MS = 60_000  # of a machine that is busy with much else


@pytest.fixture
def feed(qtbot):
    made = DownloadFeed()
    made.heard = []
    made.changed.connect(lambda told: made.heard.append((threading.current_thread(), told)))
    yield made
    made.close()


def running(number, quantization="Q4_K_M"):
    return download(DownloadState.RUNNING, quantization, done_bytes=number)


def test_the_first_change_is_told_at_once_and_the_newest_of_the_others_together(feed, qtbot):
    def tell_many():
        for number in range(5_000):
            feed.tell(running(number))
            feed.tell(running(number, "Q8_0"))

    feed.tell(running(-1))
    qtbot.waitUntil(lambda: len(feed.heard) == 1, timeout=PATIENCE_MS)
    thread = threading.Thread(target=tell_many)
    thread.start()
    thread.join()
    assert len(feed.heard) == 1
    qtbot.waitUntil(lambda: len(feed.heard) == 2, timeout=PATIENCE_MS)
    heard_on, told = feed.heard[1]
    assert heard_on is threading.main_thread()
    assert [(one.download_id.rpartition(":")[2], one.done_bytes) for one in told] == [
        ("Q4_K_M", 4_999),
        ("Q8_0", 4_999),
    ]


def test_it_rests_when_nothing_changes_and_wakes_again(feed, qtbot):
    assert download_feed._INTERVAL_MS >= 250
    feed.tell(running(1))
    qtbot.waitUntil(lambda: len(feed.heard) == 1, timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: not feed._timer.isActive(), timeout=PATIENCE_MS)
    feed.tell(running(2))
    qtbot.waitUntil(lambda: len(feed.heard) == 2, timeout=PATIENCE_MS)


def test_after_the_end_nothing_is_told(feed, qtbot):
    feed.tell(running(1))
    feed.close()
    feed.tell(running(2))
    qtbot.wait(1)
    assert feed.heard == []
