"""The page of the right side: margins follow the width, a column scrolls, and no large screen makes a minimum."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from ui.widgets.wide_page import WIDE_PX, WidePage


@pytest.fixture
def page(qtbot):
    made = WidePage(1000)
    qtbot.addWidget(made)
    made.title, made.part = QLabel("Title"), QLabel("Part")
    made.head.addWidget(made.title)
    made.column.addWidget(made.part)
    made.resize(900, 300)
    made.show()
    return made


def sides(page, widget):
    left = widget.mapTo(page, widget.rect().topLeft()).x()
    return left, page.width() - left - widget.width()


def test_the_margins_follow_the_width(page, qtbot):
    assert page.is_wide
    assert sides(page, page.title) == sides(page, page.part) == (28, 28)
    page.resize(WIDE_PX - 100, 300)
    qtbot.waitUntil(lambda: sides(page, page.part) == (16, 16))
    assert not page.is_wide
    page.resize(2000, 300)
    qtbot.waitUntil(lambda: sides(page, page.title) == (28, 972))
    assert sides(page, page.part) == (28, 972)


def test_a_large_screen_makes_no_large_minimum(page):
    small = page.minimumSizeHint().width()
    page.resize(3800, 300)
    assert page.minimumSizeHint().width() <= small


def test_the_scroll_bar_stands_in_the_margin(page, qtbot):
    page.part.setMinimumHeight(2000)
    bar = page._area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0)
    qtbot.waitUntil(lambda: sides(page, page.part) == (28, 28))
    below = QLabel("Below")
    page.column.addWidget(below)
    qtbot.waitUntil(lambda: below.y() > 1000)
    page.show_part(below)
    assert bar.value() > 0
    page.scroll_to(page.part)
    assert bar.value() == page.part.y()
