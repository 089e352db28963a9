"""The hub's parts together, in the Models screen: tabs, the foot, the list of downloads, every wish passed on."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)

from app.downloads.types import DownloadState
from app.errors import Words
from app.hub.types import SearchQuery
from tests.helpers import hub_states, hub_values, model_entries
from tests.helpers.hub_values import (
    LLAMA,
    MACHINE,
    detail,
    download,
    every_download,
    fits,
    llama_3,
    search_page,
    summary,
)
from ui.models.download_words import Button
from ui.panels.hub_panel import HUB, PICKED
from ui.panels.model_list_panel import HERE
from ui.panels.models_panel import ModelsPanel
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

STATE = DownloadState


@pytest.fixture
def panel(qtbot):
    made = ModelsPanel(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1356, 900)
    made.set_machine(MACHINE)
    entries, _fits = model_entries.library()
    made.set_entries(entries)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


@pytest.fixture
def shown(panel):
    panel.show_tab(HUB)
    panel.hub.set_repo(detail())
    panel.hub.view.page.set_fits(fits(detail()))
    return panel


def texts(panel):
    return [label.text().replace("\u200b", "") for label in panel.findChildren(QLabel) if label.isVisible()]


# ------------------------------------------------------------------------------------------ tabs


def test_each_tab_has_its_list_its_search_and_its_right_side(panel, qtbot):
    assert panel.list.tab == HERE
    assert panel.list.search.isVisible()
    with qtbot.waitSignal(panel.hub.picks_requested):
        panel.list._tabs.chosen.emit(PICKED)
    panel.show_tab(PICKED)
    assert panel.hub.picks.isVisible()
    assert panel.hub.view.isVisible()
    assert panel.hub.results.search.isVisible()
    with qtbot.assertNotEmitted(panel.hub.picks_requested):
        panel.show_tab(HUB)
        panel.show_tab(PICKED)
    panel.show_tab(HUB)
    assert panel.hub.results.isVisible()
    panel.show_tab(HERE)
    assert panel.page.isVisible()
    assert panel.list.search.isVisible()


def test_ctrl_f_goes_to_the_search_of_the_tab(panel, qtbot):
    panel.show_tab(HUB)
    qtbot.keyClick(panel, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert panel.hub.results.search.hasFocus()
    panel.show_tab(HERE)
    qtbot.keyClick(panel, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert panel.list.search.hasFocus()


def test_tab_goes_through_everything_and_comes_back(shown, qtbot):
    results, page = shown.hub.results, shown.hub.view.page
    results.search_for("llama")
    results.show_page(search_page())
    shown.hub.set_downloads([download(STATE.RUNNING, "Q8_0")])
    results.search.setFocus()
    reached = []
    for _press in range(40):
        qtbot.keyClick(shown.window().focusWidget(), Qt.Key.Key_Tab)
        reached.append(shown.window().focusWidget())
        if reached[-1] is results.search:
            break
    wanted = [results._sort, results._format, results._fits, results.view, shown.hub.strip, page.table]
    wanted += [page.card_button, page.publishers.button, page.detail.button]
    assert [type(widget).__name__ for widget in wanted if widget not in reached] == []
    assert reached[-1] is results.search


def test_a_search_from_the_picks_leads_to_the_hub(panel, qtbot):
    panel.show_tab(PICKED)
    with qtbot.waitSignal(panel.hub.search_requested) as caught:
        panel.hub.results.search_for("llama")
    assert caught.args == [SearchQuery(words="llama"), False]
    assert panel.list.tab == HUB
    panel.show_tab(PICKED)
    panel.hub.picks.search_requested.emit()
    assert panel.list.tab == HUB
    assert panel.hub.results.search.hasFocus()


def test_the_words_of_the_tabs_get_short_where_there_is_no_room(panel, qtbot):
    def words():
        return [button.text() for button in panel.list._tabs._buttons.values()]

    panel.resize(960 - 84, 600)
    qtbot.waitUntil(lambda: words() == ["Picked", "Hub", "Here"], timeout=PATIENCE_MS)
    panel.resize(1356, 900)
    qtbot.waitUntil(lambda: words() == ["Picked for you", "Hub", "On this machine"], timeout=PATIENCE_MS)


# ------------------------------------------------------------------------------------------ wishes


def test_a_chosen_row_is_asked_for_and_marked(panel, qtbot):
    panel.show_tab(HUB)
    results = panel.hub.results
    results.search_for("llama")
    results.show_page(search_page())
    place = results.view.visualRect(results.view.rows.index(1)).center()
    with qtbot.waitSignal(panel.hub.repo_requested) as caught:
        qtbot.mouseClick(results.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == ["unsloth/Llama-3.2-3B-Instruct-GGUF", "", False]
    panel.hub.show_loading(LLAMA)
    assert panel.hub.repo == LLAMA
    assert results.view.currentIndex().row() == 0
    with qtbot.waitSignal(panel.hub.repo_requested) as caught:
        panel.hub.view.retry_requested.emit()
    assert caught.args == [LLAMA, "", True]
    with qtbot.waitSignal(panel.hub.search_requested) as caught:
        results.refresh_requested.emit(results.query)
    assert caught.args[1] is True


def test_the_repos_own_wishes_carry_the_repo(shown, qtbot):
    page = shown.hub.view.page
    with qtbot.waitSignal(shown.hub.download_requested) as caught:
        page.detail.button.click()
    assert caught.args == [page.repo, "Q5_K_M", page.repo.row("Q5_K_M").files]
    with qtbot.waitSignal(shown.hub.publishers_requested) as caught:
        page.publishers.button.click()
    assert caught.args == [page.repo]
    with qtbot.waitSignal(shown.hub.repo_requested) as caught:
        page.publishers.repo_chosen.emit("unsloth/x")
    assert caught.args == ["unsloth/x", "", False]


def test_what_is_here_is_used_by_its_key_and_what_just_came_by_its_path(shown, qtbot):
    shown.hub.set_here({"Q5_K_M": "the key"}, frozenset({LLAMA}))
    with qtbot.waitSignal(shown.hub.use_requested) as caught:
        shown.hub.view.page.detail.button.click()
    assert caught.args == ["the key"]
    shown.hub.set_here({}, frozenset())
    done = download(STATE.DONE, "Q5_K_M")
    shown.hub.set_downloads([done])
    with qtbot.waitSignal(shown.hub.path_use_requested) as caught:
        shown.hub.view.page.detail.button.click()
    assert caught.args == [done.path]
    with qtbot.waitSignal(shown.hub.path_use_requested):
        shown.hub.downloads.rows[0].main.click()


def test_a_pick_comes_with_its_quantization_and_its_reason(panel):
    pick = next(one for one in hub_values.picked() if one.repo == LLAMA.replace("Llama-3.1", "Meta-Llama-3.1"))
    panel.hub.set_picks([pick], "2026-11-30")
    panel.show_tab(PICKED)
    panel.hub.set_repo(detail(pick.repo))
    panel.hub.view.page.set_fits(fits(detail(pick.repo)))
    assert panel.hub.view.page.table.chosen_key == pick.quantization
    assert pick.reason in panel.hub.view.page._banner_words.text()


# ------------------------------------------------------------------------------------------ downloads


def test_the_foot_opens_the_list_from_every_tab_and_goes_back(shown, qtbot):
    shown.hub.set_downloads(every_download())
    for tab in (HUB, PICKED, HERE):
        shown.show_tab(tab)
        qtbot.mouseClick(shown.hub.strip, Qt.MouseButton.LeftButton)
        assert shown.hub.downloads.isVisible()
        assert shown.hub.is_showing_downloads
        qtbot.mouseClick(shown.hub.strip, Qt.MouseButton.LeftButton)
        assert not shown.hub.downloads.isVisible()
    assert shown.page.isVisible()
    shown.hub.show_downloads()
    shown.hub.downloads.left.emit()
    assert shown.page.isVisible()
    shown.hub.show_downloads()
    shown.hub.set_downloads([])
    assert not shown.hub.is_showing_downloads
    assert not shown.hub.strip.isVisible()


def test_buttons_of_the_list_reach_the_queue_or_the_repo(shown, qtbot):
    hub = shown.hub
    hub.set_downloads([download(STATE.RUNNING)])
    with qtbot.waitSignal(hub.download_pressed) as caught:
        hub.downloads.rows[0].main.click()
    assert caught.args == [f"{LLAMA}:Q4_K_M", Button.PAUSE]
    hub.set_downloads([download(STATE.FAILED, repo="other/repo", action="choose")])
    with qtbot.waitSignal(hub.repo_requested) as caught:
        hub.downloads.rows[0].main.click()
    assert caught.args == ["other/repo", "", False]
    with qtbot.assertNotEmitted(hub.download_pressed):
        hub._on_pressed("unknown", Button.PAUSE)


def test_a_download_that_wants_a_token_leads_to_the_card(shown, qtbot):
    hub = shown.hub
    words = Words("A licence first.", "Accept it.")
    hub.set_downloads([download(STATE.FAILED, words=words, action="token")])
    hub.show_downloads()
    hub.downloads.rows[0].main.click()
    assert hub.view.page.token.isVisible()
    assert "A licence first." in texts(shown)
    other = llama_3().summary.repo
    hub.set_downloads([download(STATE.FAILED, repo=other, words=words, action="token")])
    with qtbot.waitSignal(hub.repo_requested) as caught:
        hub.downloads.rows[0].main.click()
    assert caught.args == [other, "", False]
    hub.set_repo(llama_3())
    assert hub.view.page.token.isVisible()


def test_what_is_cancelled_and_gone_is_not_listed(shown):
    shown.hub.set_downloads([download(STATE.CANCELLED, part=0.0), download(STATE.CANCELLED, "Q8_0", 0.5)])
    assert len(shown.hub.downloads.rows) == 1
    assert shown.hub.strip.words == "Downloads"


def test_changes_are_heard_and_the_first_look_is_not(shown, monkeypatch):
    heard = []
    monkeypatch.setattr(shown.hub._announcer, "_announce", heard.append)
    shown.hub.set_downloads([download(STATE.RUNNING)])
    shown.hub.set_downloads([download(STATE.DONE)], [download(STATE.DONE)])
    assert len(heard) == 1


def test_progress_at_full_speed_touches_only_what_changed(shown, monkeypatch):
    hub = shown.hub
    hub.set_downloads([download(STATE.RUNNING), download(STATE.QUEUED, "Q8_0", 0.0)])
    fitted = []
    monkeypatch.setattr(hub.view.page.table, "_fit_columns", lambda: fitted.append(1))
    told = []
    hub.view.page.table.quantizations.dataChanged.connect(lambda first, _last: told.append(first.row()))
    rows = hub.downloads.rows
    for number in range(200):
        moved = download(STATE.RUNNING, done_bytes=number * 10**7)
        hub.set_downloads([moved, download(STATE.QUEUED, "Q8_0", 0.0)], [moved])
    assert fitted == []
    assert len(told) == 200
    assert hub.downloads.rows == rows


def test_keeping_and_themes_reach_every_part(shown):
    shown.hub.set_keeping(has_keyring=False, has_token=True)
    assert all(card.forget.isVisibleTo(card) for card in shown.hub.view.cards)
    before = shown.grab().toImage()
    shown.set_theme(load_theme("light"))
    assert shown.grab().toImage() != before


# ------------------------------------------------------------------------------------------ every state


def every_state(tmp_path, monkeypatch, state):
    folder = tmp_path / "config"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text('{"theme": "light"}', encoding="utf-8")
    monkeypatch.setenv("CUTAWAY_HOME", str(tmp_path))
    return next(state(tmp_path))


@pytest.mark.parametrize("state", hub_states.STATES, ids=lambda state: state.__name__)
def test_every_control_of_every_state_has_a_name_and_fits(qtbot, tmp_path, monkeypatch, state):
    made = every_state(tmp_path, monkeypatch, state)
    window = made.window
    qtbot.waitExposed(window)
    controls = (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractItemView)
    nameless = [
        f"{type(widget).__name__} in {type(widget.parent()).__name__}"
        for widget in window.findChildren(QWidget)
        if isinstance(widget, controls)
        and widget.isVisible()
        and not isinstance(widget, QHeaderView)
        and not widget.objectName().startswith("qt_")
        and not QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)
    ]
    assert nameless == []
    assert window.minimumSizeHint().width() <= 960 - 84
    assert window.minimumSizeHint().height() <= 600
    for label in window.findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText
    made.close()


def test_a_strangers_search_result_is_plain_text(panel):
    panel.show_tab(HUB)
    results = panel.hub.results
    results.search_for("x")
    hostile = summary(name="<b>&x</b>", owner="<i>o</i>")
    results.show_page(search_page(items=(hostile,)))
    assert results.view.rows.index(0).data() == "<b>&x</b>"
    assert "&lt;b&gt;" in results.view.rows.index(0).data(Qt.ItemDataRole.ToolTipRole)
