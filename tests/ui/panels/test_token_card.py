"""The card for gated files: the token is never seen, goes out once, and it is said where it is kept."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton

from app.errors import Words
from ui.panels.token_card import TokenCard

PATIENCE_MS = 60_000  # of a machine that is busy with much else

PAGE = "https://huggingface.co/meta-llama/Llama-3"
SECRET = "hf_" + "a" * 34


@pytest.fixture
def card(qtbot):
    made = TokenCard()
    qtbot.addWidget(made)
    made.show_words(Words("A licence must be accepted.", "Accept it there."), PAGE)
    made.resize(600, 300)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


def texts(card):
    return [label.text().replace("\u200b", "") for label in card.findChildren(QLabel) if label.isVisible()]


def test_it_says_what_is_in_the_way(card):
    assert "A licence must be accepted." in texts(card)
    assert "Accept it there." in texts(card)
    assert card.licence.text() == "Licence at huggingface.co…"


def test_the_token_is_hidden_and_goes_out_once(card, qtbot):
    assert card.field.echoMode() is QLineEdit.EchoMode.Password
    card.field.setFocus()
    qtbot.keyClicks(card.field, f"  {SECRET} ")
    with qtbot.waitSignal(card.token_given) as caught:
        qtbot.keyClick(card.field, Qt.Key.Key_Return)
    assert caught.args == [SECRET]
    assert card.field.text() == ""
    assert SECRET not in " ".join([*texts(card), card.accessibleName(), card.accessibleDescription()])


def test_without_a_token_it_tries_again_with_what_is_known(card, qtbot):
    with qtbot.waitSignal(card.retry_requested), qtbot.assertNotEmitted(card.token_given):
        card.again.click()


def test_it_says_where_a_token_is_kept(card, qtbot):
    assert "Kept in the system's keyring." in texts(card)
    assert not card.forget.isVisible()
    card.set_keeping(has_keyring=False, has_token=True)
    assert "A token is known. Kept for this session only: no keyring here." in texts(card)
    card.set_keeping(has_keyring=False, has_token=True, is_silent=True)
    assert "A token is known. The system's keyring did not answer: kept for this run only." in texts(card)
    with qtbot.waitSignal(card.forget_requested):
        card.forget.click()


def test_the_licence_is_opened_only_after_its_host_was_seen(card, qtbot):
    with qtbot.assertNotEmitted(card.link_confirmed):
        card.licence.click()
    assert "Open huggingface.co in your browser?" in texts(card)
    with qtbot.waitSignal(card.link_confirmed) as caught:
        card.question.findChild(QPushButton, "answer_open").click()
    assert caught.args == [PAGE]
    assert card.field.hasFocus()


def test_a_refused_token_is_said_and_a_try_is_shown(card):
    card.show_fault(Words("This cannot be a token.", "Copy it again."))
    assert "This cannot be a token. Copy it again." in texts(card)
    card.set_busy(True)
    assert card.again.text() == "Trying…"
    assert not card.field.isEnabled()
    card.set_busy(False)
    assert card.field.isEnabled()
    card.show_words(Words("Again."), "")
    assert "This cannot be a token. Copy it again." not in texts(card)
    assert not card.licence.isVisible()


def test_no_key_of_it_reaches_what_is_around_it(card):
    event = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Delete, Qt.KeyboardModifier.NoModifier)
    event.ignore()
    card.keyPressEvent(event)
    assert event.isAccepted()
