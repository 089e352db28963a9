"""The list of downloads: two at a time, the others in their turn; paused, resumed, tried again, and never forgotten.

Each running download has a thread of its own. What is asked for twice is fetched once. Knows no window; knows HTTP and
disks through app/downloads/transfer.py only.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.downloads import words as say
from app.downloads.cache_layout import CacheLayout
from app.downloads.entry import Entry, entry_of
from app.downloads.faults import DownloadError, disk_error, server_error
from app.downloads.fetched import FetchedRecord, fetched_file
from app.downloads.file_lock import FileLock
from app.downloads.leftovers import delete_parts, find_leftovers
from app.downloads.names import check_twins
from app.downloads.queue_file import QueueFile, StoredDownload
from app.downloads.tools import Progress, StoppedError, TransferTools
from app.downloads.transfer import FileTransfer
from app.downloads.types import ACTIVE_STATES, Download, DownloadState, FileRef
from app.errors import Words, words_for_exception
from app.http_clients import HUB_ENDPOINT, HttpClients
from app.models.http_faults import RemoteError, RemoteFault

_log = logging.getLogger(__name__)

_MAX_RUNNING = 2  # more would only share the line, and make every one of them end later
_TELL_EVERY_S = 0.2
_SILENCE_S = 30.0
_FILE_NAME = "downloads.json"
_LOCK_NAME = "downloads.lock"
_RESTING = (DownloadState.PAUSED, DownloadState.FAILED, DownloadState.DONE)


def _as_they_are(tools: TransferTools) -> TransferTools:
    return tools


class DownloadQueue:
    """The downloads of this program. Any thread may call any method; close it at the end.

    The list belongs to the first program that opens it. A second one, such as the command line beside the window,
    downloads too, but leaves the list on the disk alone. Attributes are private; see downloads().

    Args:
        folder: where the list lies.
        cache: the hub cache that files come into.
        clients: the way to the network.
        on_change: told of every change, on any thread and never on two at once; several times a second while bytes
            come. It must not wait for another thread that uses the queue.
        is_resuming: whether what was under way at the end of the last run goes on at once; else it is paused.
        change_tools: changes what transfers work with; for tests.
    """

    def __init__(
        self,
        folder: Path,
        cache: Path,
        clients: HttpClients,
        on_change: Callable[[Download], None],
        *,
        is_resuming: bool = False,
        change_tools: Callable[[TransferTools], TransferTools] = _as_they_are,
    ) -> None:
        self._layout = CacheLayout(cache)
        self._clients = clients
        self._on_change = on_change
        self._change_tools = change_tools
        self._lock = threading.RLock()
        self._telling = threading.RLock()  # taken before the other one, never while that is held
        self._entries: dict[str, Entry] = {}
        self._threads: set[threading.Thread] = set()
        self._is_closing = False
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="download list")
        self._owner = FileLock(folder / _LOCK_NAME)
        self._file = QueueFile(folder / _FILE_NAME)
        self._fetched = FetchedRecord(folder)
        self._is_owner = self._take_list()
        if self._is_owner:
            self._adopt(is_resuming)

    def _take_list(self) -> bool:
        try:
            return self._owner.take()
        except OSError as error:
            _log.warning("The list of downloads cannot be kept: %s", error.strerror)
            return False

    def _adopt(self, is_resuming: bool) -> None:
        """Take over what the last run left."""
        for stored in self._file.read():
            entry = entry_of(stored)
            if entry.state not in _RESTING:
                entry.rest(DownloadState.QUEUED)
                if not is_resuming:
                    entry.rest(DownloadState.PAUSED, say.interrupted_words(), "resume")
            entry.look(self._layout)
            if entry.state is not DownloadState.DONE or not entry.missing_bytes:  # else somebody deleted it since
                self._entries[entry.download_id] = entry
        with self._lock:
            self._fill()

    @property
    def notices(self) -> tuple[Words, ...]:
        """What a person must be told about the list that was read."""
        return tuple(self._file.notices)

    # ---------------------------------------------------------------------------------------- what is asked

    def add(self, title: str, files: Sequence[FileRef], branch: str = "main") -> Download:
        """Ask for files that belong together, and return how that stands.

        What is being downloaded already is joined, what rests goes on, and what is here stays as it is.

        Args:
            title: for people.
            files: in the order in which they are wanted.
            branch: which branch the files' commit is the newest of; "" for an older commit.

        Raises:
            DownloadError: a file's name, repo or commit may not become a path here.
        """
        wanted = tuple(files)
        check_twins(file.path for file in wanted)
        places = [self._layout.place(file) for file in wanted]
        with self._lock:
            entry = next((one for one in self._entries.values() if one.is_about(wanted)), None)
            if entry is None:
                entry = Entry(title, wanted, branch)
                entry.look(self._layout)
                self._entries[entry.download_id] = entry
            elif entry.state not in ACTIVE_STATES and not (
                entry.state is DownloadState.DONE and all(place.snapshot.is_file() for place in places)
            ):
                entry.files, entry.branch, entry.title, entry.part = wanted, branch, title, None
                entry.ask_again()
        self._tell(entry)
        with self._lock:
            self._fill()
        return self._shown(entry)

    def pause(self, download_id: str) -> None:
        """Let a download rest; what is here stays."""
        with self._changing(download_id) as entry:
            if entry is not None and entry.state in ACTIVE_STATES:
                entry.halt()
                entry.rest(DownloadState.PAUSED, action="resume")

    def resume(self, download_id: str) -> None:
        """Let a download go on, in its turn: one that was paused, has failed or was cancelled."""
        with self._changing(download_id) as entry:
            if entry is not None and entry.files and entry.state not in (*ACTIVE_STATES, DownloadState.DONE):
                entry.part = None
                entry.ask_again()

    def retry(self, download_id: str) -> None:
        """Try again what has failed; the same as resume()."""
        self.resume(download_id)

    def try_now(self, download_id: str) -> None:
        """Let a download that waits for its next try have it at once."""
        with self._lock:
            entry = self._entries.get(download_id)
            if entry is not None and entry.state is DownloadState.WAITING:
                entry.nudge.set()

    def cancel(self, download_id: str, *, delete_part: bool) -> None:
        """End a download for good; what is unfinished of it is deleted, or stays as a leftover.

        Of one that was cancelled before, what was left can be deleted by this too.
        """
        with self._changing(download_id) as entry:
            if entry is not None and entry.state is not DownloadState.DONE:
                entry.halt()
                entry.rest(DownloadState.CANCELLED)
                entry.is_deleting = entry.is_deleting or delete_part
                if entry.stop is None and delete_part:
                    self._delete_unfinished(entry)

    def forget_missing(self) -> list[str]:
        """Take what was deleted since it came off the list, and return which those were; looks at the disk."""
        with self._lock:
            done = [one for one in self._entries.values() if one.state is DownloadState.DONE]
        gone = [one.download_id for one in done if one.path is not None and not one.path.exists()]
        for download_id in gone:
            self.remove(download_id)
        return gone

    def remove(self, download_id: str) -> None:
        """Take a download off the list; what is under way is ended, and what is here stays."""
        with self._changing(download_id) as entry:
            if entry is not None:
                entry.halt()
                entry.rest(DownloadState.CANCELLED if entry.state in ACTIVE_STATES else entry.state)
                del self._entries[download_id]

    def downloads(self) -> list[Download]:
        """Return all downloads as they stand, oldest first."""
        with self._lock:
            now_s = time.monotonic()
            return [entry.shown(now_s) for entry in self._entries.values()]

    def find_leftovers(self) -> list[Download]:
        """List unfinished files that belong to no download, and return those that are new; looks through the cache."""
        try:
            endpoint = self._clients.endpoint
        except RemoteError:
            endpoint = HUB_ENDPOINT
        with self._lock:
            entries = list(self._entries.values())
        known = {part for entry in entries for part in entry.parts(self._layout)}
        found = find_leftovers(self._layout, known, endpoint)
        with self._lock:
            self._entries |= {entry.download_id: entry for entry in found}
        for entry in found:
            self._tell(entry)
        return [self._shown(entry) for entry in found]

    def close(self) -> None:
        """End everything in a way that the next start goes on from; takes about a second."""
        with self._lock:
            self._is_closing = True
            for entry in self._entries.values():
                entry.halt()
            threads = list(self._threads)
        for thread in threads:
            thread.join()
        with self._lock:
            self._save()
        self._disk.shutdown()
        self._owner.release()

    # ---------------------------------------------------------------------------------------- who runs when

    @contextlib.contextmanager
    def _changing(self, download_id: str) -> Iterator[Entry | None]:
        """Give a download to whoever changes it, then tell of the change and start what may start."""
        with self._lock:
            entry = self._entries.get(download_id)
            yield entry
        if entry is not None:
            self._tell(entry)
        with self._lock:
            self._fill()

    def _fill(self) -> None:
        """Start what is queued where there is a place; one whose last thread still ends waits for that."""
        running = sum(entry.stop is not None for entry in self._entries.values())
        for entry in self._entries.values():
            if self._is_closing or running >= _MAX_RUNNING:
                break
            if entry.state is DownloadState.QUEUED and entry.stop is None:
                running += 1
                entry.state, entry.stop = DownloadState.RUNNING, threading.Event()
                entry.nudge.clear()
                name = f"download {entry.download_id}"
                thread = threading.Thread(target=self._run, args=(entry, entry.stop), name=name)
                self._threads.add(thread)
                thread.start()
        self._save()

    def _save(self) -> None:
        """Write the list down, on a thread of its own."""
        if not self._is_owner:
            return
        kept = [one for one in self._entries.values() if one.part is None and one.state is not DownloadState.CANCELLED]
        stored = [entry.stored() for entry in kept]
        with contextlib.suppress(RuntimeError):  # after the end
            self._disk.submit(self._write, stored)

    def _write(self, stored: list[StoredDownload]) -> None:
        try:
            self._file.write(stored)
        except OSError as error:
            _log.warning("The list of downloads could not be written: %s", error.strerror)

    def _delete_unfinished(self, entry: Entry) -> None:
        entry.have_bytes.clear()
        with contextlib.suppress(RuntimeError):  # after the end
            self._disk.submit(delete_parts, self._layout, entry.files, entry.part)

    # ------------------------------------------------------------------------------ on a download's own thread

    def _run(self, entry: Entry, stop: threading.Event) -> None:
        outcome: Path | DownloadError | None = None
        is_over = False
        try:
            self._tell(entry)
            outcome = self._fetch(entry, stop)
            is_over = True
        finally:
            if not is_over:
                words = words_for_exception(sys.exc_info()[1] or RuntimeError())
                outcome = DownloadError(RemoteFault.UNEXPECTED, words)
            self._ended(entry, outcome)

    def _fetch(self, entry: Entry, stop: threading.Event) -> Path | DownloadError | None:
        """Fetch a download's files; returns the first one's place, what went wrong, or None when it was stopped."""
        first: Path | None = None
        try:
            with contextlib.closing(self._clients.make_client(_SILENCE_S, keeps_connections=False)) as client:
                for number, file in enumerate(entry.files):
                    claimed = self._claimed(entry, number)
                    tools = TransferTools(self._clients, client, claimed_bytes=claimed, wait=entry.wait)
                    transfer = FileTransfer(
                        file, self._layout, self._change_tools(tools), self._teller(entry, stop, number)
                    )
                    path = transfer.run(stop)
                    self._note(entry, transfer, file, path)
                    first = first or path
            if entry.branch and entry.files:
                self._layout.set_branch(entry.files[0], entry.branch)
        except StoppedError:
            return None
        except DownloadError as error:
            return error
        except RemoteError as error:
            return server_error(error)
        except OSError as error:
            return disk_error(error, self._layout.root / "refs")
        return first

    def _note(self, entry: Entry, transfer: FileTransfer, file: FileRef, path: Path) -> None:
        """Write down that a file is here, and what of it is ours."""
        try:
            found = fetched_file(file, path, has_bytes=transfer.has_bytes, has_name=transfer.has_name)
            self._fetched.note(entry.title, entry.branch, found)
        except OSError as error:
            _log.warning("What was downloaded could not be noted: %s", error.strerror)

    def _claimed(self, entry: Entry, number: int) -> Callable[[], int]:
        """Return what says how much everything else that is under way will still write."""

        def claimed() -> int:
            with self._lock:
                running = [one for one in self._entries.values() if one.stop is not None]
                own = entry.files[number].size_bytes - entry.have_bytes.get(number, 0)
                return max(0, sum(one.missing_bytes for one in running) - own)

        return claimed

    def _teller(self, entry: Entry, stop: threading.Event, number: int) -> Callable[[Progress], None]:
        """Return what a transfer tells its progress to; nothing counts any more once it was stopped."""

        def tell(progress: Progress) -> None:
            now_s = time.monotonic()
            with self._lock:
                if stop.is_set() or entry.state not in ACTIVE_STATES:
                    return
                is_new = entry.progressed(number, progress, now_s)
                if not is_new and now_s - entry.told_s < _TELL_EVERY_S:
                    return
                entry.told_s = now_s
            self._tell(entry)

        return tell

    def _ended(self, entry: Entry, outcome: Path | DownloadError | None) -> None:
        with self._lock:
            entry.stop = None
            self._threads.discard(threading.current_thread())
            if isinstance(outcome, Path):
                entry.have_bytes = {number: file.size_bytes for number, file in enumerate(entry.files)}
                entry.rest(DownloadState.DONE)
                entry.path = outcome
            elif entry.state is DownloadState.CANCELLED and entry.is_deleting:
                self._delete_unfinished(entry)
            else:
                entry.look(self._layout)  # the disk knows best what is here
                if isinstance(outcome, DownloadError) and entry.state in ACTIVE_STATES and not self._is_closing:
                    entry.fail(outcome)
        self._tell(entry)
        with self._lock:
            self._fill()

    # --------------------------------------------------------------------------------------------- who is told

    def _shown(self, entry: Entry) -> Download:
        with self._lock:
            return entry.shown(time.monotonic())

    def _tell(self, entry: Entry) -> None:
        """Tell how a download stands now; one after the other, so that the last word is the newest."""
        with self._telling:
            self._on_change(self._shown(entry))
