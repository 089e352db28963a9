"""A box to tick: seen on every window, ticked by mouse and key anywhere in its words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt

from ui.theme import load_theme
from ui.widgets.tick_box import TickBox

DARK = load_theme("dark")


@pytest.fixture
def box(qtbot):
    made = TickBox("Fits && works", DARK)
    qtbot.addWidget(made)
    made.resize(made.sizeHint())
    made.show()
    made.activateWindow()
    return made


def colours(box):
    image = box.grab().toImage()
    return [image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())]


def test_mouse_and_key_tick_it(box, qtbot):
    qtbot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(box.width() - 4, box.height() // 2))
    assert box.isChecked()
    box.setFocus()
    qtbot.keyClick(box, Qt.Key.Key_Space)
    assert not box.isChecked()


def test_the_tick_is_seen(box):
    empty = colours(box).count(DARK.roles["text"])
    box.setChecked(True)
    assert colours(box).count(DARK.roles["text"]) > empty + 60
    box.setEnabled(False)
    assert DARK.roles["text"] not in colours(box)


def test_the_focus_is_seen_and_a_theme_taken(box):
    box.clearFocus()
    assert DARK.roles["accent"] not in colours(box)
    box.setFocus()
    assert DARK.roles["accent"] in colours(box)
    light = load_theme("light")
    box.set_theme(light)
    assert light.roles["accent"] in colours(box)


def test_its_words_may_be_cut(box):
    assert box.minimumSizeHint().width() < box.sizeHint().width()
    assert box._words() == "Fits & works"
    box.resize(box.minimumSizeHint())
    box.grab()
