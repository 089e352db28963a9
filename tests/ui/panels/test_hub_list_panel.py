"""The tab of the hub in every state of a network, and that nothing is asked before a person wants it."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.errors import Words
from app.hub.types import SearchQuery
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, MACHINE, search_page, summary
from ui.models.model_list_model import NAME_MARK_ROLE
from ui.panels.hub_list_panel import HubListPanel
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

OFFLINE = Words("huggingface.co cannot be reached.", "Check the network.")


@pytest.fixture
def panel(qtbot):
    made = HubListPanel(load_theme("dark"))
    qtbot.addWidget(made)
    qtbot.addWidget(made.search)
    made.resize(320, 700)
    made.search.show()
    made.show()
    made.asked, made.refreshed = [], []
    made.search_requested.connect(made.asked.append)
    made.refresh_requested.connect(made.refreshed.append)
    return made


def texts(panel):
    words = [label.text().replace("\u200b", "") for label in panel.findChildren(QLabel) if label.isVisible()]
    return [word.replace(NBSP, " ") for word in words]


def press(panel, words):
    next(found for found in panel.findChildren(QPushButton) if found.isVisible() and found.text() == words).click()


def found(panel, words="llama", **fields):
    panel.search_for(words)
    panel.show_searching()
    panel.show_page(search_page(**fields))


# ------------------------------------------------------------------------------------------ asking


def test_at_first_it_says_what_can_be_typed_and_asks_nothing(panel):
    assert "Type words, a name such as owner/name, or paste a link to a model." in texts(panel)
    assert panel.asked == []
    press(panel, "Show what is popular")
    assert panel.asked == [SearchQuery(sort="trending", format="gguf")]


def test_a_search_begins_when_the_keys_rest_or_with_enter(panel, qtbot):
    panel.search.setFocus()
    panel._settled.setInterval(PATIENCE_MS)  # slower than any machine types
    qtbot.keyClicks(panel.search, "l")
    assert not panel._settled.isActive()
    qtbot.keyClicks(panel.search, "lama")
    assert panel._settled.isActive()
    assert panel.asked == []
    qtbot.keyClick(panel.search, Qt.Key.Key_Return)
    assert [query.words for query in panel.asked] == ["llama"]
    assert not panel._settled.isActive()
    panel.search.setText("qwen")
    panel._settled.setInterval(0)
    panel._settled.start()
    qtbot.waitUntil(lambda: len(panel.asked) == 2, timeout=PATIENCE_MS)
    panel.search.clear()
    assert panel._asked is None
    assert not panel._settled.isActive()


def test_sort_and_files_ask_again(panel):
    panel._sort.chosen.emit("likes")
    assert panel.asked == []
    found(panel)
    panel._sort.choose("likes")
    panel._sort.chosen.emit("likes")
    panel._format.choose("any")
    panel._format.chosen.emit("any")
    assert [(query.sort, query.format) for query in panel.asked[1:]] == [("likes", "gguf"), ("likes", "any")]


def test_enter_goes_on_to_what_was_found(panel, qtbot):
    found(panel)
    panel.activateWindow()
    qtbot.waitUntil(panel.isActiveWindow, timeout=PATIENCE_MS)
    panel.view.show()
    qtbot.keyClick(panel.search, Qt.Key.Key_Down)
    assert len(panel.asked) == 1
    assert panel.view.currentIndex().row() == 0


# ------------------------------------------------------------------------------------------ answers


def test_results_are_listed_and_more_of_them_below(panel):
    found(panel)
    assert panel.view.rows.rowCount() == 6
    panel.view.more_requested.emit()
    assert panel.asked[-1] == msgspec.structs.replace(panel.asked[0], cursor="next")
    panel.show_searching()
    assert panel.view.rows.index(5).data() == "Asking for more…"
    panel.show_page(search_page(items=(summary("new/one"),), next_cursor=""))
    assert panel.view.rows.rowCount() == 6
    assert panel.view.rows.index(5).data() == "one"
    panel.view.more_requested.emit()
    assert len(panel.asked) == 2


def test_a_fault_of_the_next_page_keeps_what_is_there(panel):
    found(panel)
    panel.view.more_requested.emit()
    panel.show_fault(OFFLINE)
    assert panel.view.rows.rowCount() == 6
    assert panel.view.rows.index(5).data() == "More results: try again"
    assert "huggingface.co cannot be reached. Check the network." in texts(panel)


def test_nothing_found_says_so_and_can_be_cleared(panel):
    found(panel, items=(), next_cursor="")
    assert "The hub has no model with these words and this filter." in texts(panel)
    press(panel, "Clear the search")
    assert panel.search.text() == ""


def test_only_what_fits_is_shown_and_its_absence_is_told(panel):
    panel.set_machine(MACHINE)
    found(panel)
    panel._fits.setChecked(True)
    assert panel.query.fits_only
    assert panel.view.rows.row_of("meta-llama/Llama-3.3-70B-Instruct-GGUF") is None
    assert panel.view.rows.rowCount() == 5
    found(panel, items=(summary(parameters_count=10**12),))
    assert "None of what was found fits this machine." in texts(panel)
    press(panel, "More results")
    assert panel.asked[-1].cursor == "next"


def test_what_is_here_is_marked(panel):
    found(panel)
    panel.set_here(frozenset({LLAMA}))
    assert panel.view.rows.index(0).data(NAME_MARK_ROLE) == "here"


# ------------------------------------------------------------------------------------------ the network


def test_searching_and_slow_are_one_sentence_each(panel):
    panel.search_for("llama")
    panel.show_searching()
    assert "Searching…" in texts(panel)
    panel.show_slow()
    assert "The hub is slow to answer. Still waiting…" in texts(panel)
    panel.show_page(search_page())
    panel.show_slow()
    assert panel._pages.currentWidget() is panel.view


def test_offline_says_so_and_tries_again_at_the_hub_itself(panel):
    panel.search_for("llama")
    panel.show_fault(OFFLINE)
    assert "huggingface.co cannot be reached. Check the network." in texts(panel)
    press(panel, "Try again")
    assert [query.words for query in panel.refreshed] == ["llama"]


def test_where_trying_again_is_of_no_use_it_is_not_offered(panel):
    panel.search_for("llama")
    panel.show_fault(OFFLINE, can_retry=False)
    assert not panel._state._button.isVisible()


def test_a_pause_is_counted_down_and_then_over(panel):
    panel.search_for("llama")
    panel.show_fault(Words("The hub wants a pause.", "Later."), retry_after_s=2)
    assert "The hub wants a pause. It can be asked again in 2 seconds." in texts(panel)
    assert panel._tick.isActive()
    panel._tick.timeout.emit()
    assert "The hub wants a pause. It can be asked again in 1 second." in texts(panel)
    panel._tick.timeout.emit()
    assert not panel._tick.isActive()
    press(panel, "Try again")
    assert len(panel.refreshed) == 1


def test_an_old_answer_is_shown_with_its_age(panel):
    found(panel, is_stale=True, age_s=10_900.0, fault=Words("huggingface.co cannot be reached."))
    assert "huggingface.co cannot be reached. What you see is from before: 3 hours ago." in texts(panel)
    assert panel.view.rows.rowCount() == 6
    press(panel, "Try again")
    assert len(panel.refreshed) == 1
    panel.show_page(search_page())
    assert not panel._stale.isVisible()


def test_a_theme_and_a_first_reading_of_the_machine(panel):
    panel.set_theme(load_theme("light"))
    panel._fits.setChecked(True)
    found(panel)
    assert panel.view.rows.rowCount() == 6
    panel.set_machine(hub_values.without_gpu())
    assert panel.view.rows.rowCount() == 5
