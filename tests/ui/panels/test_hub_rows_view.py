"""A list of what a hub has: mouse and keys, more rows, and the chosen repo that stays marked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from ui.models.hub_list_model import HubListRow
from ui.panels.hub_rows_view import HubRowsView
from ui.theme import load_theme


def rows(*keys):
    return [HubListRow(key, key, "") for key in keys]


@pytest.fixture
def view(qtbot):
    made = HubRowsView("Models at the hub", load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(300, 400)
    made.rows.set_rows(rows("a/a", "b/b"), has_more=True)
    made.show()
    made.chosen = []
    made.repo_chosen.connect(made.chosen.append)
    return made


def click(qtbot, view, row):
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(view.rows.index(row)).center())


def test_a_click_and_the_arrows_choose(view, qtbot):
    click(qtbot, view, 0)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    click(qtbot, view, 1)
    assert view.chosen == ["a/a", "b/b"]


def test_the_last_row_asks_for_more_and_is_no_repo(view, qtbot):
    with qtbot.waitSignal(view.more_requested):
        click(qtbot, view, 2)
    with qtbot.waitSignal(view.more_requested):
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert view.chosen == []


def test_enter_chooses_and_then_goes_on(view, qtbot):
    with qtbot.assertNotEmitted(view.entered):
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert view.chosen == ["a/a"]
    with qtbot.waitSignal(view.entered):
        qtbot.keyClick(view, Qt.Key.Key_Enter)


def test_the_chosen_repo_is_marked_whenever_the_list_has_it(view):
    view.choose("b/b")
    assert view.currentIndex().row() == 1
    view.rows.set_rows(rows("x/x"))
    assert view.selectionModel().selectedIndexes() == []
    view.rows.set_rows(rows("c/c", "b/b"))
    assert view.currentIndex().row() == 1
    view.choose("")
    assert view.selectionModel().selectedIndexes() == []
    assert view.chosen == []


def test_it_has_a_name_and_takes_themes(view):
    assert view.accessibleName() == "Models at the hub"
    view.set_theme(load_theme("light"))
    assert view._delegate.theme.name == "light"
