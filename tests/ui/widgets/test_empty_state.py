"""One sentence, at most one action."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton

from ui.widgets.empty_state import EmptyState


def test_the_sentence_is_plain_and_the_button_asks(qtbot):
    state = EmptyState("<b>Nothing</b> here.", "Add & go")
    qtbot.addWidget(state)
    state.show()
    assert state.findChild(QLabel).text() == "<b>Nothing</b> here."
    button = state.findChild(QPushButton)
    assert button.text() == "Add && go"
    with qtbot.waitSignal(state.action_requested, timeout=1000):
        button.click()


def test_without_an_action_there_is_no_button(qtbot):
    state = EmptyState("Nothing.", "Do")
    qtbot.addWidget(state)
    state.show()
    state.show_words("Still nothing.")
    assert not state.findChild(QPushButton).isVisible()
