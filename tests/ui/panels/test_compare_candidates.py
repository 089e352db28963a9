"""The table of candidates by mouse and key: the box ticks, the button adds the smaller KV cache."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.helpers.model_entries import ladder
from ui.models.compare_choice import Candidate
from ui.panels.compare_candidates import CandidatesTable, box_rect
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"
F16, Q8 = f"{NAME}:F16", f"{NAME}:Q8_0"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def table(qtbot):
    made = CandidatesTable(load_theme("dark"))
    qtbot.addWidget(made)
    entries = [entry for entry in ladder() if entry.quantization in ("F16", "Q8_0")]
    made.candidates.set_entries(entries, F16, frozenset({F16, Q8}))
    made.resize(900, 300)
    made.show()
    return made


def index(table, key, column=0):
    return table.candidates.index(table.candidates.row_of(key), column)


def test_a_click_on_the_box_takes_the_tick_away(table, qtbot):
    place = table.box_rect(index(table, Q8)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=place)
    assert table.candidates.candidates == ()
    qtbot.mouseDClick(table.viewport(), LEFT, pos=place)
    qtbot.mouseRelease(table.viewport(), LEFT, pos=place)
    assert len(table.candidates.candidates) <= 1


def test_a_press_that_leaves_the_box_ticks_nothing(table, qtbot):
    qtbot.mousePress(table.viewport(), LEFT, pos=table.box_rect(index(table, Q8)).center())
    qtbot.mouseRelease(table.viewport(), LEFT, pos=table.box_rect(index(table, F16)).center())
    assert table.candidates.candidates == (Candidate(Q8),)


def test_the_reference_has_no_box(table, qtbot):
    qtbot.mouseClick(table.viewport(), LEFT, pos=table.box_rect(index(table, F16)).center())
    assert table.candidates.candidates == (Candidate(Q8),)


def test_space_ticks_and_enter_presses_the_button(table, qtbot):
    table.choose(Q8)
    qtbot.keyClick(table, Qt.Key.Key_Space)
    assert table.candidates.candidates == ()
    qtbot.keyClick(table, Qt.Key.Key_Return)
    assert table.candidates.candidates == (Candidate(Q8, "q8_0"),)


def test_the_button_is_pressed_by_mouse(table, qtbot):
    place = table.button_rect(index(table, F16, table.candidates.action_column)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=place)
    assert Candidate(F16, "q8_0") in table.candidates.candidates


def test_a_ticked_box_is_filled_and_an_empty_one_is_not(table):
    table.choose(F16)
    box = box_rect(table.visualRect(index(table, Q8)))
    corner = box.topLeft() + type(box.topLeft())(4, 3)
    ticked = table.viewport().grab().toImage().pixelColor(corner)
    table.candidates.toggle(Q8)
    empty = table.viewport().grab().toImage().pixelColor(corner)
    assert ticked.lightness() > empty.lightness() + 60
