"""The left column's tab "Hub": how to sort, what to show, and what a search found, in every state a network can have.

Knows no hub: every wish is a signal, and every state is told to it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Final, cast

import msgspec
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.errors import Words
from app.hub.hub_errors import age_words, stale_words
from app.hub.types import FormatFilter, RepoSummary, SearchPage, SearchQuery, Sort
from app.i18n import _
from app.models.fit_types import Machine
from ui.models.hub_choice import may_fit
from ui.models.hub_list_model import MORE, HubListRow, row_of_summary
from ui.models.hub_words import countdown_text
from ui.panels.hub_rows_view import HubRowsView
from ui.theme import Theme
from ui.widgets.choice_button import ChoiceButton
from ui.widgets.empty_state import EmptyState
from ui.widgets.search_field import SearchField
from ui.widgets.tick_box import TickBox
from ui.widgets.wrapped_label import WrappedLabel

# So long after the last key a search begins by itself: nobody's every letter is asked for.
_SETTLED_MS: Final = 600
_FEWEST_CHARACTERS: Final = 2
_TICK_MS: Final = 1000
_SORTS: Final[tuple[tuple[Sort, Callable[[], str]], ...]] = (
    ("trending", lambda: _("Trending")),
    ("downloads", lambda: _("Most downloads")),
    ("likes", lambda: _("Most liked")),
    ("updated", lambda: _("Newest")),
)
_FORMATS: Final[tuple[tuple[FormatFilter, Callable[[], str]], ...]] = (
    ("gguf", lambda: _("GGUF")),
    ("safetensors", lambda: _("safetensors")),
    ("any", lambda: _("Any format")),
)


class HubListPanel(QWidget):
    """What a search found.

    Attributes:
        search: the field, which stands above the tabs.
        view: the rows.

    Signals:
        search_requested(SearchQuery): a person looks for something; one with a cursor asks for the next page.
        refresh_requested(SearchQuery): the same again, and from the hub itself.
        repo_chosen(repo): a person chose a row.
        entered(): a person wants to go on to the table.
    """

    search_requested = Signal(object)
    refresh_requested = Signal(object)
    repo_chosen = Signal(str)
    entered = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = SearchField(_("Search, or paste a link"), theme)
        self._sort = ChoiceButton({key: words() for key, words in _SORTS}, _("Sort by"), theme)
        self._format = ChoiceButton({key: words() for key, words in _FORMATS}, _("Files"), theme)
        self._fits = TickBox(_("Fits this machine"), theme)
        self._stale = QFrame()
        self._stale_words = WrappedLabel(kind="muted")
        self._stale_again = QPushButton(_("Try again"))
        self.view = HubRowsView(_("Models at the hub"), theme)
        self._state = EmptyState("")
        self._pages = QStackedWidget()
        self._found: list[RepoSummary] = []
        self._here: frozenset[str] = frozenset()
        self._cursor = ""
        self._asked: SearchQuery | None = None
        self._machine: Machine | None = None
        self._action: Callable[[], None] = self._ask
        self._wait_s = 0
        self._wait_words = Words("")
        self._settled = QTimer(self)
        self._settled.setSingleShot(True)
        self._settled.setInterval(_SETTLED_MS)
        self._tick = QTimer(self)
        self._tick.setInterval(_TICK_MS)
        self._build()
        self._connect()
        self.show_prompt()

    # ------------------------------------------------------------------------------------- public

    @property
    def query(self) -> SearchQuery:
        """What is asked for now."""
        return SearchQuery(
            words=self.search.text().strip(),
            sort=cast("Sort", self._sort.key),
            format=cast("FormatFilter", self._format.key),
            fits_only=self._fits.isChecked(),
        )

    def show_prompt(self) -> None:
        """Say what can be typed; nothing is asked of the hub before a person wants it."""
        self._asked = None
        self._show_state(
            _("Type words, a name such as owner/name, or paste a link to a model."),
            _("Show what is popular"),
            self._ask,
        )

    def show_searching(self) -> None:
        """Say that the hub is being asked."""
        if self._asked is not None and self._asked.cursor:
            self.view.rows.set_more_words(_("Asking for more…"))
        else:
            self._show_state(_("Searching…"))

    def show_slow(self) -> None:
        """Say that the hub takes its time; the answer may still come."""
        if self._pages.currentWidget() is self._state and not self._tick.isActive():
            self._show_state(_("The hub is slow to answer. Still waiting…"))

    def show_page(self, page: SearchPage) -> None:
        """Show a page: the first one, or the next below those that are there."""
        self._tick.stop()
        is_next = self._asked is not None and bool(self._asked.cursor)
        self._found = [*self._found, *page.items] if is_next else list(page.items)
        self._cursor = page.next_cursor
        self._show_stale(page)
        if is_next:
            self.view.rows.add_rows(self._worded(page.items), bool(page.next_cursor))
        else:
            self._show_found()
        self._show_whether_empty()

    def show_fault(self, words: Words, retry_after_s: int | None = None, can_retry: bool = True) -> None:
        """Say why there is no answer.

        Args:
            words: why, and what to do.
            retry_after_s: how long the hub wants not to be asked; None when it does not say.
            can_retry: whether trying again may help.
        """
        if self._asked is not None and self._asked.cursor:
            self.view.rows.set_more_words(_("More results: try again"))
            self._stale_words.setText(f"{words.message} {words.hint}".strip())
            self._stale.show()
            return
        self._stale.hide()
        if retry_after_s:
            self._wait_s, self._wait_words = retry_after_s, words
            self._tick.start()
            self._show_wait()
            return
        sentence = f"{words.message} {words.hint}".strip()
        self._show_state(sentence, _("Try again") if can_retry else "", self._ask_again)

    def set_machine(self, machine: Machine) -> None:
        """Take over what there is to fit into now."""
        is_first, self._machine = self._machine is None, machine
        if is_first and self._fits.isChecked() and self._found:
            self._show_found()
            self._show_whether_empty()

    def set_here(self, repos: frozenset[str]) -> None:
        """Say of which repos something is on this machine."""
        if repos != self._here:
            self._here = repos
            if self._found:
                self._show_found()

    def search_for(self, text: str) -> None:
        """Look for something at once."""
        self.search.setText(text)
        self._ask()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for part in (self.view, self.search, self._sort, self._format, self._fits):
            part.set_theme(theme)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._fits.setToolTip(_("Only models of which some quantization may fit into what is free now"))
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(8)
        row.addWidget(self._sort)
        row.addWidget(self._format)
        row.addStretch(1)
        fits = QHBoxLayout()
        fits.setContentsMargins(12, 0, 12, 0)
        fits.addWidget(self._fits)
        fits.addStretch(1)
        stale = QHBoxLayout(self._stale)
        stale.setContentsMargins(16, 0, 12, 0)
        stale.setSpacing(8)
        stale.addWidget(self._stale_words, 1)
        stale.addWidget(self._stale_again)
        self._stale.hide()
        self._pages.addWidget(self.view)
        self._pages.addWidget(self._state)
        middle = QHBoxLayout()
        middle.setContentsMargins(6, 0, 6, 0)
        middle.addWidget(self._pages)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(8)
        column.addLayout(row)
        column.addLayout(fits)
        column.addWidget(self._stale)
        column.addLayout(middle, 1)

    def _connect(self) -> None:
        self.search.textChanged.connect(self._on_text)
        self.search.left_downwards.connect(self._on_left_downwards)
        self._settled.timeout.connect(self._ask)
        self._tick.timeout.connect(self._on_tick)
        self._sort.chosen.connect(self._on_choice)
        self._format.chosen.connect(self._on_choice)
        self._fits.toggled.connect(self._on_fits)
        self._state.action_requested.connect(self._on_state_action)
        self._stale_again.clicked.connect(self._ask_again)
        self.view.repo_chosen.connect(self.repo_chosen)
        self.view.entered.connect(self.entered)
        self.view.more_requested.connect(self._on_more)

    # ------------------------------------------------------------------------------------- slots

    def _on_text(self, text: str) -> None:
        words = text.strip()
        if len(words) >= _FEWEST_CHARACTERS:
            self._settled.start()
            return
        self._settled.stop()
        if not words:
            self.show_prompt()

    def _on_left_downwards(self) -> None:
        """Enter or Down: search for what was typed, or go on to what was found."""
        query = self.query
        if self._asked is None or query != msgspec.structs.replace(self._asked, cursor=""):
            self._ask()
        elif self._pages.currentWidget() is self.view:
            self.view.setFocus()
            if not self.view.currentIndex().isValid():
                self.view.setCurrentIndex(self.view.rows.index(0))

    def _on_choice(self, _key: str) -> None:
        if self._asked is not None:
            self._ask()

    def _on_fits(self, _is_on: bool) -> None:
        if self._asked is not None:
            self._asked = msgspec.structs.replace(self._asked, fits_only=self._fits.isChecked())
        if self._found:
            self._show_found()
            self._show_whether_empty()

    def _on_more(self) -> None:
        if self._cursor and self._asked is not None:
            self._asked = msgspec.structs.replace(self._asked, cursor=self._cursor)
            self.search_requested.emit(self._asked)

    def _on_tick(self) -> None:
        self._wait_s -= 1
        if self._wait_s <= 0:
            self._tick.stop()
        self._show_wait()

    def _on_state_action(self) -> None:
        self._action()

    # ------------------------------------------------------------------------------------- helpers

    def _ask(self) -> None:
        self._settled.stop()
        self._tick.stop()
        self._asked = self.query
        self.search_requested.emit(self._asked)

    def _ask_again(self) -> None:
        self._settled.stop()
        self._tick.stop()
        self._asked = self.query
        self.refresh_requested.emit(self._asked)

    def _show_found(self) -> None:
        self.view.rows.set_rows(self._worded(self._found), bool(self._cursor))

    def _worded(self, items: Sequence[RepoSummary]) -> list[HubListRow]:
        now = datetime.datetime.now(datetime.UTC)
        is_open = not self._fits.isChecked()
        shown = (one for one in items if is_open or may_fit(one, self._machine))
        return [row_of_summary(one, now, one.repo in self._here) for one in shown]

    def _show_whether_empty(self) -> None:
        if self.view.rows.rowCount() and self.view.rows.key_at(0) != MORE:
            self._pages.setCurrentWidget(self.view)
        elif self._found:
            action = self._on_more if self._cursor else None
            self._show_state(_("None of what was found fits this machine."), _("More results"), action)
        else:
            self._show_state(
                _("The hub has no model with these words and this filter."), _("Clear the search"), self._clear
            )

    def _clear(self) -> None:
        self.search.clear()
        self.search.setFocus()

    def _show_stale(self, page: SearchPage) -> None:
        self._stale.setVisible(page.is_stale)
        if page.is_stale:
            self._stale_words.setText(stale_words(page.fault, page.age_s))
            self._stale_words.setToolTip(age_words(page.age_s))

    def _show_wait(self) -> None:
        words = self._wait_words.message
        if self._wait_s > 0:
            self._state.show_words(f"{words} {countdown_text(self._wait_s)}")
        else:
            self._state.show_words(words, _("Try again"))
            self._action = self._ask_again
        self._pages.setCurrentWidget(self._state)

    def _show_state(self, sentence: str, words: str = "", action: Callable[[], None] | None = None) -> None:
        self._tick.stop()
        self._state.show_words(sentence, words if action is not None else "")
        if action is not None:
            self._action = action
        self._pages.setCurrentWidget(self._state)
