"""The table of results: a row for each run, the reference first, then from large to small."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.helpers import compare_values as values
from ui.models import compare_table_model as table
from ui.models.grouped_table_model import ACTION_ROLE, IS_RECOMMENDED_ROLE, MARK_ROLE, NOTE_ROLE
from ui.theme import load_theme

RUNS = ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "Q2_K")


@pytest.fixture
def rows(qapp):
    made = table.CompareTableModel(load_theme("dark"))
    plan = values.plan()
    made.set_usable(frozenset(RUNS))
    made.set_result(plan, values.result(plan))
    return made


def told(rows, key, role=Qt.ItemDataRole.DisplayRole):
    row = rows.row_of(key)
    cells = [rows.index(row, column).data(role) for column in range(rows.columnCount())]
    return [cell.replace("\u00a0", " ") if isinstance(cell, str) else cell for cell in cells]


def test_every_run_has_its_row_without_headings(rows):
    assert rows.keys() == list(RUNS)
    assert rows.heading_rows() == []


def test_a_candidate_is_told_in_figures_and_words(rows):
    assert told(rows, "Q4_K_M")[:-1] == [
        *("Q4_K_M", "4.89", "4.58 GiB", "5.83 GiB", "0.0313 (0.028 to 0.034)"),
        *("91.9 %", "2.4 × (2.3 to 2.5)", "small differences"),
    ]


def test_the_reference_is_compared_with_nothing(rows):
    assert told(rows, "F16")[4:8] == ["–", "–", "1 ×", "the reference"]


def test_marks_and_buttons(rows):
    first = rows.index(rows.row_of("Q4_K_M"), 0)
    assert first.data(MARK_ROLE) == "recommended"
    assert first.data(IS_RECOMMENDED_ROLE) is True
    assert rows.index(0, 0).data(MARK_ROLE) == "reference"
    assert rows.action_of_key("Q8_0") is table.UseAction.USE
    rows.set_usable(frozenset({"Q8_0"}))
    assert rows.action_of_key("Q6_K") is table.UseAction.NONE
    assert rows.index(1, 0).data(ACTION_ROLE) is table.UseAction.USE


def test_a_failed_run_and_one_that_was_not_begun_say_so(rows):
    plan = values.plan()
    failed = values.run("Q8_0", failure="The engine ended.", quality=None)
    rows.set_result(plan, values.result(plan, runs=(values.run("F16"), failed)))
    row = rows.row_of("Q8_0")
    assert rows.index(row, table.WORDS).data() == "failed"
    assert rows.index(row, table.WORDS).data(Qt.ItemDataRole.ToolTipRole) == "The engine ended."
    assert rows.index(row, table.WORDS).data(Qt.ItemDataRole.ForegroundRole) == load_theme("dark").color("limit")
    assert rows.action_of_key("Q8_0") is table.UseAction.NONE
    assert told(rows, "Q2_K")[table.WORDS] == "not run yet"
    assert rows.action_of_key("Q2_K") is table.UseAction.NONE


def test_signs_beside_figures_are_explained(rows):
    plan = values.plan(candidates=(values.spec("Q8_0", 8.5, 7.95, fallback_tensors=3),))
    speed = values.msgspec.structs.replace(values.speed(1.7), is_noisy=True)
    rows.set_result(plan, values.result(plan, runs=(values.run("F16"), values.run("Q8_0", speed=speed))))
    for column, words in ((table.BITS, "larger type"), (table.SPEED, "something else")):
        index = rows.index(1, column)
        assert index.data(NOTE_ROLE) == "*"
        assert words in index.data(Qt.ItemDataRole.ToolTipRole)


def test_cells_are_spoken_with_their_heading(rows):
    spoken = told(rows, "Q4_K_M", Qt.ItemDataRole.AccessibleTextRole)
    assert spoken[0] == "Q4_K_M recommended"
    assert spoken[table.KL] == "KL mean, 95 %: 0.0313 (0.028 to 0.034)"
    assert spoken[table.ACTION] == "Use Q4_K_M"


def test_every_column_says_how_its_figures_were_got(rows):
    abouts = [rows.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) for column in range(8)]
    assert all(abouts)
