"""Behind the downloads: the queue, and the library that takes in what has come.

Nothing here waits: what may take a moment is done on the window's background threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.downloads.types import Download, DownloadState, FileRef
from app.errors import Words
from app.hub.update_check import UpdateAnswer, check_update
from app.models.entry import ModelEntry
from app.models.removal import Deletion
from ui.hub_questions import HubQuestions, fault_words
from ui.models.download_feed import DownloadFeed
from ui.models.download_words import Button
from ui.models.update_note import UpdateNote, answer_note, checking_note, fault_note, newer_note, newer_of, slow_note
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
        _notes: what the hub said of newer versions, by id; for as long as the window is open.
        _answers: the same as the hub said it.
        _deletions: what a person was asked about, by id.
        _ending: ends the questions to the hub.

    Signals:
        use_requested(entry): a person wants to chat with what was downloaded.
        models_changed(): the library has other models.
    """

    use_requested = Signal(object)
    models_changed = Signal()

    def __init__(
        self, context: AppContext, panel: HubPanel, tasks: Tasks, tell: Tell, questions: HubQuestions | None = None
    ) -> None:
        """Connect everything.

        Args:
            context: the program's parts.
            panel: the hub's parts of the Models screen.
            tasks: the window's background work.
            tell: shows a notice.
            questions: asks the hub; None for doing that among the other work.
        """
        super().__init__(panel)
        self._panel = panel
        self._context = context
        self._tasks = tasks
        self._tell = tell
        self._downloads: dict[str, Download] = {}
        self._removed: set[str] = set()
        self._notes: dict[str, UpdateNote] = {}
        self._answers: dict[str, UpdateAnswer] = {}
        self._deletions: dict[str, Deletion] = {}
        self._ending = threading.Event()
        self._questions = questions or HubQuestions(self, tasks)
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

    @Slot()
    def refresh(self) -> None:
        """Take off the list what was deleted since it came."""
        if any(one.state is DownloadState.DONE for one in self._downloads.values()):
            self._tasks.run(self._forget_missing, self._on_forgotten)

    def close(self) -> None:
        """Tell nothing any more; the downloads rest when the context is closed."""
        self._ending.set()
        self._feed.close()

    # --------------------------------------------------------------------------- on background threads

    @property
    def _queue(self) -> DownloadQueue:
        return self._context.network.downloads

    def _stored(self) -> tuple[list[Download], tuple[Words, ...]]:
        downloads = self._queue.downloads()
        return [*downloads, *self._queue.find_leftovers()], self._queue.notices

    def _delete(self, download: Download) -> None:
        """End a download and delete what is here of it."""
        self._queue.cancel(download.download_id, delete_part=True)
        self._queue.remove(download.download_id)

    def _forget_missing(self) -> list[str]:
        return self._queue.forget_missing()

    def _remove(self, download: Download) -> None:
        self._queue.remove(download.download_id)

    # ------------------------------------------------------------------------------------------- slots

    def _on_stored(self, stored: tuple[list[Download], tuple[Words, ...]]) -> None:
        downloads, notices = stored
        self._downloads = {one.download_id: one for one in downloads} | self._downloads
        self._panel.set_downloads(list(self._downloads.values()))
        self._show_notes()
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
        states = {download_id: one.state for download_id, one in before.items() if one is not None}
        if any(states.get(one.download_id) is not one.state for one in changed):
            self._show_notes()
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
            case Button.NOW:
                self._tasks.run(lambda: self._queue.try_now(download_id))
            case Button.CANCEL:
                self._tasks.run(lambda: self._queue.cancel(download_id, delete_part=False))
            case Button.DELETE:
                self._take_off(download, lambda: self._delete(download))
            case Button.REMOVE:
                self._take_off(download, lambda: self._remove(download))
            case Button.CHECK:
                self._check(download)
            case Button.NEWER:
                self._download_newer(download)
            case Button.DELETE_OLD:
                self._ask_to_delete(download)
            case Button.TRASH | Button.FOREVER:
                self._delete_model(download, forever=button is Button.FOREVER)

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

    # ------------------------------------------------------------------------------------ newer versions

    def _check(self, download: Download) -> None:
        """Ask the hub whether there is a newer version; only ever because a person pressed the button."""
        download_id, files = download.download_id, download.files

        def tell(note: UpdateNote) -> None:
            self._notes[download_id] = note
            self._show_notes()

        def done(answer: UpdateAnswer) -> None:
            self._answers[download_id] = answer
            tell(answer_note(answer))

        tell(checking_note())
        self._questions.ask(
            self._ending,
            lambda: check_update(self._context.network.hub, files, self._ending),
            done,
            lambda why: tell(fault_note(fault_words(why))),
            lambda: tell(slow_note()),
        )

    def _download_newer(self, download: Download) -> None:
        """Download the newer version beside the one that is here."""
        answer = self._answers.get(download.download_id)
        if answer is not None and answer.head_files:
            self.add(download.title, answer.head_files, "main")

    def _ask_to_delete(self, download: Download) -> None:
        library, path, in_use = self._context.library, download.path, self._in_use()

        def show(deletion: Deletion) -> None:
            self._deletions[download.download_id] = deletion
            self._panel.downloads.ask_to_delete(download.download_id, deletion)

        self._tasks.run(
            lambda: library.delete_preview(str(path), in_use), show, lambda words: self._tell("delete", words)
        )

    def _delete_model(self, download: Download, *, forever: bool) -> None:
        """Delete an older version as the person agreed to."""
        library, path, in_use = self._context.library, download.path, self._in_use()
        expected = self._deletions.pop(download.download_id, None)

        def deleted(_done: Deletion) -> None:
            self._take_off(download, lambda: self._remove(download))
            self.models_changed.emit()

        self._tasks.run(
            lambda: library.delete(str(path), forever=forever, in_use=in_use, expected=expected),
            deleted,
            lambda words: self._tell("delete", words),
        )

    def _in_use(self) -> tuple[Path, ...]:
        request = self._context.engine.request
        is_open = request is not None and bool(request.path) and self._context.engine.pid
        return (Path(request.path),) if request is not None and is_open else ()

    def _on_forgotten(self, gone: list[str]) -> None:
        for download_id in gone:
            self._removed.add(download_id)
            self._downloads.pop(download_id, None)
        if gone:
            self._panel.set_downloads(list(self._downloads.values()), [])
            self._show_notes()

    def _show_notes(self) -> None:
        """Show under every finished download what is known of newer versions."""
        downloads = list(self._downloads.values())
        notes = dict(self._notes)
        for download in downloads:
            newer = newer_of(download, downloads)
            if newer is not None:
                notes[download.download_id] = newer_note(download, newer)
        self._panel.downloads.set_notes(notes)
