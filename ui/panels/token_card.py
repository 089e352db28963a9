"""The card for files that are given only to those who accepted a licence: the licence's page, the token, another try.

Knows no keyring and no hub: it is told where a token is kept, and every wish is a signal. The token is shown to nobody:
it leaves this card once and the field is emptied.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.errors import Words
from app.i18n import _
from ui.panels.hub_link import LinkQuestion, host_text
from ui.widgets.labels import CaptionLabel, plain_words
from ui.widgets.wrapped_label import WrappedLabel

_MAX_TOKEN_CHARACTERS: Final = 500


class TokenCard(QFrame):
    """The card.

    Attributes:
        field: where the token is typed or pasted.
        licence: opens the page where the licence is accepted.
        again: tries again, with the token that is in the field.
        forget: removes the token that is kept.
        question: asked before the licence's page is opened.

    Signals:
        link_confirmed(address): a person saw where the licence's page is and wants it opened.
        token_given(token): a person gave a token, and wants to try again.
        retry_requested(): a person accepted the licence, and wants to try again with what is known.
        forget_requested(): a person wants the kept token removed.
    """

    link_confirmed = Signal(str)
    token_given = Signal(str)
    retry_requested = Signal()
    forget_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._page_url = ""
        self._message = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self.licence = QPushButton(_("Open the licence"))
        self.field = QLineEdit()
        self._where = WrappedLabel(kind="muted")
        self._fault = WrappedLabel(kind="error")
        self.forget = QPushButton(_("Forget the token"))
        self.again = QPushButton(_("I accepted, try again"))
        self.question = LinkQuestion()
        self._build()
        self.set_keeping(has_keyring=True, has_token=False)
        self.licence.clicked.connect(self._on_licence)
        self.question.confirmed.connect(self.link_confirmed)
        self.question.left.connect(self.field.setFocus)
        self.again.clicked.connect(self._on_again)
        self.field.returnPressed.connect(self._on_again)
        self.forget.clicked.connect(self.forget_requested)

    def show_words(self, words: Words, page_url: str) -> None:
        """Say what is in the way.

        Args:
            words: what, and what to do.
            page_url: where the licence is accepted; "" where that is not known.
        """
        self._page_url = page_url
        self._message.setText(words.message)
        self._hint.setText(words.hint)
        self._hint.setVisible(bool(words.hint))
        host = host_text(page_url)
        self.licence.setText(plain_words(_("Licence at {host}…").format(host=host)))
        self.licence.setVisible(bool(host))
        self._fault.hide()
        self.question.close_question()
        self.setAccessibleDescription(f"{words.message} {words.hint}".strip())

    def set_keeping(self, *, has_keyring: bool, has_token: bool, is_silent: bool = False) -> None:
        """Say where a token is kept, and whether one is known already.

        Args:
            has_keyring: whether it is, or would be, in the system's keyring.
            has_token: whether one is known.
            is_silent: whether there is a keyring that does not answer.
        """
        where = _("Kept in the system's keyring.")
        if is_silent:
            where = _("The system's keyring did not answer: kept for this run only.")
        elif not has_keyring:
            where = _("Kept for this session only: no keyring here.")
        self._where.setText(f"{_('A token is known.')} {where}" if has_token else where)
        self.forget.setVisible(has_token)
        self.field.setPlaceholderText(_("Another token") if has_token else _("Token of your account (hf_…)"))

    def show_fault(self, words: Words) -> None:
        """Say that the token could not be kept or was refused."""
        self._fault.setText(f"{words.message} {words.hint}".strip())
        self._fault.show()

    def set_busy(self, is_busy: bool) -> None:
        """Show that it is being tried."""
        for part in (self.field, self.again, self.forget):
            part.setEnabled(not is_busy)
        self.again.setText(plain_words(_("Trying…") if is_busy else _("I accepted, try again")))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let no key that was pressed here reach the table."""
        event.accept()

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.setProperty("kind", "card")
        self.setAccessibleName(_("Gated files"))
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setMaxLength(_MAX_TOKEN_CHARACTERS)
        self.field.setAccessibleName(_("Token"))
        self.field.setMinimumWidth(120)
        self.again.setProperty("kind", "primary")
        self._fault.hide()
        first = QHBoxLayout()
        first.addWidget(self.licence)
        first.addStretch(1)
        entry = QHBoxLayout()
        entry.setSpacing(8)
        entry.addWidget(self.field, 1)
        entry.addWidget(self.again)
        below = QHBoxLayout()
        below.setSpacing(8)
        below.addWidget(self._where, 1)
        below.addWidget(self.forget)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        column.addWidget(CaptionLabel(_("Gated files")))
        column.addWidget(self._message)
        column.addWidget(self._hint)
        column.addLayout(first)
        column.addLayout(entry)
        column.addWidget(self._fault)
        column.addLayout(below)
        column.addWidget(self.question)

    def _on_licence(self) -> None:
        self.question.ask_link(self._page_url)

    def _on_again(self) -> None:
        token = self.field.text().strip()
        self.field.clear()
        if token:
            self.token_given.emit(token)
        else:
            self.retry_requested.emit()
