"""A row is selected alone and seen; none clears the selection."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QStringListModel
from PySide6.QtWidgets import QListView

from ui.widgets.list_selection import select_row


@pytest.fixture
def view(qtbot):
    made = QListView()
    made.setModel(QStringListModel([f"row {number}" for number in range(200)], made))
    qtbot.addWidget(made)
    made.resize(200, 120)
    made.show()
    return made


def test_one_row_is_selected_and_scrolled_to(view):
    select_row(view, 3)
    select_row(view, 150)
    assert [index.row() for index in view.selectedIndexes()] == [150]
    assert view.currentIndex().row() == 150
    assert view.viewport().rect().intersects(view.visualRect(view.currentIndex()))


def test_none_selects_nothing(view):
    select_row(view, 3)
    select_row(view, None)
    assert view.selectedIndexes() == []
