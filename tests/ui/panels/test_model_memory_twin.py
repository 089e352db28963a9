"""The table twin: the keyboard moves in it, predictions look different, no row is cut."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from tests.helpers.model_entries import entry, fit, measured
from ui.models.model_memory_table import MEASURED, PREDICTED, memory_parts, memory_table
from ui.panels.model_memory_twin import MemoryTwin
from ui.theme import load_theme

FOUND = entry("A", "Q4_0", 4.5)
FIT = fit(FOUND, 16_384)
ROLE = Qt.ItemDataRole


@pytest.fixture
def twin(qtbot):
    made = MemoryTwin(load_theme("dark"))
    qtbot.addWidget(made)
    made.tester = QAbstractItemModelTester(made.numbers, QAbstractItemModelTester.FailureReportingMode.Fatal)
    made.set_table(memory_table(memory_parts(FIT, measured(FOUND, FIT)), is_comparable=True))
    made.show()
    return made


def test_only_predictions_are_italic_and_muted(twin):
    predicted, taken = twin.numbers.index(0, PREDICTED), twin.numbers.index(0, MEASURED)
    assert predicted.data(ROLE.FontRole).italic()
    assert predicted.data(ROLE.ForegroundRole) == load_theme("dark").color("muted")
    assert (taken.data(ROLE.FontRole), taken.data(ROLE.ForegroundRole)) == (None, None)
    twin.set_theme(load_theme("light"))
    assert predicted.data(ROLE.ForegroundRole) == load_theme("light").color("muted")


def test_headings_stand_over_their_numbers(twin):
    sides = [twin.numbers.headerData(column, Qt.Orientation.Horizontal, ROLE.TextAlignmentRole) for column in range(4)]
    assert [bool(side & Qt.AlignmentFlag.AlignRight) for side in sides] == [False, True, True, True]
    words = [twin.numbers.headerData(column, Qt.Orientation.Horizontal) for column in range(4)]
    assert words == ["Owner", "predicted", "measured", "off"]


def test_the_keyboard_moves_in_it_and_new_numbers_keep_the_row(twin, qtbot):
    twin.selectRow(0)
    qtbot.keyClick(twin, Qt.Key.Key_Down)
    assert twin.currentIndex().row() == 1
    twin.set_table(memory_table(memory_parts(FIT, None), is_comparable=True))
    assert twin.currentIndex().row() == 1
    assert not twin.tabKeyNavigation()


def test_no_row_is_cut(twin):
    twin.resize(600, twin.sizeHint().height())
    assert twin.verticalScrollBar().maximum() == 0
    assert twin.accessibleName() == "Memory by owner"
