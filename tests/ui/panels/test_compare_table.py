"""The table of results: the heading stands in line with the cells, a row's button uses its model."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.helpers import compare_values as values
from ui.models import compare_table_model as model
from ui.panels.compare_table import CompareTable
from ui.theme import load_theme


@pytest.fixture
def table(qtbot):
    made = CompareTable(load_theme("dark"))
    qtbot.addWidget(made)
    plan = values.plan()
    made.runs.set_usable(frozenset(run.run_id for run in plan.runs))
    made.runs.set_result(plan, values.result(plan))
    made.resize(1100, 400)
    made.show()
    return made


def test_the_button_of_a_row_uses_its_model(table, qtbot):
    index = table.runs.index(table.runs.row_of("Q6_K"), model.ACTION)
    with qtbot.waitSignal(table.action_requested) as told:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.button_rect(index).center())
    assert told.args == ["Q6_K"]


def test_enter_uses_the_chosen_row(table, qtbot):
    table.choose("Q4_0")
    with qtbot.waitSignal(table.action_requested) as told:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert told.args == ["Q4_0"]


def test_a_narrow_table_keeps_divergence_and_words(table, qtbot):
    assert not any(table.isColumnHidden(column) for column in range(table.runs.columnCount()))
    table.resize(520, 400)
    shown = {column for column in range(table.runs.columnCount()) if not table.isColumnHidden(column)}
    assert {model.QUANTIZATION, model.KL, model.WORDS, model.ACTION} <= shown
    assert model.SPEED not in shown


def test_no_heading_stands_among_the_rows(table):
    assert table.runs.rowCount() == 7
    assert table.sizeHint().height() >= 7 * table.row_px()
