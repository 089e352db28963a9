"""The publishers side by side, and which of them is open."""

from __future__ import annotations

import datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA
from ui.models.hub_publishers_model import COLUMNS, HubPublishersModel

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)


@pytest.fixture
def model(qapp):
    made = HubPublishersModel()
    made.tester = QAbstractItemModelTester(made)
    made.set_publishers(hub_values.publishers(), LLAMA, NOW)
    return made


def test_the_open_one_is_marked(model):
    assert [model.index(row, 0).data() for row in range(3)] == ["bartowski (shown)", "unsloth", "lmstudio-community"]
    assert model.shown_row() == 0
    assert model.repo_at(1) == "unsloth/Llama-3.1-8B-Instruct-GGUF"
    assert model.repo_at(-1) == model.repo_at(7) == ""


def test_cells_are_heard_with_their_heading(model):
    assert model.index(1, 1).data(Qt.ItemDataRole.AccessibleTextRole) == "importance matrix unknown"
    assert model.index(1, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "unsloth"
    assert "Q2_K, Q3_K_M, Q4_K_M" in model.index(1, 4).data(Qt.ItemDataRole.ToolTipRole)
    assert model.index(1, 3).data(Qt.ItemDataRole.TextAlignmentRole) & int(Qt.AlignmentFlag.AlignRight)
    assert model.index(1, 1).data(Qt.ItemDataRole.DecorationRole) is None


def test_every_column_has_a_heading_and_says_what_it_is(model):
    horizontal = Qt.Orientation.Horizontal
    for section in range(len(COLUMNS)):
        assert model.headerData(section, horizontal)
        assert model.headerData(section, horizontal, Qt.ItemDataRole.ToolTipRole)
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.headerData(0, horizontal, Qt.ItemDataRole.DecorationRole) is None
    assert model.index(9, 0).data() is None
