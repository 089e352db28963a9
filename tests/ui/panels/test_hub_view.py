"""The right side for a hub: one of five states at a time, and the way between them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.errors import Words
from tests.helpers.hub_values import LLAMA, detail, llama_3
from ui.panels.hub_view import HubView
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else


@pytest.fixture
def view(qtbot):
    made = HubView(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1036, 800)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


def texts(view):
    return [label.text().replace("\u200b", "") for label in view.findChildren(QLabel) if label.isVisible()]


def test_the_states_are_one_sentence_each(view):
    assert any(text.startswith("Choose a model at the left") for text in texts(view))
    view.show_loading(LLAMA)
    assert f"Looking at {LLAMA}…" in texts(view)
    view.show_slow(LLAMA)
    assert f"The hub is slow to tell about {LLAMA}. Still waiting…" in texts(view)
    view.set_repo(detail())
    view.show_slow(LLAMA)
    assert view.currentWidget() is view.page


def test_a_fault_offers_to_try_again_where_that_may_help(view, qtbot):
    view.show_fault(Words("No network.", "Check it."), can_retry=True)
    assert "No network. Check it." in texts(view)
    with qtbot.waitSignal(view.retry_requested):
        next(found for found in view.findChildren(QPushButton) if found.isVisible()).click()
    view.show_fault(Words("There is no such model."), can_retry=False)
    assert not any(found.isVisible() for found in view.findChildren(QPushButton))


def test_a_gate_stands_alone_where_nothing_can_be_shown(view, qtbot):
    view.show_gate(Words("Nothing without a token."), "https://huggingface.co/a/b")
    view.focus_table()
    assert view.gate.field.hasFocus()
    qtbot.keyClicks(view.gate.field, "hf_x")
    with qtbot.waitSignal(view.token_given) as caught:
        qtbot.keyClick(view.gate.field, Qt.Key.Key_Return)
    assert caught.args == ["hf_x"]
    with qtbot.waitSignal(view.retry_requested):
        view.gate.again.click()
    with qtbot.waitSignal(view.token_forgotten):
        view.gate.forget.clicked.emit()
    view.set_busy(True)
    assert not view.page.token.field.isEnabled()
    view.set_busy(False)
    view.show_token_fault(Words("No token."))
    assert "No token." in texts(view)


def test_the_card_comes_and_goes_and_stays_while_the_same_repo_is_read(view, qtbot):
    view.set_repo(detail())
    view.page.card_button.click()
    assert view.currentWidget() is view.card
    assert view.card.text.toPlainText()
    view.set_repo(detail())
    assert view.currentWidget() is view.card
    qtbot.keyClick(view.card.text, Qt.Key.Key_Escape)
    assert view.currentWidget() is view.page
    assert view.page.card_button.hasFocus()
    view.page.card_button.click()
    view.set_repo(llama_3())
    assert view.currentWidget() is view.page
    view.focus_table()
    assert view.page.table.hasFocus()
    view.set_theme(load_theme("light"))
