"""A question in place: Cancel has the focus, Esc is Cancel, an answer is told once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QWidget

from ui.panels.model_confirm import Answer, ConfirmBar

ANSWERS = (Answer("trash", "Move to trash"), Answer("forever", "Delete forever & ever", is_danger=True))


@pytest.fixture
def bar(qtbot):
    made = ConfirmBar()
    qtbot.addWidget(made)
    made.ask("Delete <b>it</b>?", "It is gone.", ANSWERS)
    made.activateWindow()
    return made


def test_a_question_is_told_to_whoever_must_make_room_for_it(bar, qtbot):
    with qtbot.waitSignal(bar.asked):
        bar.ask("Another?", "", ANSWERS)


def test_on_a_screen_that_was_left_the_focus_is_not_taken(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    hidden = QWidget(window)
    field, bar = QLineEdit(window), ConfirmBar(hidden)
    window.show()
    hidden.hide()
    field.setFocus()
    bar.ask("Delete?", "", ANSWERS)
    assert window.focusWidget() is field
    with qtbot.assertNotEmitted(bar.left):
        bar.close_question()


def buttons(bar):
    return {found.objectName(): found for found in bar.findChildren(QPushButton)}


def test_the_question_and_its_answers_are_shown_as_they_are(bar):
    assert [label.text() for label in bar.findChildren(QLabel)] == ["Delete <b>it</b>?", "It is gone."]
    assert {label.textFormat() for label in bar.findChildren(QLabel)} == {Qt.TextFormat.PlainText}
    assert [found.text() for found in buttons(bar).values()] == ["Cancel", "Move to trash", "Delete forever && ever"]
    assert buttons(bar)["answer_forever"].property("kind") == "danger"
    assert bar.accessibleDescription() == "Delete <b>it</b>? It is gone."


def test_cancel_has_the_focus_first(bar):
    assert bar.focusWidget() is buttons(bar)["answer_cancel"]


def test_an_answer_is_told_once_and_the_bar_is_gone(bar, qtbot):
    told = []
    bar.answered.connect(told.append)
    with qtbot.waitSignal(bar.left):
        buttons(bar)["answer_trash"].click()
    assert told == ["trash"]
    assert bar.isHidden()


@pytest.mark.parametrize("how", ["cancel", "esc"])
def test_cancel_and_esc_answer_nothing(bar, qtbot, how):
    with qtbot.assertNotEmitted(bar.answered), qtbot.waitSignal(bar.left):
        if how == "cancel":
            buttons(bar)["answer_cancel"].click()
        else:
            qtbot.keyClick(bar, Qt.Key.Key_Escape)
    assert bar.isHidden()


def test_a_new_question_takes_the_place_of_the_old_one(bar):
    bar.ask("No.", "", ())
    QApplication.sendPostedEvents()
    assert [found.text() for found in buttons(bar).values()] == ["Close"]
    assert not bar.findChildren(QLabel)[1].isVisible()


def test_closing_a_closed_bar_tells_nothing(bar, qtbot):
    bar.close_question()
    with qtbot.assertNotEmitted(bar.left):
        bar.close_question()


def test_the_answer_that_changes_nothing_may_have_other_words(qtbot):
    bar = ConfirmBar()
    qtbot.addWidget(bar)
    bar.ask("Cancel the download?", "", (Answer("yes", "Yes"),), no="Go back")
    assert bar.findChild(QPushButton, "answer_cancel").text() == "Go back"
