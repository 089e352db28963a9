"""The picks: what they say, when there are none, and that choosing one is a person's act."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from tests.helpers.hub_values import picked
from ui.models.model_list_model import NAME_MARK_ROLE
from ui.panels.hub_picks_panel import HubPicksPanel
from ui.theme import load_theme


@pytest.fixture
def panel(qtbot):
    made = HubPicksPanel(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(320, 700)
    made.show()
    return made


def texts(panel):
    return [label.text().replace("\u200b", "") for label in panel.findChildren(QLabel) if label.isVisible()]


def test_at_first_it_looks_at_the_machine(panel):
    assert "Looking at what this machine has…" in texts(panel)


def test_the_picks_are_listed_with_the_day_they_were_made(panel, qtbot):
    picks = picked()
    panel.set_picks(picks, "2026-11-30")
    assert panel.view.rows.rowCount() == len(picks)
    assert "Picked on 2026-11-30. Nothing is asked of the hub until you choose one." in texts(panel)
    with qtbot.waitSignal(panel.repo_chosen) as caught:
        place = panel.view.visualRect(panel.view.rows.index(0)).center()
        qtbot.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == [picks[0].repo]
    with qtbot.waitSignal(panel.entered):
        qtbot.keyClick(panel.view, Qt.Key.Key_Return)
    assert panel.pick_of(picks[1].repo) == picks[1]
    assert panel.pick_of("none/none") is None


def test_what_is_here_already_is_marked(panel):
    picks = picked()
    panel.set_picks(picks, "")
    panel.set_here(frozenset({picks[0].repo}))
    assert panel.view.rows.index(0).data(NAME_MARK_ROLE) == "here"
    assert not panel._about.isVisible()


def test_a_machine_for_which_there_is_nothing_is_sent_to_the_hub(panel, qtbot):
    panel.set_picks([], "2026-11-30")
    assert "None of the models on our list fits into what is free now." in texts(panel)
    with qtbot.waitSignal(panel.search_requested):
        next(found for found in panel.findChildren(QPushButton) if found.isVisible()).click()
    panel.set_theme(load_theme("light"))
