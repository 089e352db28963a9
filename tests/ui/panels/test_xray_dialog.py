"""The window of an X-ray goes from choice to result, and each wish is a signal."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from app.compare.xray_types import XrayProgress
from app.errors import Words
from tests.helpers.xray_values import sample_xray
from ui.panels.xray_dialog import XrayChoice, XrayDialog
from ui.theme import load_theme

CHOICES = (XrayChoice("m:F16", "F16", "258 MB · room for 8k"), XrayChoice("m:Q4_0", "Q4_0", "88 MB · room for 8k"))


@pytest.fixture
def dialog(qtbot):
    made = XrayDialog(load_theme("dark"))
    made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(made)
    made.show()
    return made


def test_a_quantization_is_chosen_with_the_keys(dialog, qtbot):
    dialog.show_choices("An answer.", CHOICES)
    assert dialog.key == "m:F16"
    qtbot.keyClick(dialog.choices, Qt.Key.Key_Down)

    with qtbot.waitSignal(dialog.chosen) as sent:
        dialog.begin_button.click()

    assert sent.args == ["m:Q4_0"]
    dialog.show_choices("An answer.", CHOICES)
    assert dialog.key == "m:Q4_0", "the choice is still there when another one is to be made"


def test_where_there_is_nothing_to_choose_it_is_said(dialog):
    dialog.show_choices("An answer.", (), "There is no other quantization.")

    assert dialog.choices.isHidden()
    assert not dialog.begin_button.isEnabled()
    assert dialog._nothing.isVisible()
    assert dialog.key == ""


def test_a_question_is_answered_for_the_chosen_one(dialog, qtbot):
    dialog.show_choices("An answer.", CHOICES)
    dialog.ask(Words("It needs 3 GB.", "Load it?"))

    with qtbot.waitSignal(dialog.agreed) as sent:
        dialog.question.findChild(QPushButton, "answer_anyway").click()
    assert sent.args == ["m:F16"]

    dialog.ask(Words("It needs 3 GB.", "Load it?"))
    dialog.choices.setCurrentRow(1)
    assert dialog.question.isHidden(), "the question was about the other one"


def test_progress_failure_and_result_take_turns(dialog, qtbot):
    dialog.show_progress(XrayProgress("Loading Q4_0", 0.25))
    assert (dialog.step_text, dialog._bar.value(), dialog._bar.maximum()) == ("Loading Q4_0", 250, 1000)
    dialog.show_progress(XrayProgress("Reading"))
    assert dialog._bar.maximum() == 0
    with qtbot.waitSignal(dialog.stop_requested):
        dialog.cancel_button.click()

    dialog.show_failure(Words("It failed.", "Try again."))
    assert dialog.failure_text == "It failed. Try again."
    assert dialog.step_text == ""
    with qtbot.waitSignal(dialog.choice_requested):
        dialog.retry_button.click()

    dialog.show_xray(sample_xray())
    assert dialog.is_showing
    assert dialog.width() >= 1000
    with qtbot.waitSignal(dialog.choice_requested):
        dialog.view.again_button.click()


def test_escape_and_close_tell_that_the_window_is_gone(dialog, qtbot):
    dialog.show_choices("An answer.", CHOICES)
    with qtbot.waitSignal(dialog.closed):
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    dialog.show()
    dialog.show_xray(sample_xray())
    with qtbot.waitSignal(dialog.closed):
        dialog.view.close_button.click()


def test_another_theme_is_taken_over(dialog):
    dialog.show_choices("An answer.", CHOICES)
    dialog.set_theme(load_theme("light"))
    assert dialog._delegate.theme.name == "light"
