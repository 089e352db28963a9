"""The hub's tabs at work against a hub on this machine: search, choose, download, pause, resume, use, faults."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.context import build_context
from app.downloads.types import DownloadState
from app.hub.tokens import TokenStore
from backends import protocol
from tests.helpers.hub_asking import LLAMA, small_gguf
from tests.helpers.hub_server import HubServer
from tests.helpers.hub_values import picked
from ui import hub_screen
from ui.bridge import Bridge
from ui.hub_screen import HubScreen
from ui.panels.hub_panel import HUB, PICKED
from ui.panels.models_panel import ModelsPanel
from ui.tasks import Tasks
from ui.theme import load_theme

REPO, GATED = "ann/Llama-8B-GGUF", "meta/Gated-GGUF"
TOKEN = "hf_" + "b" * 34
MODEL = small_gguf() + bytes(3_000_000)
PATIENCE_MS = 20_000


@pytest.fixture
def server():
    with HubServer() as made:
        files = {"Llama-8B-Q4_K_M.gguf": MODEL, "Llama-8B-Q8_0.gguf": small_gguf(), "mmproj-F16.gguf": small_gguf()}
        card = {"license": "mit", "base_model": "meta/Llama-8B"}
        text = "# Llama\n\n<b>Good</b> [page](https://e.example)\n"
        made.add_repo(REPO, files, card=card, card_text=text, downloads=500, gguf=LLAMA)
        made.add_repo("bob/Llama-8B-GGUF", {"l-Q4_K_M.gguf": small_gguf()}, card=card, downloads=90)
        made.add_repo("bob/Qwen-GGUF", {"q-Q8_0.gguf": small_gguf()}, downloads=100)
        made.add_repo(GATED, {"g-Q8_0.gguf": small_gguf()}, gated="auto", downloads=10)
        made.add_token(TOKEN, repos=[GATED])
        yield made


@pytest.fixture
def context(server, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    made = build_context()
    made.network._tokens = TokenStore(lambda: None)
    yield made
    made.close()


@pytest.fixture
def screen(qtbot, context):
    bridge, told = Bridge(), []
    tasks = Tasks(lambda words: told.append(words.message))
    panel = ModelsPanel(load_theme("dark"))
    qtbot.addWidget(panel)
    panel.resize(1356, 900)
    panel.show()
    panel.activateWindow()
    made = HubScreen(context, bridge, panel, tasks, lambda key, words: told.append(f"{key}: {words.message}"))
    made.told, made.bridge, made.window, made.wait = told, bridge, panel, tasks.wait_all
    made.start()
    yield made
    made.close()
    tasks.wait_all()
    made.finish()
    bridge.close()
    assert told == []


def texts(screen):
    return [label.text().replace("\u200b", "") for label in screen.window.findChildren(QLabel) if label.isVisible()]


def until(qtbot, is_so):
    qtbot.waitUntil(is_so, timeout=PATIENCE_MS)


def search(qtbot, screen, words):
    screen.window.show_tab(HUB)
    screen.panel.results.search_for(words)
    until(qtbot, screen.panel.results.view.isVisible)


def opened(qtbot, screen, repo=REPO):
    search(qtbot, screen, repo)
    page = screen.panel.view.page
    until(qtbot, lambda: page.repo is not None and page.repo.summary.repo == repo and page.isVisible())
    until(qtbot, lambda: all(page.table.quantizations.fit(row.key) is not None for row in page.repo.rows))
    return page


def download_of(screen, key="Q4_K_M"):
    return screen.panel.view.page.table.quantizations.download(key)


def is_state(screen, state, key="Q4_K_M"):
    return lambda: (found := download_of(screen, key)) is not None and found.state is state


# ------------------------------------------------------------------------------------------ the whole way


def test_search_choose_download_pause_resume_use(screen, server, context, qtbot, allow_log):
    search(qtbot, screen, "llama")
    rows = screen.panel.results.view.rows
    assert {rows.key_at(row) for row in range(rows.rowCount())} == {REPO, "bob/Llama-8B-GGUF"}
    place = screen.panel.results.view.visualRect(rows.index(rows.row_of(REPO))).center()
    qtbot.mouseClick(screen.panel.results.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    page = screen.panel.view.page
    until(qtbot, lambda: page.isVisible() and page.table.quantizations.fit("Q4_K_M") is not None)
    assert page.table.quantizations.keys() == ["Q8_0", "Q4_K_M"]
    server.fault("throttle", "GET cdn:*Q4_K_M.gguf", value=1_000_000)
    page.choose("Q4_K_M")
    page.table.setFocus()
    qtbot.keyClick(page.table, Qt.Key.Key_Return)
    until(qtbot, lambda: is_state(screen, DownloadState.RUNNING)() and download_of(screen).done_bytes > 0)
    assert screen.panel.strip.isVisible()
    qtbot.keyClick(page.table, Qt.Key.Key_Space)
    until(qtbot, is_state(screen, DownloadState.PAUSED))
    assert download_of(screen).done_bytes < download_of(screen).total_bytes
    server.clear_faults()
    qtbot.keyClick(page.table, Qt.Key.Key_Space)
    until(qtbot, is_state(screen, DownloadState.DONE))
    assert [file.path for file in download_of(screen).files] == ["Llama-8B-Q4_K_M.gguf", "mmproj-F16.gguf"]
    assert download_of(screen).path.read_bytes() == MODEL
    until(qtbot, lambda: page.table.quantizations.is_here("Q4_K_M"))
    with qtbot.waitSignal(screen.use_requested, timeout=PATIENCE_MS) as used:
        qtbot.keyClick(page.table, Qt.Key.Key_Return)
    assert used.args[0].path.name == "Llama-8B-Q4_K_M.gguf"
    assert used.args[0].key in {entry.key for entry in context.library.entries()}


# ------------------------------------------------------------------------------------------ searching


def test_a_pasted_link_leads_straight_to_its_row(screen, server, qtbot):
    search(qtbot, screen, f"{server.endpoint}/{REPO}/blob/main/Llama-8B-Q8_0.gguf")
    page = screen.panel.view.page
    until(qtbot, page.isVisible)
    assert page.repo.summary.repo == REPO
    assert page.table.chosen_key == "Q8_0"
    assert screen.panel.repo == REPO
    assert screen.panel.results.view.rows.key_at(0) == REPO


def test_an_address_of_something_else_is_told(screen, server, qtbot):
    screen.window.show_tab(HUB)
    screen.panel.results.search_for("https://example.com/a/b")
    until(qtbot, lambda: any("This address is not that of a model" in text for text in texts(screen)))


def test_only_the_newest_search_counts(screen, qtbot):
    screen.window.show_tab(HUB)
    for words in ("llama", "nothing at all", "qwen"):
        screen.panel.results.search_for(words)
    until(qtbot, screen.panel.results.view.isVisible)
    assert screen.panel.results.view.rows.key_at(0) == "bob/Qwen-GGUF"


def test_a_hub_that_is_gone_and_comes_back(screen, server, qtbot):
    server.fault("refused", "api:*")
    screen.window.show_tab(HUB)
    screen.panel.results.search_for("llama")
    state = screen.panel.results._state
    until(qtbot, lambda: state.isVisible() and state._button.text() == "Try again")
    server.clear_faults()
    state._button.click()
    until(qtbot, screen.panel.results.view.isVisible)
    server.fault("refused", "api:*")
    screen.panel.results.refresh_requested.emit(screen.panel.results.query)
    until(qtbot, screen.panel.results._stale.isVisible)
    assert screen.panel.results.view.isVisible()


def test_a_pause_that_the_hub_asks_for_is_counted_down(screen, server, qtbot):
    server.fault("http_429_seconds", "api:*", value=43)
    screen.window.show_tab(HUB)
    screen.panel.results.search_for("llama")
    until(qtbot, lambda: any("It can be asked again in" in text for text in texts(screen)))


def test_a_repo_that_does_not_answer_can_be_tried_again(screen, server, qtbot):
    search(qtbot, screen, "llama")
    server.fault("refused", "api:*")
    screen.panel.repo_requested.emit(REPO, "", False)
    state = screen.panel.view._state
    until(qtbot, lambda: state.isVisible() and state._button.text() == "Try again")
    server.clear_faults()
    state._button.click()
    until(qtbot, screen.panel.view.page.isVisible)


# ------------------------------------------------------------------------------------------ one repo


def test_publishers_card_and_figures_of_a_repo(screen, qtbot):
    page = opened(qtbot, screen)
    page.publishers.button.click()
    until(qtbot, page.publishers.table.isVisible)
    model = page.publishers.publishers
    assert [model.repo_at(row) for row in range(model.rowCount())] == [REPO, "bob/Llama-8B-GGUF"]
    page.card_button.click()
    assert screen.panel.view.card.text.toPlainText() == "Llama\n\nGood page"
    assert "MIT licence" in page._facts.text()
    loaded = protocol.ModelLoaded(backend="llama_cpp", model_path="x", context_tokens=1)
    screen.bridge.engine_event.emit(loaded)
    screen.wait()
    assert page.table.quantizations.fit("Q4_K_M") is not None


def test_headers_that_cannot_be_read_end_in_unknown(screen, server, qtbot):
    server.fault("http_404", "GET cdn:*Q8_0.gguf")
    server.fault("http_404", "GET resolve:*Q8_0.gguf")
    search(qtbot, screen, REPO)
    page = screen.panel.view.page
    until(qtbot, lambda: page.isVisible() and page.repo.row("Q8_0") is not None)
    until(qtbot, lambda: (row := page.table.quantizations.row("Q8_0")) is not None and row.state == "failed")
    assert page.table.quantizations.action_of_key("Q8_0").kind == "download"


def test_a_link_is_opened_by_the_system(screen, qtbot, monkeypatch):
    opened_links = []
    monkeypatch.setattr(hub_screen.QDesktopServices, "openUrl", lambda url: opened_links.append(url.toString()))
    screen.panel.link_confirmed.emit("https://e.example/a b")
    screen.panel.link_confirmed.emit("https://e.example/")
    assert opened_links[-1] == "https://e.example/"


def test_picks_are_worked_out_for_this_machine(screen, qtbot):
    screen.window.show_tab(PICKED)
    until(qtbot, lambda: screen.panel.picks.view.rows.rowCount() > 0 or "Search the hub" in shown_buttons(screen))
    assert picked()


def shown_buttons(screen):
    return [found.text() for found in screen.window.findChildren(QPushButton) if found.isVisible()]


# ------------------------------------------------------------------------------------------ gates


def test_a_gate_opens_with_a_token_that_is_kept_for_this_session(screen, context, server, qtbot):
    screen.window.show_tab(HUB)
    screen.panel.results.search_for(GATED)
    card = screen.panel.view.page.token
    until(qtbot, card.isVisible)
    until(qtbot, lambda: "Kept for this session only: no keyring here." in texts(screen))
    qtbot.keyClicks(card.field, TOKEN)
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    until(qtbot, lambda: not card.isVisible())
    assert context.network.tokens.get(server.endpoint) == TOKEN
    assert screen.panel.view.page.repo.access == "granted"
    assert server.leaked_tokens() == []
    screen.panel.token_forgotten.emit()
    screen.wait()
    assert context.network.tokens.get(server.endpoint) is None


def test_what_cannot_be_a_token_is_said_on_the_card(screen, qtbot):
    screen.window.show_tab(HUB)
    screen.panel.results.search_for(GATED)
    card = screen.panel.view.page.token
    until(qtbot, card.isVisible)
    card.field.setText("no token at all")
    card.again.click()
    until(qtbot, lambda: any(text.startswith("This cannot be a token") for text in texts(screen)))
    assert card.field.isEnabled()


def test_a_refused_download_goes_on_once_there_is_a_token(screen, context, qtbot):
    search(qtbot, screen, GATED)
    page = screen.panel.view.page
    until(qtbot, lambda: page.isVisible() and page.repo.summary.repo == GATED)
    page.choose("Q8_0")
    page.detail.button.click()
    until(qtbot, is_state(screen, DownloadState.FAILED, "Q8_0"))
    assert download_of(screen, "Q8_0").action == "token"
    until(qtbot, lambda: page.detail.download.main.text() == "Give a token…")  # the row follows four times a second
    page.detail.download.main.click()
    until(qtbot, page.token.isVisible)
    page.token.field.setText(TOKEN)
    page.token.again.click()
    until(qtbot, is_state(screen, DownloadState.DONE, "Q8_0"))


def test_a_token_that_the_hub_does_not_know_shows_the_gate(screen, context, server, qtbot):
    context.network.tokens.keep(server.endpoint, "hf_" + "x" * 34)
    screen.panel.repo_requested.emit(GATED, "", False)
    screen.window.show_tab(HUB)
    until(qtbot, lambda: screen.panel.view.gate.isVisible() or screen.panel.view.page.token.isVisible())
