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
        self._agreed: set[tuple[str, LoadParams, str]] = set()
        self._lock = threading.Lock()

    def takes_time(self, entry: ModelEntry, params: LoadParams, backend: str = "") -> bool:
        """Say whether question() may take long: the file looks different, or the allocator should be asked first."""
        if self._is_agreed(entry, params, backend):
            return False
        return self._library.looks_changed(entry) or self._advisor.fit(entry, params, backend).verdict in _DOUBTFUL

    def question(self, entry: ModelEntry, params: LoadParams, backend: str = "") -> Words | None:
        """Return what must be agreed to before this load; None when nothing stands in the way.

        Args:
            entry: the model.
            params: how it would be loaded.
            backend: by which backend; "" for the one that takes it by itself.
        """
        if self._is_agreed(entry, params, backend):
            return None
        if self._library.change_of(entry) is Change.CHANGED:
            return Words(
                _("The file of {name} changed on disk since Cutaway last looked at it.").format(name=entry.name),
                _("If you replaced or downloaded it again, load it. If not, it may be damaged: get it anew."),
            )
        fit = self._advisor.fit(entry, params, backend)
        if fit.verdict in _DOUBTFUL:  # the allocator knows better than a header: nobody is asked for nothing
            self._advisor.probe(entry, params, backend=backend)
            fit = self._advisor.fit(entry, params, backend)
        return confirmation_words(fit)

    def agree(self, entry: ModelEntry, params: LoadParams, backend: str = "") -> None:
        """Take a person's agreement; it holds until the program ends."""
        with self._lock:
            self._agreed.add(self._key(entry, params, backend))
        if self._library.change_of(entry) is Change.CHANGED:
            self._library.accept_change(entry)

    def _is_agreed(self, entry: ModelEntry, params: LoadParams, backend: str) -> bool:
        with self._lock:
            return self._key(entry, params, backend) in self._agreed

    def _key(self, entry: ModelEntry, params: LoadParams, backend: str) -> tuple[str, LoadParams, str]:
        return entry.identity or str(entry.path), params, backend or self._advisor.backend_of(entry)
