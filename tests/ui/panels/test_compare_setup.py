"""The setup page: everything chosen is in one value, every change is told, Start says why it cannot be pressed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.model_entries import ladder
from ui.models.compare_choice import Candidate
from ui.panels.compare_setup import CHATS, MIX, OWN, CompareSetup
from ui.theme import load_theme

NAME = "Llama-3.1-8B-Instruct"
F16, Q8 = f"{NAME}:F16", f"{NAME}:Q8_0"


@pytest.fixture
def setup(qtbot):
    made = CompareSetup(load_theme("dark"))
    qtbot.addWidget(made)
    entries = [entry for entry in ladder() if entry.quantization in ("F16", "Q8_0")]
    made.set_models([NAME, "Qwen3-8B"], NAME)
    made.set_reference({F16: "F16", Q8: "Q8_0"}, F16, "F16 is best.", ("Beware.",))
    made.set_entries(entries, frozenset({Q8}))
    made.resize(900, 700)
    made.show()
    return made


def choose(setup, control, key):
    control.choose(key)
    control.chosen.emit(key)


def test_everything_that_is_chosen_is_one_value(setup):
    setup.table.candidates.toggle_kv(Q8)
    choose(setup, setup._amount, "thorough")
    choose(setup, setup._limit, "0.01")
    choice = setup.choice
    assert (choice.title, choice.reference_key, choice.reference_reason) == (NAME, F16, "F16 is best.")
    assert choice.reference_warnings == ("Beware.",)
    assert choice.candidates == (Candidate(Q8), Candidate(Q8, "q8_0"))
    assert (choice.text, choice.amount, choice.limit_kl) == (MIX, "thorough", 0.01)


def test_the_amount_is_normal_and_the_limit_small_differences_at_first(setup):
    assert (setup.choice.amount, setup.choice.limit_kl) == ("normal", 0.05)


def test_a_change_makes_the_prediction_old(setup, qtbot):
    setup.set_prediction("about 9 minutes")
    assert setup._prediction.text() == "about 9 minutes"
    assert setup._prediction.property("kind") == "predicted"
    with qtbot.waitSignal(setup.changed):
        setup.table.candidates.toggle_kv(Q8)
    assert setup._prediction.text() == ""


def test_start_needs_something_ticked(setup, qtbot):
    with qtbot.waitSignal(setup.start_requested):
        setup.start_button.click()
    setup.table.candidates.toggle(Q8)
    assert not setup.start_button.isEnabled()
    assert setup._prediction.text() == setup.start_button.toolTip() == "Tick at least one quantization."
    assert setup._prediction.property("kind") == "muted"


def test_start_waits_for_the_comparison_under_way(setup):
    setup.set_can_start(False)
    assert setup.start_button.toolTip() == "Another comparison is running."
    setup.set_can_start(True)
    assert setup.start_button.isEnabled()


def test_a_file_is_asked_for_and_named(setup, qtbot):
    with qtbot.waitSignal(setup.file_requested):
        choose(setup, setup._text, OWN)
    assert setup.needs_file
    assert not setup.start_button.isEnabled()
    setup.set_own_text(Path("/home/ada/notes.txt"))
    assert (setup.choice.text, setup.choice.own_path) == (OWN, "/home/ada/notes.txt")
    assert "notes.txt" in setup._text_words.text()
    assert setup.start_button.isEnabled()
    setup.set_own_text(None)
    assert (setup.choice.text, setup.choice.own_path) == (MIX, "")


def test_chats_stay_on_the_machine(setup, qtbot):
    with qtbot.waitSignal(setup.changed):
        choose(setup, setup._text, CHATS)
    assert "on this machine only" in setup._text_words.text()


def test_models_and_references_are_told(setup, qtbot):
    with qtbot.waitSignal(setup.model_chosen) as told:
        setup._model.button.menu().actions()[1].trigger()
    assert told.args == ["Qwen3-8B"]
    with qtbot.waitSignal(setup.reference_chosen) as told:
        setup._reference.button.menu().actions()[1].trigger()
    assert told.args == [Q8]


def test_nothing_is_wider_than_the_smallest_window(setup):
    assert setup.minimumSizeHint().width() <= 960 - 84 - 200
    setup.set_theme(load_theme("light"))
