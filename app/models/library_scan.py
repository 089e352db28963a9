"""A scan's way into the library: what it finds is written in small batches, and what is gone is forgotten at its end.

Killed at any point, the library is whole and holds what was found until then. Knows no view and no window.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.i18n import current_language
from app.models import library_figures, library_rows
from app.models.library_store import LibraryStore
from app.models.scan_messages import ScanBatch, ScanSummary
from app.models.scan_root import look_at_root
from app.models.scanner import scan
from app.models.sources import Source

# A batch is written when it is this large or this old: a commit waits for the disk, and so does who writes meanwhile.
_BATCH_MODELS, _BATCH_AGE_S = 256, 1.0
# How long a folder that was not looked through may take to say whether it is there at all.
_ROOT_LIMIT_S = 5.0

# A fact that stands once everything was looked through.
IS_SCANNED = "is_scanned"

Write = Callable[[Callable[[sqlite3.Connection], object]], None]


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far a scan is.

    Attributes:
        folder: the folder it is in.
        looked_count: how many models of this folder were looked at.
        listed_count: of how many.
        found_count: new or changed ones of all folders so far.
    """

    folder: str
    looked_count: int
    listed_count: int
    found_count: int


def scan_into(
    store: LibraryStore,
    sources: Sequence[Source],
    on_progress: Callable[[ScanProgress], None] | None = None,
    cancel: threading.Event | None = None,
    *,
    is_everything: bool = True,
) -> ScanSummary:
    """Look through folders and keep what is found; return how it went.

    Args:
        store: where it is kept.
        sources: the folders.
        on_progress: told how far it is, on the calling thread.
        cancel: ends it when set; what was found until then is kept.
        is_everything: whether what was found in other folders than these is to be forgotten.

    Raises:
        LibraryError: what was found cannot be written; what was written before is kept.
    """
    nothing: dict[str, str] = {}
    known = store.read(library_rows.read_stamps, nothing)
    with store.apart() as write:
        batches = _Batches(write, sources, on_progress)
        summary = scan(sources, known, batches.add, cancel, language=current_language())
        batches.flush()
        if not summary.is_cancelled:
            batches.finish(summary, is_everything)
    return summary


class _Batches:
    """What was found and waits to be written.

    Attributes:
        _number: that of this scan; higher than that of any other, in any process.
        _pending: found since the last write.
    """

    def __init__(
        self, write: Write, sources: Sequence[Source], on_progress: Callable[[ScanProgress], None] | None
    ) -> None:
        self._write = write
        self._sources = sources
        self._origins = {str(source.folder): source.origin for source in sources}
        self._on_progress = on_progress
        self._number = 0
        self._pending: list[ScanBatch] = []
        self._written_s = time.monotonic()
        self._found_count = 0
        write(self._begin)

    def add(self, batch: ScanBatch) -> None:
        """Take what was found, and write it when there is enough of it."""
        self._pending.append(batch)
        self._found_count += len(batch.models)
        waiting = sum(len(pending.models) for pending in self._pending)
        if waiting >= _BATCH_MODELS or time.monotonic() - self._written_s >= _BATCH_AGE_S:
            self.flush()
        if self._on_progress is not None:
            progress = ScanProgress(batch.folder, batch.looked_count, batch.listed_count, self._found_count)
            self._on_progress(progress)

    def flush(self) -> None:
        """Write what waits."""
        if self._pending:
            self._write(self._put)
            self._pending = []
        self._written_s = time.monotonic()

    def finish(self, summary: ScanSummary, is_everything: bool) -> None:
        """Forget what is gone, and note which folders were not there."""
        silent = [source for source in self._sources if str(source.folder) not in summary.complete_roots]
        away = [str(source.folder) for source in silent if not look_at_root(source.folder, True, _ROOT_LIMIT_S).real]

        def change(connection: sqlite3.Connection) -> None:
            library_rows.drop_gone(connection, summary.complete_roots, self._number)
            library_rows.mark_away(connection, away)
            if is_everything:
                library_rows.drop_foreign(connection, list(self._origins))
                library_rows.drop_empty_models(connection)
                library_figures.put_fact(connection, IS_SCANNED, "1")

        self._write(change)

    def _begin(self, connection: sqlite3.Connection) -> None:
        self._number = library_figures.next_scan_number(connection)

    def _put(self, connection: sqlite3.Connection) -> None:
        for batch in self._pending:
            for found in batch.models:
                library_rows.put_found(connection, found, batch.folder, self._number)
            origin = self._origins.get(batch.folder, "added")
            library_rows.mark_seen(connection, batch.unchanged, origin, batch.folder, self._number)
