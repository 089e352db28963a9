"""The list of comparisons: choosing, a new one, deleting only after a question and never while it runs."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QListView, QMenu, QPushButton

from ui.models.compare_list_model import ComparisonRow
from ui.panels.compare_list import CompareList
from ui.theme import load_theme

ROWS = (
    ComparisonRow("a", "Llama", 2.0, "done", 3, 3),
    ComparisonRow("b", "Qwen <b>3</b>", 1.0, "stopped", 1, 3),
)


@pytest.fixture
def panel(qtbot):
    made = CompareList(load_theme("dark"))
    qtbot.addWidget(made)
    made.set_rows(ROWS)
    made.resize(248, 500)
    made.show()
    made.activateWindow()
    return made


def view(panel):
    return panel.findChild(QListView)


def click(panel, row, qtbot):
    place = view(panel).visualRect(panel.rows.index(row)).center()
    qtbot.mouseClick(view(panel).viewport(), Qt.MouseButton.LeftButton, pos=place)


def question(panel):
    return [label.text() for label in panel.confirm.findChildren(QLabel)]


def test_an_empty_list_says_what_will_be_there(qtbot):
    panel = CompareList(load_theme("dark"))
    qtbot.addWidget(panel)
    assert panel._pages.currentWidget() is panel._nothing


def test_a_click_chooses_once(panel, qtbot):
    with qtbot.waitSignal(panel.chosen) as told:
        click(panel, 1, qtbot)
    assert told.args == ["b"]
    with qtbot.assertNotEmitted(panel.chosen):
        click(panel, 1, qtbot)
        panel.choose("a")
    assert panel.chosen_id == "a"


def test_new_closes_an_open_question(panel, qtbot):
    panel.choose("a")
    panel.ask_to_delete()
    with qtbot.waitSignal(panel.new_requested):
        next(one for one in panel.findChildren(QPushButton) if one.text() == "New").click()
    assert panel.confirm.isHidden()


def test_the_delete_key_asks_and_an_answer_deletes(panel, qtbot):
    panel.choose("b")
    view(panel).setFocus()
    qtbot.keyClick(view(panel), Qt.Key.Key_Delete)
    assert question(panel)[0] == "Delete the comparison of Qwen <b>3</b>?"
    with qtbot.waitSignal(panel.delete_confirmed) as told:
        panel.confirm.findChild(QPushButton, "answer_delete").click()
    assert told.args == ["b"]


def test_cancel_deletes_nothing(panel, qtbot):
    panel.choose("b")
    panel.ask_to_delete()
    with qtbot.assertNotEmitted(panel.delete_confirmed):
        panel.confirm.findChild(QPushButton, "answer_cancel").click()


def test_what_runs_is_not_deleted(panel):
    panel.choose("b")
    panel.ask_to_delete()
    panel.set_running("b")
    assert panel.confirm.isHidden()
    panel.ask_to_delete()
    assert question(panel)[0] == "This comparison is running."
    assert panel.confirm.findChild(QPushButton, "answer_delete") is None


def test_nothing_is_asked_without_a_comparison(panel):
    panel.choose("")
    panel.ask_to_delete()
    assert panel.confirm.isHidden()


def words_of_menu(panel, row):
    panel.choose(panel.rows.row_at(row).comparison_id)
    view(panel).customContextMenuRequested.emit(view(panel).visualRect(panel.rows.index(row)).center())
    menu = next(menu for menu in view(panel).findChildren(QMenu) if menu.isVisible())
    words = [action.text() for action in menu.actions()]
    return menu, words


def test_only_what_stopped_can_go_on(panel, qtbot):
    menu, words = words_of_menu(panel, 1)
    assert words == ["Go on", "Delete…"]
    with qtbot.waitSignal(panel.resume_requested) as told:
        menu.actions()[0].trigger()
    assert told.args == ["b"]
    menu.close()
    menu, words = words_of_menu(panel, 0)
    assert words == ["Delete…"]
    menu.close()


def test_a_changed_row_keeps_the_choice(panel, qtbot):
    panel.choose("b")
    with qtbot.assertNotEmitted(panel.chosen):
        panel.put(ComparisonRow("b", "Qwen", 1.0, "running", 2, 3))
        panel.put(ComparisonRow("c", "New", 9.0, "running", 0, 3))
    assert panel.chosen_id == "b"
    assert view(panel).selectionModel().selectedIndexes()[0].row() == 2
