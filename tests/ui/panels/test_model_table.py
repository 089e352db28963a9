"""The view of the quantizations: headings are skipped, every button has its key, columns give way."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible

from tests.helpers.model_entries import entry, fit, ladder, ladder_fits
from ui.models.model_table_model import ACTION, HERE, QUANTIZATION, SIZE, WHERE, WORDS
from ui.panels.model_table import ModelTable
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"


@pytest.fixture
def table(qtbot):
    made = ModelTable(load_theme("dark"))
    qtbot.addWidget(made)
    entries = ladder()
    made.quantizations.set_fits(ladder_fits(entries))
    made.quantizations.set_entries(entries)
    made.resize(1100, 400)
    made.show()
    return made


def key_of(quantization):
    return f"{NAME}:{quantization}"


def press(qtbot, table, *keys):
    for key in keys:
        qtbot.keyClick(table, key)


def button_place(table, quantization) -> QPoint:
    index = table.quantizations.index(table.quantizations.row_of(key_of(quantization)), ACTION)
    return table.button_rect(index).center()


def test_the_arrows_skip_the_headings(table, qtbot):
    table.choose(key_of("Q3_K_M"))
    told = []
    table.entry_chosen.connect(told.append)
    press(qtbot, table, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Up)
    assert told == [key_of(name) for name in ("Q4_K_M", "Q5_K_M", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M")]


def test_the_ends_are_entries(table, qtbot):
    table.choose(key_of("Q4_K_M"))
    press(qtbot, table, Qt.Key.Key_Home)
    assert table.chosen_entry.quantization == "Q2_K"
    press(qtbot, table, Qt.Key.Key_Up)
    assert table.chosen_entry.quantization == "Q2_K"
    press(qtbot, table, Qt.Key.Key_End, Qt.Key.Key_Down)
    assert table.chosen_entry.quantization == "F16"


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_and_space_press_the_button_of_the_row(table, qtbot, key):
    table.choose(key_of("Q4_K_M"))
    with qtbot.waitSignal(table.action_requested) as caught:
        press(qtbot, table, key)
    assert caught.args == [key_of("Q4_K_M")]


def test_what_is_loaded_or_faulty_has_no_button(table, qtbot):
    faulty = entry(NAME, "Q5_0", 5.5, fault="Gone.")
    table.quantizations.set_entries([*ladder(), faulty])
    table.quantizations.set_marks("", key_of("Q4_K_M"))
    with qtbot.assertNotEmitted(table.action_requested):
        for name in ("Q4_K_M", "Q5_0"):
            table.choose(key_of(name))
            press(qtbot, table, Qt.Key.Key_Return)
            qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=button_place(table, name))


def test_delete_asks_for_the_row(table, qtbot):
    table.choose(key_of("Q6_K"))
    with qtbot.waitSignal(table.delete_requested) as caught:
        press(qtbot, table, Qt.Key.Key_Delete)
    assert caught.args == [key_of("Q6_K")]


def test_a_click_on_a_button_presses_it_once(table, qtbot):
    told = []
    table.action_requested.connect(told.append)
    place = button_place(table, "Q5_K_M")
    qtbot.mouseMove(table.viewport(), place)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert told == [key_of("Q5_K_M")]
    assert table.chosen_entry.quantization == "Q5_K_M"


def test_a_press_that_leaves_the_button_does_nothing(table, qtbot):
    with qtbot.assertNotEmitted(table.action_requested):
        qtbot.mousePress(table.viewport(), Qt.MouseButton.LeftButton, pos=button_place(table, "Q5_K_M"))
        qtbot.mouseRelease(table.viewport(), Qt.MouseButton.LeftButton, pos=button_place(table, "Q6_K"))


def test_a_double_click_beside_the_button_is_as_good(table, qtbot):
    index = table.quantizations.index(table.quantizations.row_of(key_of("Q6_K")), QUANTIZATION)
    place = table.visualRect(index).center()
    with qtbot.waitSignal(table.action_requested) as caught:
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == [key_of("Q6_K")]
    heading = table.visualRect(table.quantizations.index(0, 0)).center()
    with qtbot.assertNotEmitted(table.action_requested):
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=heading)


def test_choosing_from_outside_tells_nothing(table, qtbot):
    with qtbot.assertNotEmitted(table.entry_chosen):
        assert table.choose(key_of("F16"))
        assert not table.choose("nothing")
    assert table.chosen_entry.quantization == "F16"


def test_headings_go_over_the_whole_width(table):
    assert [table.columnSpan(row, 0) for row in (0, 1, 3)] == [8, 1, 8]


def test_columns_give_way_the_least_needed_first(table):
    def hidden():
        return {column for column in range(8) if table.isColumnHidden(column)}

    assert hidden() == set()
    table.resize(860, 400)
    assert WHERE in hidden()
    assert WORDS in hidden() or table.viewport().width() > 800
    table.resize(420, 400)
    assert hidden() >= {WHERE, WORDS, SIZE}
    assert not {QUANTIZATION, HERE, ACTION} & hidden()


def test_all_rows_are_in_sight_up_to_a_bound(table):
    short = table.sizeHint().height()
    assert short >= 10 * table.row_px()
    table.resize(1100, short)
    assert table.verticalScrollBar().maximum() == 0
    table.quantizations.set_entries([entry("A", f"Q{number}", 4.5) for number in range(200)])
    assert table.sizeHint().height() < 20 * table.row_px()
    table.resize(1100, table.sizeHint().height())
    assert table.verticalScrollBar().maximum() > 0


def test_tab_leaves_the_table_and_it_has_a_name(table):
    assert not table.tabKeyNavigation()
    assert QAccessible.queryAccessibleInterface(table).text(QAccessible.Text.Name) == "Quantizations"


def test_another_theme_and_new_fits_repaint(table):
    before = table.grab().toImage()
    table.set_theme(load_theme("light"))
    assert table.grab().toImage() != before
    entries = ladder()
    table.quantizations.set_fits({found.key: fit(found, 0) for found in entries})
    assert table.chosen_entry is None
