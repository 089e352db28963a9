"""The table of quantizations: groups, figures with their origin, marks, actions, faults, plain text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.models.fit_words import fit_short
from app.units import NBSP
from tests.helpers.model_entries import entry, fit, ladder, ladder_fits
from ui.models.model_table_model import (
    ACTION,
    ACTION_ROLE,
    BITS,
    COLUMNS,
    HERE,
    IS_RECOMMENDED_ROLE,
    MARK_ROLE,
    NOTE_ROLE,
    QUANTIZATION,
    SIZE,
    SPEED,
    WHERE,
    WORDS,
    Action,
    ModelTableModel,
)
from ui.theme import load_theme

ROLE = Qt.ItemDataRole


@pytest.fixture
def model(qapp):
    made = ModelTableModel(load_theme("dark"))
    made.tester = QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal)
    return made


def firsts(model):
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def cell(model, key, column, role=ROLE.DisplayRole):
    return model.index(model.row_of(key), column).data(role)


def test_rows_stand_under_three_headings_by_bits_per_weight(model):
    model.set_entries(reversed(ladder()))
    assert firsts(model) == [
        *("Small", "Q2_K", "Q3_K_M", "Balanced", "Q4_K_M", "Q5_K_M", "Large", "Q6_K", "Q8_0", "F16")
    ]
    assert model.heading_rows() == [0, 3, 6]


def test_a_heading_cannot_be_chosen_and_has_no_entry(model):
    model.set_entries(ladder())
    assert model.index(0, 0).flags() == Qt.ItemFlag.NoItemFlags
    assert model.index(1, 0).flags() & Qt.ItemFlag.ItemIsSelectable
    assert model.entry_at(0) is None
    assert model.action_of(0) is Action.NONE


def test_a_row_holds_the_facts_with_their_units(model):
    found = entry("A", "Q4_K_M", 4.89, origin="lm_studio")
    model.set_entries([found])
    fitting = fit(found, 17_000, 34.2)
    model.set_fits({found.key: fitting})
    texts = [cell(model, found.key, column) for column in range(len(COLUMNS))]
    assert texts == [
        *("Q4_K_M", "small differences", "4.89", f"4.57{NBSP}GiB", fit_short(fitting), "34.2", "LM Studio", "")
    ]


def test_a_predicted_speed_is_italic_and_muted_and_a_measured_one_upright(model):
    found, theme = entry("A", "Q4_0", 4.5), load_theme("dark")
    model.set_entries([found])
    model.set_fits({found.key: fit(found, 8192, 7.0)})
    assert cell(model, found.key, SPEED, ROLE.FontRole).italic()
    assert cell(model, found.key, SPEED, ROLE.ForegroundRole) == theme.color("muted")
    assert cell(model, found.key, SPEED, ROLE.ToolTipRole).startswith("Predicted")
    model.set_fits({found.key: fit(found, 8192, 7.0, is_speed_measured=True)})
    assert cell(model, found.key, SPEED, ROLE.FontRole) is None
    assert cell(model, found.key, SPEED, ROLE.ForegroundRole) == theme.color("text")
    assert cell(model, found.key, SPEED, ROLE.ToolTipRole) == "Measured here."


def test_what_is_not_known_is_a_dash(model):
    found = entry("A", "", 0.0, parameters_count=0)
    model.set_entries([found])
    assert firsts(model) == ["Other", "–"]
    assert [cell(model, found.key, column) for column in (WORDS, BITS, SIZE, HERE, SPEED)] == ["–"] * 5


def test_tensors_that_fell_back_are_marked_and_explained(model):
    one, none = entry("A", "Q2_K", 3.4, fallback_tensors=1), entry("B", "Q2_K", 3.3)
    many = entry("C", "Q2_K", 3.5, fallback_tensors=1200)
    model.set_entries([one, none, many])
    assert [cell(model, found.key, BITS, NOTE_ROLE) for found in (one, none, many)] == ["*", "", "*"]
    assert cell(model, one.key, BITS, ROLE.ToolTipRole).startswith("1 tensor is stored in a larger type")
    assert cell(model, many.key, BITS, ROLE.ToolTipRole).startswith("1,200 tensors are stored")
    assert cell(model, none.key, BITS, ROLE.ToolTipRole) is None


def test_a_fault_has_a_group_of_its_own_and_no_action(model):
    good, bad = entry("A", "Q4_0", 4.5), entry("A", "Q5_0", 5.5, fault="Part 2 is not there.")
    model.set_entries([bad, good])
    assert firsts(model) == ["Balanced", "Q4_0", "Cannot be used", "Q5_0"]
    assert cell(model, bad.key, HERE) == "cannot be used"
    assert cell(model, bad.key, HERE, ROLE.ForegroundRole) == load_theme("dark").color("limit")
    assert cell(model, bad.key, QUANTIZATION, ROLE.ToolTipRole) == "Part 2 is not there."
    assert cell(model, bad.key, ACTION, ACTION_ROLE) is Action.NONE


def test_what_fits_is_used_and_what_does_not_is_loaded_anyway(model):
    entries = ladder()
    fits = ladder_fits(entries) | {entries[1].key: fit(entries[1], None)}
    model.set_entries(entries)
    model.set_fits(fits)
    model.set_marks("", entries[0].key)
    actions = [cell(model, found.key, ACTION, ACTION_ROLE) for found in entries]
    assert actions == [Action.LOADED, Action.ANYWAY, *[Action.USE] * 4, Action.ANYWAY]
    assert [action.can_press for action in (Action.USE, Action.ANYWAY, Action.LOADED, Action.NONE)] == [
        *(True, True, False, False)
    ]
    assert [action.words() for action in Action] == ["Use", "Loaded", "Load anyway…", ""]


def test_the_recommended_and_the_loaded_one_are_marked(model):
    entries = ladder()
    model.set_entries(entries)
    model.set_marks(entries[2].key, entries[0].key)
    assert cell(model, entries[2].key, QUANTIZATION, MARK_ROLE) == "recommended"
    assert cell(model, entries[2].key, QUANTIZATION, IS_RECOMMENDED_ROLE)
    assert cell(model, entries[0].key, QUANTIZATION, MARK_ROLE) == "loaded"
    assert cell(model, entries[1].key, QUANTIZATION, MARK_ROLE) == ""


def test_a_screen_reader_hears_units_and_actions(model):
    found = entry("A", "Q4_0", 4.5)
    model.set_entries([found])
    model.set_fits({found.key: fit(found, 8192, 7.0)})
    model.set_marks(found.key, "")
    spoken = [cell(model, found.key, column, ROLE.AccessibleTextRole) for column in (QUANTIZATION, BITS, SPEED, ACTION)]
    assert spoken == ["Q4_0 recommended", "4.50 bits/weight", "7.00 tokens/s, predicted", "Use Q4_0"]
    model.set_fits({found.key: fit(found, 8192, 7.0, is_speed_measured=True)})
    assert cell(model, found.key, SPEED, ROLE.AccessibleTextRole) == "7.00 tokens/s"
    model.set_marks("", found.key)
    assert cell(model, found.key, ACTION, ROLE.AccessibleTextRole) == "Loaded"


def test_numbers_stand_on_the_right_under_their_heading(model):
    model.set_entries(ladder())
    for column, told in enumerate(COLUMNS):
        side = Qt.AlignmentFlag.AlignRight if told.is_number else Qt.AlignmentFlag.AlignLeft
        assert model.index(1, column).data(ROLE.TextAlignmentRole) & side
        assert model.headerData(column, Qt.Orientation.Horizontal, ROLE.TextAlignmentRole) & side


def test_every_heading_says_how_its_figures_were_got(model):
    told = [model.headerData(column, Qt.Orientation.Horizontal, ROLE.ToolTipRole) for column in range(ACTION)]
    assert all(told)
    assert model.headerData(ACTION, Qt.Orientation.Horizontal, ROLE.AccessibleTextRole) == "Action"
    assert model.headerData(0, Qt.Orientation.Vertical) is None


def test_markup_in_strangers_words_stays_text(model):
    bad = "<img src=x><b>"
    found = entry("A", bad, 4.5, path=Path(f"/m/{bad}.gguf"))
    model.set_entries([found, replace(found, key="b", fault=bad)])
    assert firsts(model)[1] == bad
    for row in range(model.rowCount()):
        for column in range(len(COLUMNS)):
            assert "<img" not in (model.index(row, column).data(ROLE.ToolTipRole) or "")
    assert cell(model, found.key, WHERE, ROLE.ToolTipRole).startswith("<qt>/m/&lt;img")


def test_another_theme_repaints(model, qtbot):
    model.set_entries(ladder())
    with qtbot.waitSignal(model.dataChanged):
        model.set_theme(load_theme("light"))
    assert cell(model, ladder()[0].key, WORDS, ROLE.ForegroundRole) == load_theme("light").color("muted")


def test_ten_thousand_quantizations_are_rows(model):
    model.set_entries([entry("A", f"Q{number}", 4.5) for number in range(10_000)])
    assert model.rowCount() == 10_001
