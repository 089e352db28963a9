"""One segment is chosen, by mouse or arrows; Tab stops once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from ui.theme import load_theme
from ui.widgets.segmented import SegmentedControl


@pytest.fixture
def control(qtbot):
    made = SegmentedControl({"a": "Alpha & co", "b": "Beta", "c": "Gamma"}, "Which letters", load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    return made


def buttons(control):
    return control.findChildren(QToolButton)


def test_the_first_segment_is_chosen_at_first(control):
    assert control.chosen_key == "a"
    assert [button.isChecked() for button in buttons(control)] == [True, False, False]
    assert control.accessibleName() == "Which letters"
    assert [button.accessibleName() for button in buttons(control)] == ["Alpha & co", "Beta", "Gamma"]
    assert buttons(control)[0].text() == "Alpha && co"


def test_a_click_chooses(control, qtbot):
    with qtbot.waitSignal(control.chosen) as caught:
        buttons(control)[1].click()
    assert (caught.args, control.chosen_key) == (["b"], "b")


def test_the_arrows_choose_and_go_round(control, qtbot):
    told = []
    control.chosen.connect(told.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(buttons(control)[0], key)
    assert told == ["b", "c", "a", "c"]


def test_choosing_from_outside_tells_nothing(control, qtbot):
    with qtbot.assertNotEmitted(control.chosen):
        control.choose("c")
    assert control.chosen_key == "c"
    with pytest.raises(KeyError):
        control.choose("z")


def test_tab_stops_at_the_chosen_one_only(control):
    control.choose("b")
    tab = [bool(button.focusPolicy() & Qt.FocusPolicy.TabFocus) for button in buttons(control)]
    assert tab == [False, True, False]


def test_a_single_segment_stays_chosen(qtbot):
    made = SegmentedControl({"only": "On this machine"}, "Which models", load_theme("light"))
    qtbot.addWidget(made)
    with qtbot.assertNotEmitted(made.chosen):
        qtbot.keyClick(buttons(made)[0], Qt.Key.Key_Right)
    assert made.chosen_key == "only"


def test_the_colours_are_the_themes(control):
    control.set_theme(load_theme("light"))
    assert load_theme("light").roles["raised"] in control.styleSheet()


def test_short_words_stand_where_the_long_ones_do_not_fit(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    control = SegmentedControl({"a": "A long name", "b": "B"}, "Which", load_theme("dark"), window)
    control.set_short_words({"a": "A"})
    control.resize(400, 30)
    window.show()
    first = control._buttons["a"]
    assert (first.text(), first.toolTip()) == ("A long name", "")
    control.resize(60, 30)
    assert (first.text(), first.toolTip()) == ("A", "A long name")
    assert first.accessibleName() == "A long name"
    assert control.minimumSizeHint().width() == 0
