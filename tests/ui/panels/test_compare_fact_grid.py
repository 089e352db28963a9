"""Facts in columns as there is room, and as a list; each is spoken with its title."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.models.compare_words import Fact
from ui.panels.compare_fact_grid import CompareFactGrid, CompareFactList

FACTS = [Fact(f"title {number}", f"value {number}", f"about {number}") for number in range(7)]


def cells(grid):
    return [cell for cell in grid._cells if cell.isVisible()]


def test_a_wider_grid_has_more_columns(qtbot):
    page, grid = QWidget(), CompareFactGrid()
    qtbot.addWidget(page)
    QVBoxLayout(page).addWidget(grid)
    grid.set_facts(FACTS)
    page.resize(120, 600)
    page.show()
    qtbot.waitUntil(lambda: len({cell.x() for cell in cells(grid)}) == 1)
    page.resize(900, 600)
    qtbot.waitUntil(lambda: len({cell.x() for cell in cells(grid)}) == 6)
    assert len(cells(grid)) == 7


def test_cells_are_spoken_and_explained(qtbot):
    grid = CompareFactGrid()
    qtbot.addWidget(grid)
    grid.set_facts(FACTS[:2])
    grid.show()
    assert [cell.accessibleName() for cell in cells(grid)] == ["title 0: value 0", "title 1: value 1"]
    assert cells(grid)[0].toolTip() == "about 0"
    grid.set_facts(FACTS[:1])
    assert len(cells(grid)) == 1
    grid.set_facts([])
    assert cells(grid) == []


def test_a_list_has_a_line_for_each(qtbot):
    told = CompareFactList()
    qtbot.addWidget(told)
    told.set_facts(FACTS[:3])
    told.set_facts(FACTS[:2])
    told.show()
    words = [label.text() for label in told.findChildren(QLabel) if label.isVisible()]
    assert words == ["title 0", "value 0", "title 1", "value 1"]
