"""Which models fit: worked out beside the window, and asked of the allocator for the one that is chosen.

Feeds the Models panel; knows neither its list nor the library.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject

from app.models.advisor import FitAdvisor
from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from backends.protocol import LoadParams
from ui.panels.models_panel import ModelsPanel
from ui.tasks import Tasks

# How many are worked out at a time, so that the first ones are shown at once.
_AT_ONCE = 200


class ModelFits(QObject):
    """Works out fits and hands them to the panel.

    Attributes:
        _fits: those known so far, by key.
        _version: of the models; answers for earlier ones are dropped.
        _asked: how often the allocator was asked; only the last answer counts.
        _cancel: set when nothing more is wanted.
    """

    def __init__(
        self, advisor: FitAdvisor, panel: ModelsPanel, tasks: Tasks, cancel: threading.Event, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._advisor = advisor
        self._panel = panel
        self._tasks = tasks
        self._cancel = cancel
        self._fits: dict[str, Fit] = {}
        self._version = 0
        self._asked = 0

    def work_out(self, entries: Sequence[ModelEntry]) -> None:
        """Work out whether these models fit, instead of any given before; the first ones are shown first."""
        self._version += 1
        keys = {entry.key for entry in entries}
        self._fits = {key: fit for key, fit in self._fits.items() if key in keys}
        self._work_out(entries, self._version)

    def ask(self, entry: ModelEntry, params: LoadParams, *, is_question: bool) -> None:
        """Show at once what the header tells of a load, then what the allocator says.

        Args:
            entry: the model.
            params: how it would be loaded.
            is_question: whether a person asked for just these params; else they are those of the table.
        """
        self._asked += 1
        asked, advisor = self._asked, self._advisor

        def probe() -> Fit:
            advisor.probe(entry, params, self._cancel)
            return advisor.fit(entry, params)

        def take(fit: Fit) -> None:
            if asked == self._asked:
                self._show(entry, fit, is_question=is_question)

        self._show(entry, advisor.fit(entry, params), is_question=is_question)
        self._tasks.run(probe, take)

    def _work_out(self, entries: Sequence[ModelEntry], version: int) -> None:
        if not entries or self._cancel.is_set():
            return
        first, rest = entries[:_AT_ONCE], entries[_AT_ONCE:]

        def take(fits: Mapping[str, Fit]) -> None:
            if version == self._version:
                self._fits.update(fits)
                self._panel.set_fits(dict(self._fits))
                self._work_out(rest, version)

        self._tasks.run(lambda: self._advisor.fits(first), take)

    def _show(self, entry: ModelEntry, fit: Fit, *, is_question: bool) -> None:
        if is_question:
            self._panel.set_answer(entry.key, fit)
        else:
            self._fits[entry.key] = fit
            self._panel.set_fits(dict(self._fits))
