"""The hub's tabs at work against a hub on this machine: search, choose, download, pause, resume, use, faults."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.downloads.types import DownloadState
from backends import protocol
from tests.helpers.hub_values import picked
from tests.helpers.hub_window import (
    GATED,
    MODEL,
    PATIENCE_MS,
    REPO,
    TOKEN,
    OpenHub,
    asking_context,
    download_of,
    is_state,
    opened,
    press_download,
    search,
    served_repos,
    texts,
    until,
    until_state,
)
from ui import hub_screen
from ui.panels.hub_panel import HUB, PICKED


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


# ------------------------------------------------------------------------------------------ the whole way


def test_search_choose_download_pause_resume_use(hub, server, context, qtbot, allow_log):
    search(qtbot, hub, "llama")
    rows = hub.panel.results.view.rows
    assert {rows.key_at(row) for row in range(rows.rowCount())} == {REPO, "bob/Llama-8B-GGUF"}
    place = hub.panel.results.view.visualRect(rows.index(rows.row_of(REPO))).center()
    qtbot.mouseClick(hub.panel.results.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    page = hub.page
    until(qtbot, lambda: page.isVisible() and page.table.quantizations.fit("Q4_K_M") is not None)
    assert page.table.quantizations.keys() == ["Q8_0", "Q4_K_M"]
    server.fault("stall_in_body", "GET cdn:*Q4_K_M.gguf", value=1_000_000)  # it cannot be over before it is paused
    page.choose("Q4_K_M")
    page.table.setFocus()
    until(qtbot, lambda: page.table.quantizations.action_of_key("Q4_K_M").kind == "download")
    qtbot.keyClick(page.table, Qt.Key.Key_Return)
    until(qtbot, lambda: is_state(hub, DownloadState.RUNNING)() and download_of(hub).done_bytes > 0)
    until(qtbot, hub.panel.strip.isVisible)
    qtbot.keyClick(page.table, Qt.Key.Key_Space)
    until_state(qtbot, hub, DownloadState.PAUSED)
    assert download_of(hub).done_bytes < download_of(hub).total_bytes
    server.clear_faults()
    qtbot.keyClick(page.table, Qt.Key.Key_Space)
    until_state(qtbot, hub, DownloadState.DONE)
    assert [file.path for file in download_of(hub).files] == ["Llama-8B-Q4_K_M.gguf", "mmproj-F16.gguf"]
    assert download_of(hub).path.read_bytes() == MODEL
    until(qtbot, lambda: page.table.quantizations.is_here("Q4_K_M"))
    with qtbot.waitSignal(hub.screen.use_requested, timeout=PATIENCE_MS) as used:
        qtbot.keyClick(page.table, Qt.Key.Key_Return)
    assert used.args[0].path.name == "Llama-8B-Q4_K_M.gguf"
    assert used.args[0].key in {entry.key for entry in context.library.entries()}


# ------------------------------------------------------------------------------------------ searching


def test_a_pasted_link_leads_straight_to_its_row(hub, server, qtbot):
    search(qtbot, hub, f"{server.endpoint}/{REPO}/blob/main/Llama-8B-Q8_0.gguf")
    page = hub.page
    until(qtbot, lambda: page.isVisible() and page.repo is not None and page.table.chosen_key == "Q8_0")
    assert page.repo.summary.repo == REPO
    assert hub.panel.repo == REPO
    assert hub.panel.results.view.rows.key_at(0) == REPO


def test_an_address_of_something_else_is_told(hub, server, qtbot):
    hub.window.show_tab(HUB)
    hub.panel.results.search_for("https://example.com/a/b")
    until(qtbot, lambda: any("This address is not that of a model" in text for text in texts(hub)))


def test_only_the_newest_search_counts(hub, qtbot):
    hub.window.show_tab(HUB)
    for words in ("llama", "nothing at all", "qwen"):
        hub.panel.results.search_for(words)
    view = hub.panel.results.view
    until(qtbot, lambda: view.isVisible() and view.rows.rowCount() > 0 and view.rows.key_at(0) == "bob/Qwen-GGUF")


def test_a_hub_that_is_gone_and_comes_back(hub, server, qtbot):
    server.fault("refused", "api:*")
    hub.window.show_tab(HUB)
    hub.panel.results.search_for("llama")
    state = hub.panel.results._state
    until(qtbot, lambda: state.isVisible() and state._button.text() == "Try again")
    server.clear_faults()
    state._button.click()
    until(qtbot, hub.panel.results.view.isVisible)
    server.fault("refused", "api:*")
    hub.panel.results.refresh_requested.emit(hub.panel.results.query)
    until(qtbot, lambda: hub.panel.results._stale.isVisible() and hub.panel.results.view.isVisible())


def test_a_pause_that_the_hub_asks_for_is_counted_down(hub, server, qtbot):
    server.fault("http_429_seconds", "api:*", value=43)
    hub.window.show_tab(HUB)
    hub.panel.results.search_for("llama")
    until(qtbot, lambda: any("It can be asked again in" in text for text in texts(hub)))


def test_a_repo_that_does_not_answer_can_be_tried_again(hub, server, qtbot):
    search(qtbot, hub, "llama")
    server.fault("refused", "api:*")
    hub.panel.repo_requested.emit(REPO, "", False)
    state = hub.panel.view._state
    until(qtbot, lambda: state.isVisible() and state._button.text() == "Try again")
    server.clear_faults()
    state._button.click()
    until(qtbot, hub.page.isVisible)


# ------------------------------------------------------------------------------------------ one repo


def test_publishers_card_and_figures_of_a_repo(hub, qtbot):
    page = opened(qtbot, hub)
    page.publishers.button.click()
    model = page.publishers.publishers
    until(qtbot, lambda: page.publishers.table.isVisible() and model.rowCount() == 2)
    assert [model.repo_at(row) for row in range(model.rowCount())] == [REPO, "bob/Llama-8B-GGUF"]
    page.card_button.click()
    assert hub.panel.view.card.text.toPlainText() == "Llama\n\nGood page"
    assert "MIT licence" in page._facts.text()
    loaded = protocol.ModelLoaded(backend="llama_cpp", model_path="x", context_tokens=1)
    hub.bridge.engine_event.emit(loaded)
    until(qtbot, lambda: page.table.quantizations.fit("Q4_K_M") is not None)


def test_headers_that_cannot_be_read_end_in_unknown(hub, server, qtbot):
    server.fault("http_404", "GET cdn:*Q8_0.gguf")
    server.fault("http_404", "GET resolve:*Q8_0.gguf")
    search(qtbot, hub, REPO)
    page = hub.page
    until(qtbot, lambda: page.isVisible() and page.repo.row("Q8_0") is not None)
    until(qtbot, lambda: (row := page.table.quantizations.row("Q8_0")) is not None and row.state == "failed")
    assert page.table.quantizations.action_of_key("Q8_0").kind == "download"


def test_a_link_is_opened_by_the_system(hub, qtbot, monkeypatch):
    opened_links = []
    monkeypatch.setattr(hub_screen.QDesktopServices, "openUrl", lambda url: opened_links.append(url.toString()))
    hub.panel.link_confirmed.emit("https://e.example/a b")
    hub.panel.link_confirmed.emit("https://e.example/")
    assert opened_links[-1] == "https://e.example/"


def test_picks_are_worked_out_for_this_machine(hub, qtbot):
    hub.window.show_tab(PICKED)
    until(qtbot, lambda: hub.panel.picks.view.rows.rowCount() > 0 or "Search the hub" in shown_buttons(hub))
    assert picked()


def shown_buttons(hub):
    return [found.text() for found in hub.window.findChildren(QPushButton) if found.isVisible()]


# ------------------------------------------------------------------------------------------ gates


def test_a_gate_opens_with_a_token_that_is_kept_for_this_session(hub, context, server, qtbot):
    hub.window.show_tab(HUB)
    hub.panel.results.search_for(GATED)
    card = hub.page.token
    until(qtbot, card.isVisible)
    until(qtbot, lambda: "Kept for this session only: no keyring here." in texts(hub))
    qtbot.keyClicks(card.field, TOKEN)
    qtbot.keyClick(card.field, Qt.Key.Key_Return)
    until(qtbot, lambda: not card.isVisible())
    assert context.network.tokens.get(server.endpoint) == TOKEN
    assert hub.page.repo.access == "granted"
    assert server.leaked_tokens() == []
    hub.panel.token_forgotten.emit()
    until(qtbot, lambda: context.network.tokens.get(server.endpoint) is None)


def test_what_cannot_be_a_token_is_said_on_the_card(hub, qtbot):
    hub.window.show_tab(HUB)
    hub.panel.results.search_for(GATED)
    card = hub.page.token
    until(qtbot, card.isVisible)
    until(qtbot, card.again.isEnabled)
    card.field.setText("no token at all")
    card.again.click()
    until(qtbot, lambda: any(text.startswith("This cannot be a token") for text in texts(hub)))
    until(qtbot, card.field.isEnabled)


def test_a_refused_download_goes_on_once_there_is_a_token(hub, context, qtbot):
    search(qtbot, hub, GATED)
    page = hub.page
    until(qtbot, lambda: page.isVisible() and page.repo.summary.repo == GATED)
    press_download(qtbot, page, "Q8_0")
    until_state(qtbot, hub, DownloadState.FAILED, "Q8_0")
    assert download_of(hub, "Q8_0").action == "token"
    main = page.detail.download.main
    until(qtbot, lambda: main.isVisible() and main.text() == "Give a token…")  # the row follows four times a second
    main.click()
    until(qtbot, lambda: page.token.isVisible() and page.token.again.isEnabled())
    page.token.field.setText(TOKEN)
    page.token.again.click()
    until_state(qtbot, hub, DownloadState.DONE, "Q8_0")


def test_a_token_that_the_hub_does_not_know_shows_the_gate(hub, context, server, qtbot):
    context.network.tokens.keep(server.endpoint, "hf_" + "x" * 34)
    hub.panel.repo_requested.emit(GATED, "", False)
    hub.window.show_tab(HUB)
    until(qtbot, lambda: hub.panel.view.gate.isVisible() or hub.page.token.isVisible())
