"""The downloads behind the panel: what the last run left, every button, and what the library is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.context import build_context
from app.downloads.types import DownloadState
from app.downloads.updates import Update
from app.errors import Words
from app.hub.hub_errors import HubError, HubErrorKind
from app.hub.update_check import UpdateAnswer
from app.models.library import LibraryError
from app.models.removal import Deletion
from tests.helpers.gguf_files import named_model
from tests.helpers.hub_values import LLAMA, download, row
from ui import downloads_screen
from ui.downloads_screen import DownloadsScreen
from ui.models.download_words import Button
from ui.panels.models_panel import ModelsPanel
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

STATE = DownloadState
ID = f"{LLAMA}:Q4_K_M"


class Queue:
    """Remembers what it was asked."""

    def __init__(self, downloads=(), leftovers=(), notices=()):
        self.asked = []
        self._downloads, self._leftovers, self.notices = list(downloads), list(leftovers), tuple(notices)
        self.gone = []

    def downloads(self):
        return self._downloads

    def find_leftovers(self):
        return self._leftovers

    def forget_missing(self):
        return self.gone

    def add(self, title, files, branch="main"):
        self.asked.append(("add", title, branch))
        return download(STATE.QUEUED, part=0.0)

    def __getattr__(self, name):
        return lambda download_id, **named: self.asked.append((name, download_id, *named.values()))


class Network:
    hub = None

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
    for button in (Button.PAUSE, Button.RESUME, Button.RETRY, Button.NOW, Button.CANCEL):
        press(screen, button)
    press(screen, Button.REMOVE, f"{LLAMA}:Q8_0")
    press(screen, Button.DELETE)
    press(screen, Button.PAUSE, "unknown")
    assert screen.queue.asked == [
        ("pause", ID),
        ("resume", ID),
        ("resume", ID),
        ("try_now", ID),
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
    qtbot.waitUntil(lambda: rows(screen) == [f"{LLAMA}:Q8_0"], timeout=PATIENCE_MS)


def test_what_is_left_of_a_cancelled_one_is_deleted(made):
    screen = made(Queue([download(STATE.CANCELLED)]))
    press(screen, Button.DELETE)
    assert screen.queue.asked == [("cancel", ID, True), ("remove", ID)]
    assert rows(screen) == []


def test_what_is_asked_for_is_added_and_shown_at_once(made, qtbot):
    screen = made(Queue())
    screen.add("title", row(LLAMA, "Q4_K_M", 4.89).files, "main")
    qtbot.waitUntil(lambda: rows(screen) == [ID], timeout=PATIENCE_MS)
    assert screen.queue.asked == [("add", "title", "main")]
    press(screen, Button.DELETE)
    assert rows(screen) == []
    screen.add("title", row(LLAMA, "Q4_K_M", 4.89).files, "main")
    qtbot.waitUntil(lambda: rows(screen) == [ID], timeout=PATIENCE_MS)


def test_what_was_refused_for_want_of_a_token_is_tried_again(made):
    screen = made(Queue([download(STATE.FAILED, action="token"), download(STATE.FAILED, "Q8_0", action="retry")]))
    screen.resume_waiting_for_token()
    assert screen.queue.asked == [("retry", ID)]


def test_what_has_come_is_told_to_the_library_once(made, qtbot, tmp_path):
    path = named_model("Tiny").write(tmp_path / "tiny.gguf")
    screen = made(Queue([download(STATE.RUNNING)]))
    with qtbot.waitSignal(screen.models_changed, timeout=PATIENCE_MS):
        screen.context.network.tell(download(STATE.DONE, path=path))
    assert path in {entry.path for entry in screen.context.library.entries()}
    with qtbot.assertNotEmitted(screen.models_changed):
        screen._on_changed([download(STATE.DONE, path=path)])
    with qtbot.waitSignal(screen.use_requested, timeout=PATIENCE_MS) as used:
        screen.panel.hub.path_use_requested.emit(path)
    assert used.args[0].path == path


def test_a_file_that_is_gone_cannot_be_used_and_that_is_said(made):
    screen = made(Queue())
    screen.panel.hub.path_use_requested.emit(Path("/nowhere/gone.gguf"))
    assert screen.told[0][0] == "use"


# ------------------------------------------------------------------------------------------ newer versions


OTHER = "f" * 40


def newer_files(found):
    return tuple(msgspec.structs.replace(one, revision=OTHER, sha256="e" * 64, etag="e" * 64) for one in found.files)


def shown(screen, number=0):
    """Return the words and the button of a row."""
    row = screen.panel.hub.downloads.rows[number]
    return row._words.text(), row.more.text()


def answering(monkeypatch, state=Update.CHANGED, error=None):
    """Let the hub answer so; returns what it was asked."""
    asked = []

    def check(_hub, files, _cancel):
        asked.append(files)
        if error is not None:
            raise error
        return UpdateAnswer(state, files, OTHER, newer_files(download(STATE.DONE)))

    monkeypatch.setattr(downloads_screen, "check_update", check)
    return asked


def test_the_hub_is_asked_only_when_a_person_asks(made, monkeypatch):
    asked = answering(monkeypatch, Update.CURRENT)
    screen = made(Queue([download(STATE.DONE)]))
    screen.refresh()
    assert asked == []
    press(screen, Button.CHECK)
    assert asked == [download(STATE.DONE).files]
    assert shown(screen)[0].startswith("Up to date")


def test_a_newer_version_comes_beside_the_old_one_which_can_be_deleted_then(made, monkeypatch, qtbot):
    answering(monkeypatch)
    old = download(STATE.DONE)
    screen = made(Queue([old]))
    press(screen, Button.CHECK)
    assert shown(screen)[1] == "Download the newer version"
    press(screen, Button.NEWER)
    assert screen.queue.asked[-1] == ("add", f"{LLAMA}:Q4_K_M", "main")
    files = newer_files(old)
    screen._on_changed([download(STATE.RUNNING, download_id="new", files=files)])
    assert shown(screen)[0] == "The newer version is on its way (commit fffffff)."
    screen._on_changed([download(STATE.DONE, download_id="new", files=files, path=None)])
    assert shown(screen)[1] == "Delete this older one…"


def test_why_there_is_no_answer_is_said_on_the_row_and_can_be_asked_again(made, monkeypatch):
    error = HubError(HubErrorKind.RATE_LIMITED, "huggingface.co", retry_after_s=43)
    answering(monkeypatch, error=error)
    screen = made(Queue([download(STATE.DONE)]))
    press(screen, Button.CHECK)
    assert shown(screen) == (error.words.message, "Check for a newer version")


class OneModel:
    """A library that has one model and remembers what it was asked."""

    def __init__(self, error=None):
        self.asked, self._error = [], error

    def delete_preview(self, key, in_use):
        self.asked.append(("preview", key, in_use))
        return Deletion((Path(key),), 2**30, True)

    def delete(self, key, *, forever, in_use, expected):
        self.asked.append(("delete", key, forever, expected))
        if self._error is not None:
            raise self._error
        return expected

    def close(self):
        pass


@pytest.mark.parametrize("button", [Button.TRASH, Button.FOREVER])
def test_an_older_version_is_deleted_after_a_question(made, qtbot, button):
    old = download(STATE.DONE)
    screen = made(Queue([old]))
    screen.context._library = library = OneModel()
    press(screen, Button.DELETE_OLD)
    confirm = screen.panel.hub.downloads.rows[0].confirm
    assert not confirm.isHidden()
    with qtbot.waitSignal(screen.models_changed, timeout=PATIENCE_MS):
        press(screen, button)
    preview = Deletion((old.path,), 2**30, True)
    assert library.asked == [
        ("preview", str(old.path), ()),
        ("delete", str(old.path), button is Button.FOREVER, preview),
    ]
    assert screen.queue.asked == [("remove", ID)]
    assert rows(screen) == []


def test_a_deletion_that_fails_is_told_and_changes_nothing(made):
    screen = made(Queue([download(STATE.DONE)]))
    screen.context._library = OneModel(LibraryError("It is being downloaded just now."))
    press(screen, Button.DELETE_OLD)
    press(screen, Button.TRASH)
    assert screen.told == [("delete", Words("It is being downloaded just now."))]
    assert rows(screen) == [ID]


def test_what_was_deleted_elsewhere_leaves_the_list(made):
    screen = made(Queue([download(STATE.DONE), download(STATE.RUNNING, "Q8_0")]))
    screen.queue.gone = [ID]
    screen.refresh()
    assert rows(screen) == [f"{LLAMA}:Q8_0"]
