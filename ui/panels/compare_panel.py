"""The compare screen: the comparisons at the left, at the right a new one, the one under way, or what one found.

Knows no folder, no library and no engine: every wish is a signal.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget

from app.i18n import _
from ui.models.model_choice import one_line
from ui.panels.compare_list import CompareList
from ui.panels.compare_progress import CompareProgressPage
from ui.panels.compare_results import CompareResults
from ui.panels.compare_setup import CompareSetup
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState

_LIST_PX: Final = 248
_NARROW_LIST_PX: Final = 200
_NARROW_BELOW_PX: Final = 1016


class ComparePanel(QWidget):
    """The compare screen.

    Attributes:
        list: the left column.
        setup, progress, results: the pages of the right side.

    Signals:
        models_requested(): there is nothing to compare; a person wants to see the models.
        quantize_requested(): likewise; a person wants to make quantizations of the model there is.
    """

    models_requested = Signal()
    quantize_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.list = CompareList(theme)
        self.setup = CompareSetup(theme)
        self.progress = CompareProgressPage(theme)
        self.results = CompareResults(theme)
        self._empty = EmptyState("")
        self._pages = QStackedWidget()
        self._build()
        self._has_source = False
        self._empty.action_requested.connect(self._on_action)
        self.show_loading()

    # ------------------------------------------------------------------------------------- public

    @property
    def page(self) -> QWidget | None:
        """The page of the right side that is shown."""
        return self._pages.currentWidget()

    def show_loading(self) -> None:
        """Say that the comparisons are being read."""
        self._show_words(_("Looking for comparisons…"))

    def show_opening(self) -> None:
        """Say that a comparison is being read."""
        self._show_words(_("Opening the comparison…"))

    def show_fault(self, sentence: str) -> None:
        """Say why a comparison cannot be shown."""
        self._show_words(sentence)

    def show_nothing_to_compare(self, source: str = "") -> None:
        """Say that there are no two quantizations of one model.

        Args:
            source: the name of a model that others can be made of; "" for none.
        """
        self._has_source = bool(source)
        sentence = _("Comparing needs two quantizations of one model, and there is no such pair on this machine yet.")
        if source:
            more = _("More can be made of {model} here, or downloaded in Models.").format(model=one_line(source))
            self._show_words(f"{sentence} {more}", _("Make quantizations…"))
        else:
            self._show_words(sentence, _("Go to Models"))

    def show_setup(self) -> None:
        """Show the page on which a comparison is set up."""
        self.list.choose("")
        self._pages.setCurrentWidget(self.setup)

    def show_progress(self) -> None:
        """Show the comparison under way."""
        self._pages.setCurrentWidget(self.progress)

    def show_results(self) -> None:
        """Show what a comparison found."""
        self._pages.setCurrentWidget(self.results)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for part in (self.list, self.setup, self.progress, self.results):
            part.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the list narrower in a small window."""
        super().resizeEvent(event)
        self.list.setFixedWidth(_NARROW_LIST_PX if self.width() < _NARROW_BELOW_PX else _LIST_PX)

    def _on_action(self) -> None:
        if self._has_source:
            self.quantize_requested.emit()
        else:
            self.models_requested.emit()

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.list.setFixedWidth(_LIST_PX)
        for page in (self._empty, self.setup, self.progress, self.results):
            self._pages.addWidget(page)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list)
        row.addWidget(self._pages, 1)

    def _show_words(self, sentence: str, action: str = "") -> None:
        self._empty.show_words(sentence, action)
        self._pages.setCurrentWidget(self._empty)
