"""What a screen reader is told of downloads: every end and every fault at once, progress not more than every 10 s."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget

from app.downloads.types import Download, DownloadState
from ui.models.download_words import spoken_text, strip_text

PROGRESS_S: Final = 10.0
_TOLD_AT_ONCE: Final = (DownloadState.DONE, DownloadState.FAILED, DownloadState.PAUSED)


class DownloadAnnouncer:
    """Decides what is worth saying now.

    Args:
        announce: says it.
        clock: of seconds that only grow.
        now: seconds since 1970, for the words.
    """

    def __init__(
        self,
        announce: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._announce = announce
        self._clock = clock
        self._now = now
        self._states: dict[str, DownloadState] = {}
        self._told_s = clock()
        self._last_words = ""

    def start_with(self, downloads: Sequence[Download]) -> None:
        """Take these as known: what they are is no news."""
        self._states = {download.download_id: download.state for download in downloads}

    def tell(self, changed: Sequence[Download], downloads: Sequence[Download]) -> None:
        """Look at what changed.

        Args:
            changed: the new values.
            downloads: all of them.
        """
        for download in changed:
            before = self._states.get(download.download_id)
            self._states[download.download_id] = download.state
            if before is not None and before is not download.state and download.state in _TOLD_AT_ONCE:
                self._say(spoken_text(download, self._now()))
        if self._clock() - self._told_s >= PROGRESS_S:
            words = strip_text(downloads)
            if words and words != self._last_words:
                self._say(words)

    def _say(self, words: str) -> None:
        self._told_s = self._clock()
        self._last_words = words
        self._announce(words)


def announce_from(widget: QWidget) -> Callable[[str], None]:
    """Return a function that has a screen reader say words in the name of a widget."""

    def announce(words: str) -> None:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))

    return announce
