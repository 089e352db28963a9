"""Ticking quantizations: the reference has no box, a second KV cache is a run of its own."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from tests.helpers.model_entries import fit, ladder
from ui.models import compare_candidates_model as model
from ui.models.compare_choice import Candidate
from ui.models.grouped_table_model import ACTION_ROLE, MARK_ROLE
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"
F16, Q8, Q4 = f"{NAME}:F16", f"{NAME}:Q8_0", f"{NAME}:Q4_K_M"


@pytest.fixture
def rows(qapp):
    made = model.CandidatesModel(load_theme("dark"))
    entries = [entry for entry in ladder() if entry.quantization in ("F16", "Q8_0", "Q4_K_M")]
    made.set_entries(entries, F16, frozenset({F16, Q4}))
    return made


def data(rows, key, column=0, role=Qt.ItemDataRole.DisplayRole):
    return rows.index(rows.row_of(key), column).data(role)


def test_all_candidates_are_ticked_at_first_the_largest_on_top(rows):
    assert rows.keys() == [F16, Q8, Q4]
    assert rows.heading_rows() == []
    assert rows.candidates == (Candidate(Q8), Candidate(Q4))
    assert [data(rows, key, role=model.TICK_ROLE) for key in (F16, Q8, Q4)] == [None, True, True]
    assert data(rows, F16, role=MARK_ROLE) == "reference"


def test_a_tick_is_taken_away_and_given_back(rows, qtbot):
    with qtbot.waitSignal(rows.ticks_changed):
        rows.toggle(Q8)
    assert rows.candidates == (Candidate(Q4),)
    rows.toggle(Q8)
    assert rows.candidates == (Candidate(Q8), Candidate(Q4))


def test_the_reference_cannot_be_ticked(rows, qtbot):
    with qtbot.assertNotEmitted(rows.ticks_changed):
        rows.toggle(F16)
        rows.toggle("gone")
    assert Candidate(F16) not in rows.candidates


def test_a_smaller_kv_cache_is_a_run_of_its_own(rows):
    rows.toggle_kv(F16)
    rows.toggle_kv(Q4)
    assert rows.candidates == (Candidate(F16, "q8_0"), Candidate(Q8), Candidate(Q4), Candidate(Q4, "q8_0"))
    assert data(rows, Q4, model.ACTION, ACTION_ROLE).words() == "KV q8_0 too ✓"
    rows.toggle_kv(Q4)
    assert data(rows, Q4, model.ACTION, ACTION_ROLE).words() == "KV q8_0 too"


def test_a_backend_without_it_offers_none(rows):
    rows.toggle_kv(Q8)
    assert Candidate(Q8, "q8_0") not in rows.candidates
    assert not rows.action_of_key(Q8).can_press
    assert rows.action_of_key(Q8).words() == ""


def test_what_is_too_large_is_said(rows):
    entry = rows.entry_of(F16)
    rows.set_fits({F16: fit(entry, 0)})
    assert "needs" in data(rows, F16, model.HERE)
    assert data(rows, F16, model.HERE, Qt.ItemDataRole.ForegroundRole) == load_theme("dark").color("limit")
    assert data(rows, F16, model.HERE, Qt.ItemDataRole.ToolTipRole)


def test_a_screen_reader_hears_ticks_and_units(rows):
    spoken = Qt.ItemDataRole.AccessibleTextRole
    assert data(rows, F16, role=spoken) == "F16, the reference"
    assert data(rows, Q8, role=spoken) == "Q8_0, ticked"
    rows.toggle(Q8)
    assert data(rows, Q8, role=spoken) == "Q8_0, not ticked"
    assert data(rows, Q8, model.BITS, spoken) == "bits/weight: 8.50"
    assert data(rows, Q4, model.ACTION, spoken) == "KV q8_0 too"
