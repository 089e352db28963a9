"""The model card: plain text in types, links only after a question, long ones bit by bit, the way back."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QLabel, QPushButton

from tests.helpers.hub_values import CARD, detail
from ui.panels.hub_card_view import HubCardView
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else


@pytest.fixture
def view(qtbot):
    made = HubCardView(load_theme("dark"))
    qtbot.addWidget(made)
    made.set_detail(detail())
    made.resize(1100, 700)
    made.show()
    made.show_card()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


def texts(view):
    return [label.text().replace("\u200b", "") for label in view.findChildren(QLabel) if label.isVisible()]


def formats(view, words):
    cursor = view.text.document().find(words)
    return cursor.charFormat().font()


def test_headings_code_and_prose_are_told_apart(view):
    assert view.text.toPlainText().startswith(
        "Llamacpp imatrix quantizations of Llama 3.1 8B Instruct\n\nUsing llama.cpp"
    )
    assert formats(view, "Prompt format").bold() or formats(view, "Prompt format").weight() >= 600
    assert formats(view, "{system_prompt}").pixelSize() == 12
    assert formats(view, "Using llama.cpp").pixelSize() == 15
    assert "Model card of Llama-3.1-8B-Instruct" in texts(view)
    assert view.text.isReadOnly()
    assert view.text.textCursor().atStart()


def test_markup_stays_text(view):
    view.set_detail(detail(card_markdown="<img src=x> <b>bold</b>", card_links=()))
    assert view.text.toPlainText() == "<img src=x> <b>bold</b>"
    assert not view.links.isVisible()


def test_a_link_shows_where_it_leads_and_is_opened_only_then(view, qtbot):
    assert [view.links.item(row).text() for row in range(2)] == [
        "Original model · huggingface.co",
        "llama.cpp · github.com",
    ]
    view.links.setFocus()
    view.links.setCurrentRow(1)
    with qtbot.assertNotEmitted(view.link_confirmed):
        view.links.itemActivated.emit(view.links.item(1))
    assert "Open github.com in your browser?" in texts(view)
    with qtbot.waitSignal(view.link_confirmed) as caught:
        view.confirm.findChild(QPushButton, "answer_open").click()
    assert caught.args == ["https://github.com/ggml-org/llama.cpp/releases/tag/b4000"]
    assert view.links.hasFocus()


def test_a_long_card_comes_bit_by_bit_to_its_end(view, qtbot):
    view.set_detail(detail(card_markdown=(CARD * 60) + "\nThe very end."))
    assert "The very end." not in view.text.toPlainText()
    qtbot.waitUntil(lambda: view.text.toPlainText().endswith("The very end."), timeout=PATIENCE_MS)
    assert view.text.toPlainText().count("Prompt format") == 60
    assert view.text.textCursor().position() == 0


def test_it_is_laid_out_only_when_somebody_reads_it(qtbot):
    view = HubCardView(load_theme("dark"))
    qtbot.addWidget(view)
    view.set_detail(detail())
    assert view.text.toPlainText() == ""
    view.show_card()
    assert view.text.toPlainText()
    view.set_detail(detail(card_markdown=""))
    view.show_card()
    assert view.text.toPlainText() == "This model has no card."


def test_esc_and_the_button_lead_back(view, qtbot):
    view.focus_text()
    assert view.text.hasFocus()
    with qtbot.waitSignal(view.left):
        qtbot.keyClick(view, Qt.Key.Key_Escape)
    with qtbot.waitSignal(view.left):
        view._back.click()


def test_another_theme_keeps_the_words(view):
    before = view.text.toPlainText()
    view.set_theme(load_theme("light"))
    assert view.text.toPlainText() == before
    cursor = QTextCursor(view.text.document())
    cursor.movePosition(QTextCursor.MoveOperation.NextCharacter)
    assert cursor.charFormat().foreground().color().name() == load_theme("light").roles["text"]


def test_the_links_go_below_where_there_is_no_room_beside(view, qtbot):
    assert view.links.mapTo(view, view.links.rect().topLeft()).x() > 700
    view.resize(600, 600)
    qtbot.waitUntil(lambda: view.links.mapTo(view, view.links.rect().topLeft()).x() < 100, timeout=PATIENCE_MS)
    assert view.minimumSizeHint().width() <= 560
