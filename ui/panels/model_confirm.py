"""A question beside what it is about, instead of a window over it: a sentence, what it means, and the answers.

Knows not what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.i18n import _
from ui.widgets.labels import plain_words
from ui.widgets.wrapped_label import WrappedLabel


@dataclass(frozen=True, slots=True)
class Answer:
    """One button.

    Attributes:
        key: its name in the code.
        words: what stands on it.
        is_danger: whether what it does cannot be undone.
    """

    key: str
    words: str
    is_danger: bool = False


class ConfirmBar(QFrame):
    """The question; hidden until something is asked. "Cancel" is always among the answers and has the focus first.

    Signals:
        answered(key): a person chose an answer; not sent for Cancel.
        asked(): a question is shown.
        left(): the bar is gone, whatever was answered, and the focus was in it: it must go somewhere.
    """

    answered = Signal(str)
    asked = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "notice")
        self.setProperty("level", "warning")
        self._message = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(8)
        self._buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(8)
        column.addWidget(self._message)
        column.addWidget(self._hint)
        column.addLayout(self._buttons)
        self.setAccessibleName(_("Question"))
        self.hide()

    def ask(self, message: str, hint: str, answers: Sequence[Answer], no: str = "") -> None:
        """Ask; a question that was open is forgotten.

        Args:
            message: the question.
            hint: what it means; "" for nothing.
            answers: besides the one that changes nothing.
            no: what stands on that one; "" for "Cancel".
        """
        self._clear()
        self._message.setText(message)
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        cancel = self._add_button(Answer("", no or (_("Cancel") if answers else _("Close"))))
        for answer in answers:
            self._add_button(answer)
        self.setAccessibleDescription(f"{message} {hint}".rstrip())
        self.show()
        if self.isVisible():  # on a screen that was left meanwhile the focus stays where it is
            cancel.setFocus(Qt.FocusReason.OtherFocusReason)
        self.asked.emit()

    def close_question(self) -> None:
        """Take the question away."""
        if self.isHidden():
            return
        focused = self.window().focusWidget()
        had_focus = self.isVisible() and focused is not None and self.isAncestorOf(focused)
        self.hide()
        self._clear()
        if had_focus:
            self.left.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc is Cancel."""
        if event.key() == Qt.Key.Key_Escape:
            self.close_question()
        else:
            super().keyPressEvent(event)

    def _add_button(self, answer: Answer) -> QPushButton:
        button = QPushButton(plain_words(answer.words), self)
        button.setObjectName(f"answer_{answer.key or 'cancel'}")
        button.setProperty("kind", "danger" if answer.is_danger else "")
        button.clicked.connect(self._on_clicked)
        self._buttons.addWidget(button)
        return button

    def _on_clicked(self) -> None:
        button = self.sender()
        key = button.objectName().removeprefix("answer_")
        self.close_question()
        if key != "cancel":
            self.answered.emit(key)

    def _clear(self) -> None:
        for button in self.findChildren(QPushButton):
            self._buttons.removeWidget(button)
            button.setParent(None)
            button.deleteLater()
