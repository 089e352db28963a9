"""The list of models: names, facts and marks by role; searched without losing anything; plain text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from tests.helpers.model_entries import entry, fit, ladder, ladder_fits
from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE, ModelListModel

HOSTILE = "<img src=x><b>bold</b>"


@pytest.fixture
def model(qapp):
    made = ModelListModel()
    made.tester = QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal)
    return made


def names(model):
    return [model.index(row).data() for row in range(model.rowCount())]


def test_one_row_is_one_name(model):
    model.set_entries([*ladder(), entry("Gemma", "Q4_0", 4.5)])
    assert names(model) == ["Gemma", "Llama-3.1-8B-Instruct"]
    assert model.row_of("Llama-3.1-8B-Instruct:Q6_K") == 1
    assert model.row_of_name("GEMMA") == 0
    assert (model.row_of("x"), model.row_of_name("x")) == (None, None)


def test_a_row_tells_its_facts_its_mark_and_its_fault(model):
    entries = ladder()
    model.set_entries([*entries, entry("Zeta", "", fault="Gone.")])
    model.set_fits(ladder_fits(entries))
    model.set_loaded(entries[0].key)
    llama, zeta = model.index(0), model.index(1)
    assert llama.data(SECOND_ROLE).endswith("Q2_K, room for 72k tokens")
    assert (llama.data(NAME_MARK_ROLE), llama.data(FAULTY_ROLE)) == ("loaded", False)
    assert (zeta.data(SECOND_ROLE), zeta.data(FAULTY_ROLE)) == ("cannot be used: Gone.", True)
    assert llama.data(Qt.ItemDataRole.AccessibleTextRole).startswith("Llama-3.1-8B-Instruct, loaded, 8.03")


def test_new_fits_repaint_every_row(model, qtbot):
    found = entry("A", "Q4_0", 4.5)
    model.set_entries([found])
    with qtbot.waitSignal(model.dataChanged):
        model.set_fits({found.key: fit(found, 8192)})
    with qtbot.waitSignal(model.dataChanged):
        model.set_loaded(found.key)


def test_a_search_hides_rows_and_new_entries_are_searched_too(model):
    model.set_entries([entry("Alpha", "Q4_0", 4.5), entry("Beta", "Q8_0", 8.5)])
    model.search("beta")
    assert names(model) == ["Beta"]
    model.set_entries([entry("Alpha", "Q4_0", 4.5), entry("Beta 2", "Q8_0", 8.5), entry("Beta", "Q8_0", 8.5)])
    assert names(model) == ["Beta", "Beta 2"]
    assert [found.name for found in model.all_models] == ["Alpha", "Beta", "Beta 2"]
    model.search("nothing")
    assert (names(model), model.is_empty) == ([], False)
    model.search("")
    assert len(names(model)) == 3


def test_markup_stays_text(model):
    model.set_entries([entry(HOSTILE, "Q4_0", 4.5, note=HOSTILE)])
    assert model.index(0).data() == HOSTILE
    assert "<img" not in model.index(0).data(Qt.ItemDataRole.ToolTipRole)


def test_ten_thousand_entries_are_shown_and_searched(model):
    model.set_entries([entry(f"Model {number:05}", "Q4_K_M", 4.9) for number in range(10_000)])
    assert model.rowCount() == 10_000
    model.search("09999")
    assert names(model) == ["Model 09999"]
