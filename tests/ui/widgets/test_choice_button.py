"""A button that says what is chosen: its menu, its keys, its words in any width."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible

from ui.theme import load_theme
from ui.widgets.choice_button import ChoiceButton


@pytest.fixture
def button(qtbot):
    made = ChoiceButton({"a": "First & best", "b": "Second"}, "Sort by", load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(made.sizeHint())
    made.show()
    return made


def actions(button):
    return button.menu().actions()


def test_the_first_one_is_chosen_and_said(button):
    assert button.key == "a"
    assert button.accessibleName() == "Sort by: First & best"
    assert QAccessible.queryAccessibleInterface(button).text(QAccessible.Text.Name) == "Sort by: First & best"
    assert [action.isChecked() for action in actions(button)] == [True, False]
    assert actions(button)[0].text() == "First && best"


def test_a_person_chooses_in_the_menu(button, qtbot):
    with qtbot.waitSignal(button.chosen) as caught:
        actions(button)[1].trigger()
    assert caught.args == ["b"]
    with qtbot.assertNotEmitted(button.chosen):
        actions(button)[1].trigger()
    assert [action.isChecked() for action in actions(button)] == [False, True]


def test_choosing_from_outside_tells_nothing(button, qtbot):
    with qtbot.assertNotEmitted(button.chosen):
        button.choose("b")
    assert button.key == "b"
    with pytest.raises(KeyError):
        button.choose("c")
    assert button.key == "b"


def test_it_keeps_its_width_and_may_be_cut(button):
    width = button.sizeHint().width()
    button.choose("b")
    assert button.sizeHint().width() == width
    button.resize(button.minimumSizeHint())
    before = button.grab().toImage()
    button.set_theme(load_theme("light"))
    assert button.grab().toImage() != before
