"""A fold: closed at first, opened by its line, by key too."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from ui.panels.compare_fold import CompareFold
from ui.theme import load_theme


def test_the_line_opens_and_closes(qtbot):
    inside = QLabel("hidden words")
    fold = CompareFold("Conditions & more", inside, load_theme("dark"))
    qtbot.addWidget(fold)
    fold.show()
    assert inside.isHidden()
    assert fold.button.accessibleName() == "Conditions & more"
    with qtbot.waitSignal(fold.toggled) as told:
        qtbot.keyClick(fold.button, Qt.Key.Key_Space)
    assert told.args == [True]
    assert inside.isVisible()
    fold.set_theme(load_theme("light"))
    fold.set_open(False)
    assert not fold.is_open
    assert inside.isHidden()
