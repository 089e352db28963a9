"""The search field: Esc clears, Down and Enter go on to what was found, text stays text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from ui.theme import load_theme
from ui.widgets.search_field import SearchField


@pytest.fixture
def field(qtbot):
    made = SearchField("Search models", load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    return made


def test_it_is_named(field):
    assert (field.placeholderText(), field.accessibleName()) == ("Search models", "Search models")


def test_esc_clears_and_then_is_nobodys(field, qtbot):
    qtbot.keyClicks(field, "qwen/")
    assert field.text() == "qwen/"
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == ""


@pytest.mark.parametrize("key", [Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_down_and_enter_go_on(field, qtbot, key):
    with qtbot.waitSignal(field.left_downwards):
        qtbot.keyClick(field, key)


def test_going_there_marks_what_was_searched(field, qtbot):
    field.setText("old")
    field.activateWindow()
    field.go_to()
    assert field.selectedText() == "old"


def test_a_pasted_novel_is_cut_and_the_theme_can_change(field):
    field.setText("x" * 10_000)
    assert len(field.text()) == 500
    field.set_theme(load_theme("light"))


def test_its_buttons_have_names(field):
    field.setText("x")
    assert {button.accessibleName() for button in field.findChildren(QToolButton)} == {
        "Search models",
        "Clear the search",
    }
