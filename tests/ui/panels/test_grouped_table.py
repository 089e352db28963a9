"""What every table of quantizations does: columns without words are hidden, the last one gets the room it wants."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.helpers.hub_values import detail, download, fits
from ui.models.hub_columns import ACTION, KL
from ui.panels.grouped_table import GroupedTable
from ui.panels.hub_table import HubTable
from ui.theme import load_theme


@pytest.fixture
def table(qtbot):
    made = HubTable(load_theme("dark"))
    qtbot.addWidget(made)
    repo = detail()
    made.quantizations.set_rows(repo.rows, fits(repo), {})
    made.resize(1100, 400)
    made.show()
    return made


def test_a_column_without_words_is_hidden(table, monkeypatch):
    assert table.isColumnHidden(KL)
    monkeypatch.setattr(table, "has_words", lambda _column: True)
    table._fit_columns()
    assert not table.isColumnHidden(KL)
    assert GroupedTable.has_words(table, KL)


def test_the_columns_take_all_the_room_and_the_button_what_it_wants(table):
    for width in (560, 760, 1000, 1360):
        table.resize(width, 400)
        shown = [column for column in range(8) if not table.isColumnHidden(column)]
        assert sum(table.columnWidth(column) for column in shown) == table.viewport().width()
        least, most = table._delegate.action_width(table._rows), table._delegate.most_action_width(table._rows)
        assert least <= table.columnWidth(ACTION) <= most


def test_progress_moves_no_column(table, monkeypatch):
    fitted = []
    monkeypatch.setattr(table, "_fit_columns", lambda: fitted.append(1))
    table.quantizations.set_downloads({"Q4_K_M": download("running")})
    assert fitted == []
    table.quantizations.set_theme(load_theme("light"))
    assert fitted == [1]


def test_the_chosen_key_and_the_ends(table, qtbot):
    assert table.chosen_key == ""
    assert not table.choose("none")
    assert table.choose("Q4_K_M")
    assert table.chosen_key == "Q4_K_M"
    qtbot.keyClick(table, Qt.Key.Key_End)
    assert table.chosen_key == "F16"
    with qtbot.waitSignal(table.delete_requested) as caught:
        qtbot.keyClick(table, Qt.Key.Key_Delete)
    assert caught.args == ["F16"]
