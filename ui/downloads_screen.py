"""Behind the downloads: the queue, and the library that takes in what has come.

Nothing here waits: what may take a moment is done on the window's background threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.downloads.types import Download, DownloadState, FileRef
from app.errors import Words
from app.models.entry import ModelEntry
from ui.models.download_feed import DownloadFeed
from ui.models.download_words import Button
from ui.panels.hub_panel import HubPanel
from ui.tasks import Tasks

if TYPE_CHECKING:
    from app.downloads.queue import DownloadQueue

Tell = Callable[[str, Words], None]


class DownloadsScreen(QObject):
    """Connects the downloads' parts of the panel with the queue.

    Attributes:
        _downloads: as they stand, by id, oldest first.
        _removed: those that a person took off the list; what is still told of them is dropped.

    Signals:
        use_requested(entry): a person wants to chat with what was downloaded.
        models_changed(): the library has other models.
    """

    use_requested = Signal(object)
    models_changed = Signal()

    def __init__(self, context: AppContext, panel: HubPanel, tasks: Tasks, tell: Tell) -> None:
        super().__init__(panel)
        self._panel = panel
        self._context = context
        self._tasks = tasks
        self._tell = tell
        self._downloads: dict[str, Download] = {}
        self._removed: set[str] = set()
        self._feed = DownloadFeed(self)
        self._feed.changed.connect(self._on_changed)
        panel.download_pressed.connect(self._on_pressed)
        panel.path_use_requested.connect(self._on_use_path)
        context.network.watch_downloads(self._feed.tell)

    def start(self) -> None:
        """Show the downloads that the last run left, and what is unfinished on the disk."""
        self._tasks.run(self._stored, self._on_stored)

    def add(self, title: str, files: Sequence[FileRef], branch: str) -> None:
        """Download these files.

        Args:
            title: what the download is called.
            files: in their order.
            branch: of which their commit is the newest; "" for an older one.
        """
        self._tasks.run(
            lambda: self._queue.add(title, files, branch),
            self._on_added,
            lambda words: self._tell(f"download {title}", words),
        )

    def resume_waiting_for_token(self) -> None:
        """Try again what was refused for want of a token."""
        waiting = [one.download_id for one in self._downloads.values() if one.action == "token"]

        def retry() -> None:
            for download_id in waiting:
                self._queue.retry(download_id)

        if waiting:
            self._tasks.run(retry)

    def close(self) -> None:
        """Tell nothing any more; the downloads rest when the context is closed."""
        self._feed.close()

    # --------------------------------------------------------------------------- on background threads

    @property
    def _queue(self) -> DownloadQueue:
        return self._context.network.downloads

    def _stored(self) -> tuple[list[Download], tuple[Words, ...]]:
        downloads = self._queue.downloads()
        return [*downloads, *self._queue.find_leftovers()], self._queue.notices

    def _delete(self, download: Download) -> None:
        """End a download and delete what is here of it; of a cancelled one that is a leftover now."""
        queue = self._queue
        if download.state is not DownloadState.CANCELLED:
            queue.cancel(download.download_id, delete_part=True)
            queue.remove(download.download_id)
            return
        queue.remove(download.download_id)
        for found in queue.find_leftovers():
            if set(found.files) & set(download.files):
                queue.cancel(found.download_id, delete_part=True)
                queue.remove(found.download_id)

    def _remove(self, download: Download) -> None:
        self._queue.remove(download.download_id)

    # ------------------------------------------------------------------------------------------- slots

    def _on_stored(self, stored: tuple[list[Download], tuple[Words, ...]]) -> None:
        downloads, notices = stored
        self._downloads = {one.download_id: one for one in downloads} | self._downloads
        self._panel.set_downloads(list(self._downloads.values()))
        for number, words in enumerate(notices):
            self._tell(f"downloads {number}", words)

    def _on_added(self, download: Download) -> None:
        """Show what was asked for, also where it was taken off the list before."""
        self._removed.discard(download.download_id)
        self._feed.tell(download)

    @Slot(object)
    def _on_changed(self, told: list[Download]) -> None:
        changed = [one for one in told if one.download_id not in self._removed]
        before = {one.download_id: self._downloads.get(one.download_id) for one in changed}
        self._downloads |= {one.download_id: one for one in changed}
        if not changed:
            return
        self._panel.set_downloads(list(self._downloads.values()), changed)
        for download in changed:
            earlier = before[download.download_id]
            is_new = earlier is None or earlier.state is not DownloadState.DONE
            if download.state is DownloadState.DONE and download.path is not None and is_new:
                self._take_in(download.path)

    def _take_in(self, path: Path) -> None:
        """Let the library know what has come."""
        library = self._context.library
        self._tasks.run(lambda: library.import_path(path), lambda _entry: self.models_changed.emit())

    @Slot(str, object)
    def _on_pressed(self, download_id: str, button: Button) -> None:
        download = self._downloads.get(download_id)
        if download is None:
            return
        match button:
            case Button.PAUSE:
                self._tasks.run(lambda: self._queue.pause(download_id))
            case Button.RESUME | Button.RETRY:
                self._tasks.run(lambda: self._queue.resume(download_id))
            case Button.CANCEL:
                self._tasks.run(lambda: self._queue.cancel(download_id, delete_part=False))
            case Button.DELETE:
                self._take_off(download, lambda: self._delete(download))
            case Button.REMOVE:
                self._take_off(download, lambda: self._remove(download))

    def _take_off(self, download: Download, work: Callable[[], None]) -> None:
        """Take a download off the list at once."""
        self._removed.add(download.download_id)
        self._downloads.pop(download.download_id, None)
        self._panel.set_downloads(list(self._downloads.values()), [])
        self._tasks.run(work)

    @Slot(object)
    def _on_use_path(self, path: Path) -> None:
        library = self._context.library

        def use(entry: ModelEntry) -> None:
            self.models_changed.emit()
            self.use_requested.emit(entry)

        self._tasks.run(lambda: library.import_path(path), use, lambda words: self._tell("use", words))
