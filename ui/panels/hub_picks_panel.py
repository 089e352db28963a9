"""The left column's tab "Picked for you": some good models that fit this machine, from a list that comes with Cutaway.

Knows no list and no machine: it is given picks. The hub is asked nothing before a person chooses one.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.hub.curated import Pick
from app.i18n import _
from ui.models.hub_list_model import row_of_pick
from ui.panels.hub_rows_view import HubRowsView
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.wrapped_label import WrappedLabel


class HubPicksPanel(QWidget):
    """The picks, the most suitable first.

    Attributes:
        view: the rows.

    Signals:
        repo_chosen(repo): a person chose one.
        entered(): a person wants to go on to the table.
        search_requested(): a person wants to look at the hub instead.
    """

    repo_chosen = Signal(str)
    entered = Signal()
    search_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picks: list[Pick] = []
        self._here: frozenset[str] = frozenset()
        self.view = HubRowsView(_("Picked for you"), theme)
        self._state = EmptyState("")
        self._pages = QStackedWidget()
        self._about = WrappedLabel(kind="muted")
        self._pages.addWidget(self.view)
        self._pages.addWidget(self._state)
        middle = QHBoxLayout()
        middle.setContentsMargins(6, 0, 6, 0)
        middle.addWidget(self._pages)
        foot = QHBoxLayout()
        foot.setContentsMargins(16, 4, 16, 8)
        foot.addWidget(self._about)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(middle, 1)
        column.addLayout(foot)
        self._about.hide()
        self.view.repo_chosen.connect(self.repo_chosen)
        self.view.entered.connect(self.entered)
        self._state.action_requested.connect(self.search_requested)
        self.show_looking()

    def show_looking(self) -> None:
        """Say that it is being worked out."""
        self._state.show_words(_("Looking at what this machine has…"))
        self._pages.setCurrentWidget(self._state)

    def set_picks(self, picks: Sequence[Pick], as_of: str) -> None:
        """Show these.

        Args:
            picks: the most suitable first.
            as_of: the day the list was made, as ISO 8601; "" when it is not known.
        """
        self._picks = list(picks)
        self._about.setText(_("Picked on {day}. Nothing is asked of the hub until you choose one.").format(day=as_of))
        self._about.setVisible(bool(as_of) and bool(picks))
        if picks:
            self._show()
            self._pages.setCurrentWidget(self.view)
            return
        self._state.show_words(_("None of the models on our list fits into what is free now."), _("Search the hub"))
        self._pages.setCurrentWidget(self._state)

    def pick_of(self, repo: str) -> Pick | None:
        """Return the pick of a repo, or None."""
        return next((pick for pick in self._picks if pick.repo == repo), None)

    def set_here(self, repos: frozenset[str]) -> None:
        """Say of which repos something is on this machine."""
        if repos != self._here:
            self._here = repos
            self._show()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.view.set_theme(theme)

    def _show(self) -> None:
        self.view.rows.set_rows([row_of_pick(pick, pick.repo in self._here) for pick in self._picks])
