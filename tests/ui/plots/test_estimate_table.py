"""Estimates: predicted in italics and muted, measured upright, the distance between them signed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.units import NBSP
from ui.plots.estimate_table import EstimateRow, EstimateTable
from ui.theme import load_theme

MIB = 2**20


@pytest.fixture
def table(qtbot):
    table = EstimateTable()
    qtbot.addWidget(table)
    rows = [EstimateRow("weights", 94 * MIB, 95 * MIB, "the file's header"), EstimateRow("compute", None)]
    table.estimates.set_rows(rows)
    table.set_theme(load_theme("dark"))
    return table


def cells(model, row):
    return [model.data(model.index(row, column)) for column in range(4)]


def test_numbers_stand_beside_each_other(table):
    assert cells(table.estimates, 0) == ["weights", f"94.0{NBSP}MiB", f"95.0{NBSP}MiB", f"+1.1{NBSP}%"]


def test_what_is_not_measured_yet_has_a_dash(table):
    assert cells(table.estimates, 1) == ["compute", "unknown", "–", "–"]
    assert EstimateRow("a", 0, 5).off is None


def test_only_predictions_are_in_italics_and_muted(table):
    model, theme = table.estimates, load_theme("dark")
    predicted, measured = model.index(0, 1), model.index(0, 2)
    assert model.data(predicted, Qt.ItemDataRole.FontRole).italic()
    assert model.data(predicted, Qt.ItemDataRole.ForegroundRole) == theme.color("muted")
    assert model.data(measured, Qt.ItemDataRole.FontRole) is None
    assert model.data(measured, Qt.ItemDataRole.ForegroundRole) is None


def test_every_number_says_how_it_was_got(table):
    model = table.estimates
    assert model.data(model.index(0, 1), Qt.ItemDataRole.ToolTipRole) == "the file's header"
    assert model.data(model.index(0, 2), Qt.ItemDataRole.ToolTipRole) == "Measured here."


def test_columns_are_named_and_numbers_stand_at_the_right(table):
    model = table.estimates
    names = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(4)]
    assert names == ["Owner", "predicted", "measured", "off"]
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.data(model.index(0, 2), Qt.ItemDataRole.TextAlignmentRole) & Qt.AlignmentFlag.AlignRight
    assert model.headerData(2, Qt.Orientation.Horizontal, Qt.ItemDataRole.TextAlignmentRole) & (
        Qt.AlignmentFlag.AlignRight
    )


def test_the_model_keeps_qts_rules(table):
    tester = QAbstractItemModelTester(table.estimates, QAbstractItemModelTester.FailureReportingMode.Fatal)
    table.estimates.set_rows([])
    assert table.estimates.rowCount() == 0
    assert table.estimates.data(QModelIndex()) is None
    tester.deleteLater()
