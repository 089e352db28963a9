"""What a person must agree to before a load: a file that changed on disk, a model that is too large or of unknown size.

Asked once, then never again for the same model, params and file; and never refused.
"""

from __future__ import annotations

import threading

from app.errors import Words
from app.i18n import _
from app.models.advisor import FitAdvisor
from app.models.entry import ModelEntry
from app.models.fit_types import Verdict
from app.models.fit_words import confirmation_words
from app.models.library import Change, Library
from backends.protocol import LoadParams

_DOUBTFUL = (Verdict.TIGHT, Verdict.TOO_LARGE, Verdict.UNKNOWN)


class LoadGate:
    """Looks before a load. May take its time where a changed file must be hashed: call it on a background thread.

    Attributes:
        _agreed: what was agreed to in this run.
    """

    def __init__(self, library: Library, advisor: FitAdvisor) -> None:
        self._library = library
        self._advisor = advisor
        self._agreed: set[tuple[str, LoadParams]] = set()
        self._lock = threading.Lock()

    def takes_time(self, entry: ModelEntry, params: LoadParams) -> bool:
        """Say whether question() may take long: the file looks different, or the allocator should be asked first."""
        if self._is_agreed(entry, params):
            return False
        return self._library.looks_changed(entry) or self._advisor.fit(entry, params).verdict in _DOUBTFUL

    def question(self, entry: ModelEntry, params: LoadParams) -> Words | None:
        """Return what must be agreed to before this load; None when nothing stands in the way."""
        if self._is_agreed(entry, params):
            return None
        if self._library.change_of(entry) is Change.CHANGED:
            return Words(
                _("The file of {name} changed on disk since Cutaway last looked at it.").format(name=entry.name),
                _("If you replaced or downloaded it again, load it. If not, it may be damaged: get it anew."),
            )
        fit = self._advisor.fit(entry, params)
        if fit.verdict in _DOUBTFUL:  # the allocator knows better than a header: nobody is asked for nothing
            self._advisor.probe(entry, params)
            fit = self._advisor.fit(entry, params)
        return confirmation_words(fit)

    def agree(self, entry: ModelEntry, params: LoadParams) -> None:
        """Take a person's agreement; it holds until the program ends."""
        with self._lock:
            self._agreed.add((entry.identity or str(entry.path), params))
        if self._library.change_of(entry) is Change.CHANGED:
            self._library.accept_change(entry)

    def _is_agreed(self, entry: ModelEntry, params: LoadParams) -> bool:
        with self._lock:
            return (entry.identity or str(entry.path), params) in self._agreed
