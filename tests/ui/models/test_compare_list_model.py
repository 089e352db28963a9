"""The list of comparisons: newest first, how far each is, a damaged one with its fault."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QDate, Qt

from ui.models.compare_list_model import CompareListModel, ComparisonRow, date_text
from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE


def row(name, created_s, state="done", fault=""):
    return ComparisonRow(name, name.upper(), created_s, state, 2, 3, fault)


@pytest.fixture
def rows(qapp):
    made = CompareListModel()
    made.set_rows([row("a", 1.0), row("b", 3.0, "stopped"), row("c", 2.0, "", "The plan is damaged.")])
    return made


def told(rows, role=Qt.ItemDataRole.DisplayRole):
    return [rows.index(number).data(role) for number in range(rows.rowCount())]


def test_the_newest_stands_on_top(rows):
    assert told(rows) == ["B", "C", "A"]
    assert told(rows, SECOND_ROLE) == [
        *("stopped: 2 of 3 runs done", "cannot be opened: The plan is damaged.", "finished, 2 of 3 runs whole"),
    ]
    assert told(rows, FAULTY_ROLE) == [False, True, False]


def test_a_screen_reader_hears_all_of_a_row(rows):
    spoken = told(rows, Qt.ItemDataRole.AccessibleTextRole)[0]
    assert spoken.startswith("B, ")
    assert spoken.endswith("stopped: 2 of 3 runs done")
    assert "stopped" in told(rows, Qt.ItemDataRole.ToolTipRole)[0]


def test_a_comparison_is_added_or_changed_in_place(rows, qtbot):
    rows.put(row("d", 9.0, "running"))
    assert told(rows) == ["D", "B", "C", "A"]
    with qtbot.waitSignal(rows.dataChanged):
        rows.put(row("d", 9.0, "done"))
    assert rows.row_of("d") == 0
    assert rows.row_of("gone") is None
    assert rows.row_at(9) is None


def test_today_is_a_time_and_another_day_a_date(rows):
    assert ":" in date_text(time.time()) or "." in date_text(time.time())
    assert str(QDate.currentDate().year()) not in date_text(time.time())
    assert "1970" in date_text(1000.0)
    assert told(rows, NAME_MARK_ROLE)[0].endswith("1970")
