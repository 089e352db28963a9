"""A row of a list: the mark is never cut away, a row without a second line stands in the middle."""

from __future__ import annotations

import pytest

from ui.models.hub_list_model import HubListRow
from ui.panels.hub_rows_view import HubRowsView
from ui.theme import load_theme

THEME = load_theme("dark")


@pytest.fixture
def view(qtbot):
    made = HubRowsView("Models", THEME)
    qtbot.addWidget(made)
    made.resize(300, 200)
    made.show()
    return made


def inked(view, row):
    """Return which lines of a row's picture hold text."""
    rect = view.visualRect(view.rows.index(row))
    image = view.viewport().grab(rect).toImage()
    text, muted = THEME.roles["text"], THEME.roles["muted"]
    found = [
        y
        for y in range(image.height())
        if {image.pixelColor(x, y).name() for x in range(image.width())} & {text, muted}
    ]
    return found, image.height()


def test_one_line_stands_in_the_middle_and_two_share_the_row(view):
    view.rows.set_rows([HubListRow("a", "Name", "second line"), HubListRow("b", "Name", "")])
    both, height = inked(view, 0)
    single, _height = inked(view, 1)
    assert min(both) < height / 2 < max(both)
    assert abs((min(single) + max(single)) / 2 - height / 2) < 6


def test_a_mark_is_seen_beside_the_longest_name(view):
    view.rows.set_rows([HubListRow("a", "N" * 200, "", "gated"), HubListRow("b", "N" * 200, "")])
    marked, plain = (view.viewport().grab(view.visualRect(view.rows.index(row))).toImage() for row in (0, 1))
    muted = THEME.roles["muted"]
    right = range(marked.width() - 60, marked.width())

    def has_mark(image):
        return any(image.pixelColor(x, y).name() == muted for x in right for y in range(image.height()))

    assert has_mark(marked)
    assert not has_mark(plain)
    assert view.sizeHintForColumn(0) <= 0
