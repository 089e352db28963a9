"""The window that makes quantizations: it can only be begun when everything for it is there."""

from __future__ import annotations

import pytest

from app.errors import Words
from tests.helpers.quantize_states import GIB, planned
from ui.panels.quantize_dialog import BUNDLED, NONE, OWN, QuantizeDialog
from ui.theme import load_theme


@pytest.fixture
def dialog(qtbot):
    made = QuantizeDialog(load_theme("light"))
    qtbot.addWidget(made)
    made.show_source("Llama", "F16 · 15.0 GiB", "/models")
    made.set_room(20 * GIB, 10**9)
    made.show_planned(planned(), {"Q4_0"}, "")
    made.show()
    return made


def test_it_begins_only_with_something_ticked(dialog, qtbot) -> None:
    assert not dialog.make_button.isEnabled()
    dialog.rows.boxes["Q8_0"].click()
    assert dialog.make_button.text() == "Make"
    dialog.rows.boxes["Q6_K"].click()
    assert dialog.make_button.text() == "Make 2 files"
    with qtbot.waitSignal(dialog.make_requested):
        dialog.make_button.click()


def test_too_little_room_keeps_it_from_beginning(dialog) -> None:
    dialog.rows.boxes["Q8_0"].click()
    dialog.set_room(8 * GIB, 10**9)
    assert not dialog.make_button.isEnabled()
    dialog.set_room(None, 10**9)  # not known: the write will tell
    assert dialog.make_button.isEnabled()


def test_a_quantized_source_must_be_agreed_to(dialog) -> None:
    dialog.show_planned(planned(), (), "This source is quantized itself.")
    dialog.rows.boxes["Q8_0"].click()
    assert not dialog.make_button.isEnabled()
    dialog.agreement.click()
    assert dialog.make_button.isEnabled()


def test_small_quantizations_need_an_importance_matrix(dialog, qtbot) -> None:
    dialog.rows.boxes["IQ2_M"].click()
    assert not dialog.make_button.isEnabled()
    dialog.importance.choose(BUNDLED)
    dialog.importance.chosen.emit(BUNDLED)
    assert dialog.make_button.isEnabled()
    dialog.importance.choose(OWN)
    with qtbot.waitSignal(dialog.file_requested):
        dialog.importance.chosen.emit(OWN)
    assert not dialog.make_button.isEnabled()
    dialog.set_own_file("novel.txt")
    assert dialog.make_button.isEnabled()
    dialog.set_own_file("")
    assert dialog.importance.key == NONE


def test_progress_is_shown_and_can_be_ended(dialog, qtbot) -> None:
    dialog.rows.boxes["Q8_0"].click()
    dialog.show_step("Making Q8_0", 0.5)
    assert dialog.is_busy
    assert dialog.words.startswith("Making Q8_0 · 50")
    assert not dialog.make_button.isEnabled()
    assert not dialog.rows.isEnabled()
    with qtbot.waitSignal(dialog.cancel_requested):
        dialog.cancel_button.click()
    dialog.show_cancelling()
    assert dialog.words == "Ending…"
    dialog.show_end(Words("It went wrong.", "Try again."), is_fault=True)
    assert dialog.words == "It went wrong. Try again."
    assert not dialog.is_busy
    assert dialog.cancel_button.isHidden()
    dialog.set_theme(load_theme("dark"))
