"""The downloads behind the panel: what the last run left, every button, and what the library is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.context import build_context
from app.downloads.types import DownloadState
from app.errors import Words
from tests.helpers.gguf_files import named_model
from tests.helpers.hub_values import LLAMA, download, row
from ui.downloads_screen import DownloadsScreen
from ui.models.download_words import Button
from ui.panels.models_panel import ModelsPanel
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

STATE = DownloadState
ID = f"{LLAMA}:Q4_K_M"


class Queue:
    """Remembers what it was asked."""

    def __init__(self, downloads=(), leftovers=(), notices=()):
        self.asked = []
        self._downloads, self._leftovers, self.notices = list(downloads), list(leftovers), tuple(notices)

    def downloads(self):
        return self._downloads

    def find_leftovers(self):
        return self._leftovers

    def add(self, title, files, branch="main"):
        self.asked.append(("add", title, branch))
        return download(STATE.QUEUED, part=0.0)

    def __getattr__(self, name):
        return lambda download_id, **named: self.asked.append((name, download_id, *named.values()))


class Network:
    def __init__(self, queue):
        self.downloads = queue

    def watch_downloads(self, watcher):
        self.tell = watcher

    def close(self):
        pass


@pytest.fixture
def made(qtbot):
    parts = []

    def make(queue):
        context = build_context()
        context._network = Network(queue)
        panel = ModelsPanel(load_theme("dark"))
        qtbot.addWidget(panel)
        told = []
        screen = DownloadsScreen(context, panel.hub, SynchronousTasks(), lambda key, words: told.append((key, words)))
        screen.panel, screen.told, screen.queue, screen.context = panel, told, queue, context
        parts.append((screen, context))
        screen.start()
        return screen

    yield make
    for screen, context in parts:
        screen.close()
        context.close()


def rows(screen):
    return [found.download.download_id for found in screen.panel.hub.downloads.rows]


def press(screen, button, download_id=ID):
    screen.panel.hub.download_pressed.emit(download_id, button)


def test_what_the_last_run_left_is_listed_and_its_notices_told(made):
    words = Words("The list was damaged.")
    leftover = download(STATE.PAUSED, "F16", is_leftover=True, download_id="left")
    screen = made(Queue([download(STATE.PAUSED)], [leftover], [words]))
    assert rows(screen) == [ID, "left"]
    assert screen.told == [("downloads 0", words)]


def test_every_button_reaches_the_queue(made):
    screen = made(Queue([download(STATE.RUNNING), download(STATE.DONE, "Q8_0")]))
    for button in (Button.PAUSE, Button.RESUME, Button.RETRY, Button.CANCEL):
        press(screen, button)
    press(screen, Button.REMOVE, f"{LLAMA}:Q8_0")
    press(screen, Button.DELETE)
    press(screen, Button.PAUSE, "unknown")
    assert screen.queue.asked == [
        ("pause", ID),
        ("resume", ID),
        ("resume", ID),
        ("cancel", ID, False),
        ("remove", f"{LLAMA}:Q8_0"),
        ("cancel", ID, True),
        ("remove", ID),
    ]
    assert rows(screen) == []


def test_what_was_taken_off_the_list_does_not_come_back(made, qtbot):
    screen = made(Queue([download(STATE.DONE)]))
    press(screen, Button.REMOVE)
    screen.context.network.tell(download(STATE.DONE))
    screen.context.network.tell(download(STATE.RUNNING, "Q8_0"))
    qtbot.waitUntil(lambda: rows(screen) == [f"{LLAMA}:Q8_0"])


def test_of_a_cancelled_one_the_leftover_is_deleted(made):
    kept = download(STATE.CANCELLED)
    leftover = download(STATE.PAUSED, is_leftover=True, download_id="left")
    other = download(STATE.PAUSED, "Q8_0", is_leftover=True, download_id="other")
    screen = made(Queue([kept], [leftover, other]))
    press(screen, Button.DELETE)
    assert screen.queue.asked == [("remove", ID), ("cancel", "left", True), ("remove", "left")]


def test_what_is_asked_for_is_added_and_shown_at_once(made, qtbot):
    screen = made(Queue())
    screen.add("title", row(LLAMA, "Q4_K_M", 4.89).files, "main")
    qtbot.waitUntil(lambda: rows(screen) == [ID])
    assert screen.queue.asked == [("add", "title", "main")]
    press(screen, Button.DELETE)
    assert rows(screen) == []
    screen.add("title", row(LLAMA, "Q4_K_M", 4.89).files, "main")
    qtbot.waitUntil(lambda: rows(screen) == [ID])


def test_what_was_refused_for_want_of_a_token_is_tried_again(made):
    screen = made(Queue([download(STATE.FAILED, action="token"), download(STATE.FAILED, "Q8_0", action="retry")]))
    screen.resume_waiting_for_token()
    assert screen.queue.asked == [("retry", ID)]


def test_what_has_come_is_told_to_the_library_once(made, qtbot, tmp_path):
    path = named_model("Tiny").write(tmp_path / "tiny.gguf")
    screen = made(Queue([download(STATE.RUNNING)]))
    with qtbot.waitSignal(screen.models_changed):
        screen.context.network.tell(download(STATE.DONE, path=path))
    assert path in {entry.path for entry in screen.context.library.entries()}
    with qtbot.assertNotEmitted(screen.models_changed):
        screen._on_changed([download(STATE.DONE, path=path)])
    with qtbot.waitSignal(screen.use_requested) as used:
        screen.panel.hub.path_use_requested.emit(path)
    assert used.args[0].path == path


def test_a_file_that_is_gone_cannot_be_used_and_that_is_said(made):
    screen = made(Queue())
    screen.panel.hub.path_use_requested.emit(Path("/nowhere/gone.gguf"))
    assert screen.told[0][0] == "use"
