"""The table shows each entry's facts, aligned, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.models.library import ModelEntry
from ui.models.model_table_model import COLUMNS, ModelTableModel
from ui.theme import load_theme


def entry(name="Smol", fault="", **changes):
    values = {
        "key": f"{name}:Q4_1",
        "name": name,
        "path": Path(f"/m/{name}.gguf"),
        "quantization": "Q4_1",
        "architecture": "llama",
        "size_bytes": 98_900_000,
        "parameters_count": 134_515_008,
        "context_tokens": 8192,
        "origin": "starter",
    }
    return ModelEntry(**{**values, **changes}, fault=fault)


@pytest.fixture
def model(qapp):
    made = ModelTableModel(load_theme("dark"))
    made.tester = QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal)
    return made


def row_texts(model, row):
    return [model.index(row, column).data() for column in range(model.columnCount())]


def test_a_row_holds_the_facts_with_their_units(model):
    model.set_entries([entry()])
    assert row_texts(model, 0) == ["Smol", "Q4_1", "94.3\u00a0MiB", "8,192\u00a0tokens", "comes with Cutaway"]


def test_what_is_not_known_is_a_dash_and_a_fault_is_said(model):
    model.set_entries([entry(fault="Damaged.", quantization="", size_bytes=0, context_tokens=0, origin="folder")])
    assert row_texts(model, 0) == ["Smol", "–", "–", "–", "cannot be used"]
    assert model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole) == "Damaged."
    limit = load_theme("dark").color("limit")
    assert model.index(0, 4).data(Qt.ItemDataRole.ForegroundRole) == limit


def test_numbers_stand_on_the_right_under_their_heading(model):
    model.set_entries([entry()])
    for column, told in enumerate(COLUMNS):
        side = Qt.AlignmentFlag.AlignRight if told.is_number else Qt.AlignmentFlag.AlignLeft
        role = Qt.ItemDataRole.TextAlignmentRole
        assert model.index(0, column).data(role) & side
        assert model.headerData(column, Qt.Orientation.Horizontal, role) & side


def test_rows_are_sorted_by_name_and_found_by_key(model):
    model.set_entries([entry("b"), entry("A"), entry("c")])
    assert [row_texts(model, row)[0] for row in range(3)] == ["A", "b", "c"]
    assert model.row_of("b:Q4_1") == 1
    assert model.row_of("x") is None


def test_markup_in_a_name_or_a_path_stays_text(model):
    model.set_entries([entry("<img src=x>", path=Path("/m/<b>.gguf"))])
    assert row_texts(model, 0)[0] == "<img src=x>"
    assert "<b>.gguf" not in model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
