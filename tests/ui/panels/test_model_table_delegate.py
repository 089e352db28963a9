"""What is painted: the recommended mark in the accent, the chosen row, buttons in their states."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect

from tests.helpers.model_entries import ladder, ladder_fits
from ui.models.model_table_model import ACTION, BITS, QUANTIZATION
from ui.panels.model_table import ModelTable
from ui.theme import load_theme

THEME = load_theme("dark")


@pytest.fixture
def table(qtbot):
    made = ModelTable(THEME)
    qtbot.addWidget(made)
    entries = ladder(fallback_tensors=3)
    made.quantizations.set_fits(ladder_fits(entries))
    made.quantizations.set_entries(entries)
    made.quantizations.set_marks(entries[2].key, entries[3].key)
    made.resize(1100, 400)
    made.show()
    return made


def colours(table, row, column):
    rect = table.visualRect(table.quantizations.index(row, column))
    image = table.viewport().grab(rect).toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_only_the_recommendation_has_the_accent(table):
    accent = THEME.roles["accent"]
    assert accent in colours(table, 4, QUANTIZATION)
    assert accent not in colours(table, 5, QUANTIZATION)
    assert accent not in colours(table, 6, QUANTIZATION)


def test_the_chosen_row_is_filled_and_the_last_one_keeps_round_corners(table):
    raised = THEME.roles["raised"]
    table.choose("Llama-3.1-8B-Instruct:Q2_K")
    assert raised in colours(table, 1, BITS)
    assert raised not in colours(table, 2, BITS)
    table.choose("Llama-3.1-8B-Instruct:F16")
    last = table.visualRect(table.quantizations.index(9, QUANTIZATION))
    image = table.viewport().grab(last).toImage()
    assert image.pixelColor(image.width() - 2, image.height() // 2).name() == raised
    assert image.pixelColor(0, image.height() - 1).name() != raised


def test_a_button_shows_that_it_is_under_the_mouse_and_that_it_is_pressed(table):
    def fill():
        rect = table.button_rect(table.quantizations.index(2, ACTION))
        return table.viewport().grab(QRect(rect.left() + 6, rect.top() + 4, 1, 1)).toImage().pixelColor(0, 0).name()

    rest = fill()
    table._delegate.hovered_row = 2
    hovered = fill()
    table._delegate.pressed_row = 2
    assert len({rest, hovered, fill()}) == 3
    assert (rest, fill()) == (THEME.roles["raised"], THEME.roles["border"])


def test_a_column_is_wide_enough_for_its_words(table):
    width = table._delegate.column_width(table.quantizations, QUANTIZATION)
    assert width > table.fontMetrics().horizontalAdvance("Q4_K_M") + table.fontMetrics().horizontalAdvance("recomm")
    action = table._delegate.column_width(table.quantizations, ACTION)
    assert action > table.fontMetrics().horizontalAdvance("Load anyway…")
