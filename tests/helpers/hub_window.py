"""What tests of the hub's tabs at work share: a hub on this machine, the tabs that ask it, and hands that press."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLabel

from app.context import AppContext, build_context
from app.downloads.types import Download, DownloadState
from app.errors import Words
from app.hub.tokens import TokenStore
from tests.helpers.hub_asking import LLAMA, small_gguf
from tests.helpers.hub_server import HubServer
from ui.bridge import Bridge
from ui.hub_screen import HubScreen
from ui.panels.hub_page import HubPage
from ui.panels.hub_panel import HUB
from ui.panels.models_panel import ModelsPanel
from ui.tasks import Tasks
from ui.theme import load_theme

REPO, GATED = "ann/Llama-8B-GGUF", "meta/Gated-GGUF"
TOKEN = "hf_" + "b" * 34
MODEL = small_gguf() + bytes(3_000_000)
PATIENCE_MS = 60_000  # of a machine that is busy with much else


@contextmanager
def served_repos() -> Iterator[HubServer]:
    """Give a hub with some repos, one of them gated."""
    with HubServer() as made:
        files = {"Llama-8B-Q4_K_M.gguf": MODEL, "Llama-8B-Q8_0.gguf": small_gguf(), "mmproj-F16.gguf": small_gguf()}
        card: dict[str, Any] = {"license": "mit", "base_model": "meta/Llama-8B"}
        text = "# Llama\n\n<b>Good</b> [page](https://e.example)\n"
        made.add_repo(REPO, files, card=card, card_text=text, downloads=500, gguf=LLAMA)
        made.add_repo("bob/Llama-8B-GGUF", {"l-Q4_K_M.gguf": small_gguf()}, card=card, downloads=90)
        made.add_repo("bob/Qwen-GGUF", {"q-Q8_0.gguf": small_gguf()}, downloads=100)
        made.add_repo(GATED, {"g-Q8_0.gguf": small_gguf()}, gated="auto", downloads=10)
        made.add_token(TOKEN, repos=[GATED])
        yield made


@contextmanager
def asking_context(server: HubServer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[AppContext]:
    """Give the program's parts, which ask this hub and know no keyring."""
    monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    made = build_context()
    made.network._tokens = TokenStore(lambda: None)
    yield made
    made.close()


class OpenHub:
    """The hub's tabs in their panel.

    Attributes:
        screen: what is behind them.
        panel: the hub's parts.
        window: the whole panel.
        told: the notices.
    """

    def __init__(self, qtbot: Any, context: AppContext) -> None:
        self.told: list[str] = []
        self.bridge = Bridge()
        self._tasks = Tasks(lambda words: self.told.append(words.message))
        self.window = ModelsPanel(load_theme("dark"))
        qtbot.addWidget(self.window)
        self.window.resize(1356, 900)
        self.window.show()
        self.window.activateWindow()
        qtbot.waitUntil(self.window.isActiveWindow, timeout=PATIENCE_MS)
        self.screen = HubScreen(
            context,
            self.bridge,
            self.window,
            self._tasks,
            lambda key, words: self.told.append(f"{key}: {words.message}"),
        )
        self.panel = self.screen.panel
        self.screen.start()

    @property
    def page(self) -> HubPage:
        """One repo."""
        return self.panel.view.page

    def _tell(self, key: str, words: Words) -> None:
        self.told.append(f"{key}: {words.message}")

    def close(self) -> None:
        """End everything; nothing may have been told."""
        self.screen.close()
        self._tasks.wait_all()
        self.screen.finish()
        self.bridge.close()
        assert self.told == []


def texts(hub: OpenHub) -> list[str]:
    """Return every word that is seen."""
    return [label.text().replace("\u200b", "") for label in hub.window.findChildren(QLabel) if label.isVisible()]


def until(qtbot: Any, is_so: Callable[[], bool], told: Callable[[], object] = lambda: "") -> None:
    """Wait for something to become true; `told` says what there was instead."""
    try:
        qtbot.waitUntil(is_so, timeout=PATIENCE_MS)
    except qtbot.TimeoutError as error:
        raise AssertionError(f"{error}: {told()}") from error


def search(qtbot: Any, hub: OpenHub, words: str) -> None:
    """Search, and wait for the list."""
    hub.window.show_tab(HUB)
    hub.panel.results.search_for(words)
    until(qtbot, hub.panel.results.view.isVisible)


def opened(qtbot: Any, hub: OpenHub, repo: str = REPO) -> HubPage:
    """Open a repo and wait until it is known what fits."""
    search(qtbot, hub, repo)
    page = hub.page
    until(qtbot, lambda: page.repo is not None and page.repo.summary.repo == repo and page.isVisible())
    rows = page.repo.rows if page.repo is not None else ()
    until(qtbot, lambda: all(page.table.quantizations.fit(row.key) is not None for row in rows))
    return page


def download_of(hub: OpenHub, key: str = "Q4_K_M") -> Download | None:
    """Return the download that a row shows."""
    return hub.page.table.quantizations.download(key)


def until_state(qtbot: Any, hub: OpenHub, state: DownloadState, key: str = "Q4_K_M") -> None:
    """Wait until a row's download is in this state; where it never is, all that is known of it is told."""
    until(qtbot, is_state(hub, state, key), lambda: (hub.page.table.chosen_key, download_of(hub, key), texts(hub)))


def is_state(hub: OpenHub, state: DownloadState, key: str = "Q4_K_M") -> Callable[[], bool]:
    """Return whether a row's download is in this state, to be waited for."""
    return lambda: (found := download_of(hub, key)) is not None and found.state is state


def press_download(qtbot: Any, page: HubPage, key: str) -> None:
    """Press the row's button as soon as it says Download, as a person would."""
    until(qtbot, lambda: page.table.quantizations.row_of(key) is not None)
    page.choose(key)
    rows, button = page.table.quantizations, page.detail.button
    # one look: between two of them the row may be placed anew
    until(
        qtbot,
        lambda: (
            (page.table.chosen_key, rows.action_of_key(key).kind, button.text()) == (key, "download", "Download")
            and button.isVisible()
            and button.isEnabled()
        ),
    )
    button.click()
