"""The list of what a hub has: rows, marks, more of them, nothing twice."""

from __future__ import annotations

import datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, summary
from ui.models.hub_list_model import MORE, HubListModel, HubListRow, row_of_pick, row_of_summary
from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)


@pytest.fixture
def model(qapp):
    made = HubListModel()
    made.tester = QAbstractItemModelTester(made)
    return made


def rows(*keys):
    return [HubListRow(key, key.upper(), f"about {key}") for key in keys]


def names(model):
    return [model.index(row).data() for row in range(model.rowCount())]


def test_rows_say_what_they_are(model):
    model.set_rows([row_of_summary(summary(gated="auto"), NOW), row_of_summary(summary("a/b"), NOW, is_here=True)])
    first = model.index(0)
    assert first.data() == "Llama-3.1-8B-Instruct"
    assert first.data(SECOND_ROLE).startswith("8.03")
    assert first.data(NAME_MARK_ROLE) == "gated"
    assert model.index(1).data(NAME_MARK_ROLE) == "here"
    assert first.data(FAULTY_ROLE) is False
    assert first.data(Qt.ItemDataRole.AccessibleTextRole).startswith("Llama-3.1-8B-Instruct, gated, 8.03")
    assert LLAMA in first.data(Qt.ItemDataRole.ToolTipRole)
    assert first.data(Qt.ItemDataRole.DecorationRole) is None
    assert model.index(9).data() is None


def test_a_picks_reason_is_heard_and_in_its_tooltip(model):
    pick = hub_values.picked()[0]
    model.set_rows([row_of_pick(pick, is_here=True)])
    assert pick.reason in model.index(0).data(Qt.ItemDataRole.ToolTipRole)
    assert model.index(0).data(NAME_MARK_ROLE) == "here"
    assert model.key_at(0) == pick.repo


def test_the_last_row_asks_for_more_and_goes_when_there_is_none(model):
    model.set_rows(rows("a", "b"), has_more=True)
    assert names(model) == ["A", "B", "More results"]
    assert model.key_at(2) == MORE
    model.set_more_words("Asking for more…")
    assert names(model)[-1] == "Asking for more…"
    model.add_rows(rows("b", "c"), has_more=True)
    assert names(model) == ["A", "B", "C", "More results"]
    model.add_rows(rows("d"))
    assert names(model) == ["A", "B", "C", "D"]
    model.set_more_words("no such row")
    assert names(model)[-1] == "D"
    model.add_rows([])
    assert model.row_of("d") == 3
    assert model.row_of("none") is None
    assert model.key_at(-1) == model.key_at(9) == ""
