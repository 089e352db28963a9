"""A choice whose words change: the button is made anew, what is chosen is told once."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QWidget

from ui.panels.compare_pick import ComparePick
from ui.theme import load_theme


@pytest.fixture
def pick(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    made = ComparePick("Model", load_theme("dark"), window)
    window.show()
    made.kept = window
    return made


def test_there_is_no_button_without_choices(pick):
    assert (pick.key, pick.button) == ("", None)
    pick.set_choices({"a": "A"}, "a")
    pick.set_choices({}, "")
    assert (pick.key, pick.button) == ("", None)


def test_the_chosen_one_is_shown_and_told(pick, qtbot):
    with qtbot.assertNotEmitted(pick.chosen):
        pick.set_choices({"a": "A", "b": "B"}, "b")
    assert pick.key == "b"
    assert pick.button.accessibleName() == "Model: B"
    with qtbot.waitSignal(pick.chosen) as told:
        pick.button.menu().actions()[0].trigger()
    assert told.args == ["a"]


def test_equal_words_keep_the_button_and_others_replace_it(pick):
    pick.set_choices({"a": "A", "b": "B"}, "a")
    button = pick.button
    pick.set_choices({"a": "A", "b": "B"}, "b")
    assert pick.button is button
    assert pick.key == "b"
    pick.set_choices({"a": "A", "c": "C"}, "gone")
    assert pick.button is not button
    assert pick.key == "a"
    pick.set_theme(load_theme("light"))


def test_the_focus_stays_when_the_words_change(pick):
    pick.set_choices({"a": "A"}, "a")
    pick.button.show()
    pick.button.setFocus()
    pick.set_choices({"b": "B"}, "b")
    assert pick.window().focusWidget() is pick.button
