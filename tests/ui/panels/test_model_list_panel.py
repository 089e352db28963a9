"""The left column: search, choose by mouse and keys, add, look again, what the disk holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QListView, QPushButton

from tests.helpers.model_entries import entry, ladder, ladder_fits
from ui.panels.hub_panel import HUB, PICKED, HubPanel
from ui.panels.model_list_panel import HERE, ModelListPanel
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"


@pytest.fixture
def panel(qtbot):
    hub = HubPanel(load_theme("dark"))
    made = ModelListPanel(load_theme("dark"), hub)
    hub.setParent(made)
    qtbot.addWidget(made)
    qtbot.addWidget(hub.right)
    made.setFixedWidth(320)
    made.resize(320, 600)
    entries = [*ladder(), entry("Gemma", "Q4_0", 4.5), entry("Zeta", "", fault="Gone.")]
    made.set_entries(entries)
    made.set_fits(ladder_fits(ladder()))
    made.show()
    made.activateWindow()
    made.chosen = []
    made.model_chosen.connect(lambda model: made.chosen.append(model.name))
    return made


def test_the_tabs_choose_what_is_searched_and_listed(panel, qtbot):
    assert panel.tab == HERE
    with qtbot.waitSignal(panel.tab_chosen) as caught:
        panel._tabs._buttons[HUB].click()
    assert caught.args == [HUB]
    assert panel._hub.results.isVisible()
    panel.go_to_search()
    assert panel._hub.results.search.hasFocus()
    with qtbot.assertNotEmitted(panel.tab_chosen):
        panel.show_tab(PICKED)
    assert panel._hub.picks.isVisible()
    panel.show_tab(HERE)
    panel.go_to_search()
    assert panel.search.hasFocus()


def view(panel):
    return panel.findChild(QListView, "models_here")


def texts(panel):
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


def button(panel, words):
    return next((found for found in panel.findChildren(QPushButton) if found.text() == words), None)


def test_a_click_and_the_arrows_choose(panel, qtbot):
    place = view(panel).visualRect(panel.rows.index(0)).center()
    qtbot.mouseClick(view(panel).viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.keyClick(view(panel), Qt.Key.Key_Down)
    assert panel.chosen == ["Gemma", NAME]
    assert panel.chosen_model.name == NAME


def test_choosing_from_outside_tells_nothing_and_takes_back_a_search(panel):
    assert panel.choose("Zeta")
    panel.search.setText("gemma")
    assert panel.chosen_model is None
    assert panel.choose_entry(f"{NAME}:Q6_K")
    assert panel.search.text() == ""
    assert panel.chosen_model.name == NAME
    assert not panel.choose_entry("nothing")
    assert panel.chosen == []


def test_a_search_hides_the_chosen_one_and_brings_it_back(panel):
    panel.choose("Gemma")
    panel.search.setText("8b-instruct")
    assert panel.chosen_model is None
    panel.search.clear()
    assert panel.chosen_model.name == "Gemma"
    assert panel.chosen == []


def test_a_search_without_a_result_says_so_and_can_be_cleared(panel):
    panel.search.setText("nothing has this")
    assert "No model has these words." in texts(panel)
    button(panel, "Clear the search").click()
    assert panel.search.text() == ""
    assert view(panel).isVisible()


def test_down_leads_from_the_search_to_the_list_and_enter_on_from_there(panel, qtbot):
    panel.search.setFocus()
    qtbot.keyClick(panel.search, Qt.Key.Key_Down)
    assert view(panel).hasFocus()
    panel.choose("Gemma")
    with qtbot.waitSignal(panel.entered):
        qtbot.keyClick(view(panel), Qt.Key.Key_Return)


def test_files_and_folders_are_added_and_folders_taken_back(panel, qtbot):
    actions = {action.text(): action for action in panel._menu.actions()}
    with qtbot.waitSignal(panel.add_file_requested):
        actions["Model file…"].trigger()
    with qtbot.waitSignal(panel.add_folder_requested):
        actions["Folder to look in…"].trigger()
    assert not actions["Stop looking in"].isVisible()
    panel.set_folders([Path("/m/a & b")])
    assert actions["Stop looking in"].isVisible()
    (folder,) = panel._folders.actions()
    assert folder.text() == "/m/a && b"
    with qtbot.waitSignal(panel.remove_folder_requested) as caught:
        folder.trigger()
    assert caught.args == [Path("/m/a & b")]


def test_a_scan_is_shown_and_cannot_be_started_twice(panel, qtbot):
    with qtbot.waitSignal(panel.scan_requested):
        button(panel, "Look again").click()
    panel.set_scan("Looking in 6 places… 1,204 files")
    assert "Looking in 6 places… 1,204 files" in texts(panel)
    assert not button(panel, "Look again").isEnabled()
    panel.set_scan("")
    assert button(panel, "Look again").isEnabled()
    panel.set_disk("14 models")
    assert "14 models" in texts(panel)


def test_long_and_hostile_names_are_painted_without_widening(panel):
    panel.set_entries([entry("<b>" + "n" * 300, "Q" * 300, 4.5, origin="starter")])
    assert view(panel).horizontalScrollBar().maximum() == 0
    before = panel.grab().toImage()
    panel.set_theme(load_theme("light"))
    assert panel.grab().toImage() != before
