"""The models screen: choose, use, add, forget; a damaged file says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QTableView

from app.models.library import ModelEntry
from ui.panels.models_panel import ModelsPanel
from ui.theme import load_theme

ENTRIES = (
    ModelEntry("a:Q4_1", "a", Path("/m/a.gguf"), "Q4_1", "llama", 98_900_000, 134_515_008, 8192, "starter"),
    ModelEntry("b:Q8_0", "b", Path("/m/b.gguf"), "Q8_0", "llama", 2_000_000_000, 8_030_000_000, 131072, "imported"),
    ModelEntry("c:", "c", Path("/m/c.gguf"), "", "", 10, 0, 0, "imported", "The file is <b>damaged</b>."),
)


@pytest.fixture
def panel(qtbot):
    made = ModelsPanel(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 600)
    made.show()
    return made


def button(panel, words):
    return next(
        (found for found in panel.findChildren(QPushButton) if found.text() == words and found.isVisible()), None
    )


def texts(panel):
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


def test_before_the_first_look_it_says_that_it_looks(panel):
    assert "Looking for model files…" in texts(panel)


def test_without_models_there_is_one_sentence_and_one_action(panel, qtbot):
    panel.set_entries([])
    assert "There is no model file on this machine yet." in texts(panel)
    assert [found.text() for found in panel.findChildren(QPushButton) if found.isVisible()] == ["Add a model file…"]
    with qtbot.waitSignal(panel.add_file_requested):
        button(panel, "Add a model file…").click()


def test_the_first_model_is_chosen_and_can_be_used(panel, qtbot):
    panel.set_entries(ENTRIES)
    assert "3 models on this machine · 1.95\u00a0GiB" in texts(panel)
    assert "llama · 135 M parameters · /m/a.gguf" in texts(panel)
    with qtbot.waitSignal(panel.use_requested) as caught:
        button(panel, "Use").click()
    assert caught.args == ["a:Q4_1"]
    assert button(panel, "Forget") is None  # it came with the program


def test_the_keyboard_chooses_and_uses(panel, qtbot):
    panel.set_entries(ENTRIES)
    table = panel.findChild(QTableView)
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_Down)
    with qtbot.waitSignal(panel.use_requested) as caught:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert caught.args == ["b:Q8_0"]


def test_a_double_click_uses(panel, qtbot):
    panel.set_entries(ENTRIES)
    table = panel.findChild(QTableView)
    place = table.visualRect(table.model().index(1, 0)).center()
    with qtbot.waitSignal(panel.use_requested) as caught:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == ["b:Q8_0"]


def test_a_damaged_file_says_why_and_can_be_forgotten_but_not_used(panel, qtbot):
    panel.set_entries(ENTRIES)
    panel.choose("c:")
    assert "The file is <b>damaged</b>. · /m/c.gguf" in texts(panel)
    assert not button(panel, "Use").isEnabled()
    with qtbot.assertNotEmitted(panel.use_requested):
        qtbot.keyClick(panel.findChild(QTableView), Qt.Key.Key_Return)
    with qtbot.waitSignal(panel.forget_requested) as caught:
        button(panel, "Forget").click()
    assert caught.args == ["c:"]


def test_the_chosen_model_stays_chosen_when_the_list_changes(panel):
    panel.set_entries(ENTRIES)
    panel.choose("b:Q8_0")
    panel.set_entries(reversed_with_one_more())
    assert panel.chosen_entry.key == "b:Q8_0"
    panel.set_entries(ENTRIES[:1])
    assert panel.chosen_entry.key == "a:Q4_1"
    panel.choose("nothing")
    assert panel.chosen_entry.key == "a:Q4_1"


def reversed_with_one_more():
    return [*ENTRIES[::-1], ModelEntry("aa:F16", "aa", Path("/m/aa.gguf"), "F16", "x", 1, 1, 1, "folder")]


def test_nothing_is_cut_at_the_smallest_window(panel):
    long = ModelEntry("l:Q4_K_M", "n" * 200, Path("/m/" + "p" * 200), "Q4_K_M", "llama", 1, 1, 131072, "starter")
    panel.resize(960 - 84, 600)
    panel.set_entries([long])
    assert panel.minimumSizeHint().width() <= 960 - 84
    assert panel.findChild(QTableView).horizontalScrollBar().maximum() == 0


def test_the_theme_can_change(panel):
    panel.set_entries(ENTRIES)
    panel.set_theme(load_theme("light"))
