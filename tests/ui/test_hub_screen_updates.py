"""The hub's tabs at work: newer versions of what was downloaded, and a keyring that waits for a person."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QPushButton

from app.downloads.types import DownloadState
from app.hub.keyring_call import KeyringCalls
from app.hub.tokens import TokenPlace, TokenStore
from tests.helpers.hub_asking import small_gguf
from tests.helpers.hub_window import (
    GATED,
    PATIENCE_MS,
    REPO,
    TOKEN,
    OpenHub,
    asking_context,
    download_of,
    opened,
    press_download,
    served_repos,
    texts,
    until,
    until_state,
)
from ui.panels.hub_panel import HUB


@pytest.fixture
def server():
    with served_repos() as made:
        yield made


@pytest.fixture
def context(server, monkeypatch, tmp_path):
    with asking_context(server, monkeypatch, tmp_path) as made:
        yield made


@pytest.fixture
def hub(qtbot, context):
    made = OpenHub(qtbot, context)
    yield made
    made.close()


# ------------------------------------------------------------------------------------------ a silent keyring


class LockedKeyring:
    """A keyring whose window waits for a person."""

    def __init__(self):
        self.unlocked = threading.Event()
        self.threads = []

    def read(self, *_arguments):
        self.threads.append(threading.current_thread())
        assert self.unlocked.wait(PATIENCE_MS / 1000)

    write = delete = read


@pytest.fixture
def keyring():
    made = LockedKeyring()
    yield made
    made.unlocked.set()
    for thread in made.threads:
        thread.join()


def test_a_keyring_that_asks_a_person_stops_no_window(hub, context, keyring, qtbot):
    context.network._tokens = TokenStore(lambda: keyring)  # waits half a minute
    ticks = []
    timer = QTimer()
    timer.timeout.connect(lambda: ticks.append(len(keyring.threads)))
    timer.start(1)
    hub.panel.token_given.emit(TOKEN)
    until(qtbot, lambda: ticks.count(1) > 20)  # the keyring is being asked, and the window goes on
    timer.stop()
    search_box = hub.panel.results
    hub.window.show_tab(HUB)
    assert search_box.isVisible()


def test_a_keyring_that_does_not_answer_is_told_on_the_card(hub, context, keyring, qtbot):
    context.network._tokens = TokenStore(lambda: keyring, KeyringCalls(limit_s=0.05))
    hub.window.show_tab(HUB)
    hub.panel.results.search_for(GATED)
    card = hub.page.token
    until(qtbot, card.isVisible)
    until(qtbot, lambda: "The system's keyring did not answer: kept for this run only." in texts(hub))
    qtbot.keyClicks(card.field, TOKEN)
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    until(qtbot, lambda: not card.isVisible())
    assert context.network.tokens.place(context.network.hub.endpoint) is TokenPlace.SESSION


# ------------------------------------------------------------------------------------------ newer versions


def row_at(hub, number):
    """Return a row of the list of downloads; None as long as there are not so many."""
    rows = hub.panel.downloads.rows
    return rows[number] if number < len(rows) else None


def says(hub, number, words):
    return lambda: (row := row_at(hub, number)) is not None and row.more.isEnabled() and row.more.text() == words


def test_a_newer_version_is_found_downloaded_and_takes_the_old_one_s_place(hub, server, context, qtbot):
    page = opened(qtbot, hub)
    press_download(qtbot, page, "Q8_0")
    until_state(qtbot, hub, DownloadState.DONE, "Q8_0")
    old = download_of(hub, "Q8_0").path
    until(qtbot, lambda: old in {entry.path for entry in context.library.entries()})
    until(qtbot, hub.panel.strip.isVisible)
    hub.panel.strip.click()
    asked = len(server.seen("api"))
    until(qtbot, says(hub, 0, "Check for a newer version"))
    assert len(server.seen("api")) == asked
    row_at(hub, 0).more.click()
    until(qtbot, lambda: any(text.startswith("Up to date: this is the newest version") for text in texts(hub)))
    server.routes.repos[REPO].commit({"Llama-8B-Q8_0.gguf": small_gguf() + bytes(64)})
    row_at(hub, 0).more.click()
    until(qtbot, says(hub, 0, "Download the newer version"))
    row_at(hub, 0).more.click()
    until(qtbot, says(hub, 0, "Delete this older one…"))
    new = row_at(hub, 1).download.path
    assert (old.exists(), new.exists()) == (True, True)
    row_at(hub, 0).more.click()
    confirm = row_at(hub, 0).confirm
    until(qtbot, confirm.isVisible)
    confirm.findChild(QPushButton, "answer_forever").click()
    until(qtbot, lambda: not old.exists())
    until(qtbot, lambda: len(hub.panel.downloads.rows) == 1)
    assert new.read_bytes() == small_gguf() + bytes(64)


def test_without_a_network_the_row_says_why_and_can_be_asked_again(hub, server, qtbot):
    page = opened(qtbot, hub)
    press_download(qtbot, page, "Q8_0")
    until_state(qtbot, hub, DownloadState.DONE, "Q8_0")
    until(qtbot, hub.panel.strip.isVisible)
    hub.panel.strip.click()
    until(qtbot, says(hub, 0, "Check for a newer version"))
    server.fault("refused", "api:*")
    row_at(hub, 0).more.click()
    until(qtbot, lambda: "127.0.0.1" in row_at(hub, 0)._words.text())
    server.clear_faults()
    until(qtbot, says(hub, 0, "Check for a newer version"))
    row_at(hub, 0).more.click()
    until(qtbot, lambda: row_at(hub, 0)._words.text().startswith("Up to date"))
