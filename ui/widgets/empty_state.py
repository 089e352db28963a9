"""What a screen shows while it has nothing to show: one sentence and at most one action.

Knows not why there is nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from ui.widgets.labels import plain_words
from ui.widgets.wrapped_label import WrappedLabel

# Longer lines than this are tiring to read.
_MAX_WIDTH_PX = 420

# A stretch beside which the empty sides count only once the sentence has its full width.
_ALL_THE_ROOM = 1000


class EmptyState(QWidget):
    """One sentence in the middle, with one button under it.

    Signals:
        action_requested(): the button was pressed.
    """

    action_requested = Signal()

    def __init__(self, sentence: str, action_text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sentence = WrappedLabel(kind="muted")
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._sentence.setMaximumWidth(_MAX_WIDTH_PX)
        self._button = QPushButton()
        self._button.clicked.connect(self._on_clicked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 24, 16, 24)
        layout.setSpacing(16)
        layout.addStretch(2)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._sentence, _ALL_THE_ROOM)
        row.addStretch(1)
        layout.addLayout(row)
        layout.addWidget(self._button, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(3)
        self.show_words(sentence, action_text)

    def show_words(self, sentence: str, action_text: str = "") -> None:
        """Say something else; without words for the action there is no button."""
        self._sentence.setText(sentence)
        self._button.setText(plain_words(action_text))
        self._button.setVisible(bool(action_text))

    def _on_clicked(self) -> None:
        self.action_requested.emit()
