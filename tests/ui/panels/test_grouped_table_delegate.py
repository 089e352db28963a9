"""What all tables paint alike: words that fit, a button over the whole cell, columns as wide as their words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetrics

from tests.helpers.hub_values import detail, fits
from ui.models.hub_columns import SIZE
from ui.panels.grouped_table_delegate import PAD_PX, GroupedTableDelegate
from ui.panels.hub_table import HubTable
from ui.theme import load_theme, ui_font


@pytest.fixture
def table(qtbot):
    made = HubTable(load_theme("dark"))
    qtbot.addWidget(made)
    repo = detail()
    made.quantizations.set_rows(repo.rows, fits(repo), {})
    return made


def test_a_column_is_as_wide_as_its_widest_word(table):
    model, delegate = table.quantizations, table._delegate
    widest = max(QFontMetrics(ui_font()).horizontalAdvance(model.index(row, SIZE).data() or "") for row in range(10))
    assert delegate.column_width(model, SIZE) >= widest + 2 * PAD_PX


def test_words_end_in_an_ellipsis_where_they_do_not_fit(table):
    delegate = GroupedTableDelegate(load_theme("dark"))
    index = table.quantizations.index(1, SIZE)
    metrics = QFontMetrics(ui_font())
    assert delegate.shown_text(index, metrics, 500) == index.data()
    assert delegate.shown_text(index, metrics, 30).endswith("…")


def test_the_button_fills_its_cell_unless_a_subclass_says_otherwise(table):
    delegate = GroupedTableDelegate(load_theme("dark"))
    cell = QRect(0, 0, 100, 32)
    button = delegate.button_rect(cell, table.quantizations.index(1, SIZE))
    assert (button.left(), button.right()) == (PAD_PX, 99 - PAD_PX)
    assert cell.contains(button)
    with pytest.raises(NotImplementedError):
        delegate.action_width(table.quantizations)
    with pytest.raises(NotImplementedError):
        delegate.most_action_width(table.quantizations)
