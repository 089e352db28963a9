"""The right side for a hub: one repo, its model card, a gate that a token opens, or one sentence that says why not.

Knows no hub: it is told every state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.errors import Words
from app.hub.recommend import Recommendation
from app.hub.types import RepoDetail
from app.i18n import _
from ui.panels.hub_card_view import HubCardView
from ui.panels.hub_page import HubPage
from ui.panels.token_card import TokenCard
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState

_GATE_PX: Final = 620


class HubView(QStackedWidget):
    """What is shown of the hub at the right.

    Attributes:
        page: one repo.
        card: its model card.
        gate: the token card where there is nothing else to show.

    Signals:
        retry_requested(): a person wants the same repo asked for again.
        link_confirmed(address): a person saw where a link leads and wants it opened.
        token_given(token), token_forgotten(): as the token cards say.
    """

    retry_requested = Signal()
    link_confirmed = Signal(str)
    token_given = Signal(str)
    token_forgotten = Signal()

    def __init__(self, theme: Theme, now: Callable[[], float] = time.time, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.page = HubPage(theme, now)
        self.card = HubCardView(theme)
        self.gate = TokenCard()
        self._state = EmptyState("")
        self._gated = QWidget()
        self._build()
        self._connect()
        self.show_prompt()

    @property
    def cards(self) -> tuple[TokenCard, TokenCard]:
        """Both token cards, which say the same."""
        return self.gate, self.page.token

    def show_prompt(self) -> None:
        """Say what can be done here."""
        self._show_state(_("Choose a model at the left to see which of its quantizations fits this machine."))

    def show_loading(self, name: str) -> None:
        """Say that a repo is being looked at."""
        self._show_state(_("Looking at {name}…").format(name=name))

    def show_slow(self, name: str) -> None:
        """Say that it takes its time."""
        if self.currentWidget() is self._state:
            self._show_state(_("The hub is slow to tell about {name}. Still waiting…").format(name=name))

    def show_fault(self, words: Words, can_retry: bool) -> None:
        """Say why a repo cannot be shown."""
        sentence = f"{words.message} {words.hint}".strip()
        self._show_state(sentence, _("Try again") if can_retry else "")

    def show_gate(self, words: Words, page_url: str) -> None:
        """Ask for a token where nothing can be shown without one."""
        self.gate.show_words(words, page_url)
        self.setCurrentWidget(self._gated)

    def set_repo(self, repo: RepoDetail, wanted: str = "", pick: Recommendation | None = None) -> None:
        """Show a repo; see HubPage.set_repo()."""
        is_same = self.page.repo is not None and self.page.repo.summary.repo == repo.summary.repo
        self.page.set_repo(repo, wanted, pick)
        self.card.set_detail(repo)
        if not (is_same and self.currentWidget() is self.card):
            self.setCurrentWidget(self.page)

    def set_busy(self, is_busy: bool) -> None:
        """Show that a token, or an accepted licence, is being tried."""
        for card in self.cards:
            card.set_busy(is_busy)

    def show_token_fault(self, words: Words) -> None:
        """Say what is wrong with a token that was given."""
        for card in self.cards:
            card.show_fault(words)

    def focus_table(self) -> None:
        """Go to what a person does next here."""
        if self.currentWidget() is self.page:
            self.page.table.setFocus(Qt.FocusReason.OtherFocusReason)
        elif self.currentWidget() is self._gated:
            self.gate.field.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.page.set_theme(theme)
        self.card.set_theme(theme)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        column = QVBoxLayout(self._gated)
        column.setContentsMargins(28, 24, 28, 24)
        column.addStretch(2)
        self.gate.setMaximumWidth(_GATE_PX)
        column.addWidget(self.gate)
        column.setAlignment(self.gate, Qt.AlignmentFlag.AlignHCenter)
        self.gate.setMinimumWidth(300)
        column.addStretch(3)
        for part in (self._state, self.page, self.card, self._gated):
            self.addWidget(part)

    def _connect(self) -> None:
        self._state.action_requested.connect(self.retry_requested)
        self.page.refresh_requested.connect(self.retry_requested)
        self.page.card_requested.connect(self._on_card)
        self.card.left.connect(self._on_back)
        for source in (self.page, self.card, self.gate):
            source.link_confirmed.connect(self.link_confirmed)
        for card in self.cards:
            card.token_given.connect(self.token_given)
            card.retry_requested.connect(self.retry_requested)
            card.forget_requested.connect(self.token_forgotten)

    def _on_card(self) -> None:
        self.card.show_card()
        self.setCurrentWidget(self.card)
        self.card.focus_text()

    def _on_back(self) -> None:
        self.setCurrentWidget(self.page)
        self.page.card_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_state(self, sentence: str, words: str = "") -> None:
        self._state.show_words(sentence, words)
        self.setCurrentWidget(self._state)
