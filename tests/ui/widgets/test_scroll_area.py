"""The scrolling area adds nothing a person would see or tab to."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QWidget

from ui.widgets.scroll_area import scrolling


def test_it_scrolls_downwards_only_and_stays_out_of_sight_and_of_the_tab_order(qtbot):
    inside = QWidget()
    inside.setFixedHeight(500)
    area = scrolling(inside)
    qtbot.addWidget(area)
    area.resize(200, 100)
    area.show()
    assert area.verticalScrollBar().maximum() == 400
    assert area.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    assert area.frameShape() is QFrame.Shape.NoFrame
    assert area.focusPolicy() is Qt.FocusPolicy.NoFocus
