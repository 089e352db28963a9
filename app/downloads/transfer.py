"""Fetching one file into a hub cache: resumed where it stopped, tried again by itself, checked before it has its name.

One call of run() brings a file to its place or says why not. What was received stays on the disk whatever happens, and
is hashed again before it is added to: only bytes that were flushed are trusted. Knows no list of downloads.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from app.downloads import words as say
from app.downloads.cache_layout import CacheLayout, Place, discard_part
from app.downloads.checks import HEAD_BYTES, Checksum, begins_right
from app.downloads.connection import Connection, Wanted
from app.downloads.faults import DownloadError, DownloadFault, disk_error, download_error, server_error
from app.downloads.file_lock import FileLock
from app.downloads.part_file import PartFile
from app.downloads.retry import RetryPlan
from app.downloads.sidecar import read_sidecar, sidecar_of, write_sidecar
from app.downloads.space import check_space
from app.downloads.tools import Progress, StoppedError, TransferTools
from app.downloads.types import DownloadState, FileRef
from app.errors import Words
from app.models.http_faults import RemoteError, RemoteFault

_LOCK_POLL_S = 0.25
_READ_BYTES = 2**20
_TELL_EVERY_BYTES = 16 * 2**20
_MIN_PROGRESS_BYTES = 64 * 1024  # a server that gives less and falls silent is no better than one that gives nothing
_MAX_RESTARTS = 3  # of a file that becomes another one while it is fetched


class _DamagedError(Exception):
    """What came is not the file; the error is for when it was in vain to fetch it again."""

    def __init__(self, error: DownloadError) -> None:
        super().__init__(error.words.message)
        self.error = error


class FileTransfer:
    """Fetches one file. run() is called once, on a background thread.

    Attributes:
        has_bytes: after run(), whether its bytes were received; else they lay in the cache already.
        has_name: after run(), whether its name in the snapshot is new.

    Args:
        file: what is fetched.
        layout: the cache that it comes into.
        tools: what it works with.
        on_progress: told often, on the thread of run().
    """

    def __init__(
        self, file: FileRef, layout: CacheLayout, tools: TransferTools, on_progress: Callable[[Progress], None]
    ) -> None:
        self.has_bytes = self.has_name = False
        self._file = file
        self._layout = layout
        self._tools = tools
        self._on_progress = on_progress
        self._stop = threading.Event()
        self._checksum = Checksum(file)
        self._note: Words | None = None
        self._plan = RetryPlan(tools.random_share)
        self._restarts = 0
        self._have_bytes = 0
        self._sidecar_lock = threading.Lock()
        self._version = ""  # what the server calls the version that the bytes are of
        self._flushed_bytes = 0

    def run(self, stop: threading.Event) -> Path:
        """Fetch the file and return where it lies.

        Args:
            stop: set from another thread to end it; what was received stays.

        Raises:
            DownloadError: it could not be fetched; the words say why.
            StoppedError: stop was set.
        """
        self._stop = stop
        place = self._layout.place(self._file)
        try:
            self._layout.prepare(place)
            lock = FileLock(place.lock)
            self._take(lock, place)
            try:
                found = self._sound_copy(place)
                self.has_bytes, self.has_name = found is None, not os.path.lexists(place.snapshot)
                return self._layout.publish(place, found or self._fetch(place))
            finally:
                lock.release()
        except OSError as error:
            raise disk_error(error, place.part) from error

    def _take(self, lock: FileLock, place: Place) -> None:
        """Wait until nobody else fetches this file."""
        while not lock.take():
            self._have_bytes = self._trusted(place)[0]
            self._tell(DownloadState.WAITING, words=say.in_use_words())
            if self._tools.wait(self._stop, _LOCK_POLL_S):
                raise StoppedError

    # ------------------------------------------------------------------------------------------- what is here

    def _sound_copy(self, place: Place) -> Path | None:
        """Return where the complete file already lies, after a look at every byte; None where it must be fetched."""
        size_bytes = self._file.size_bytes
        found = self._layout.present(place, size_bytes)
        if found is None:
            return None
        self._have_bytes, checked = size_bytes, 0
        with found.open("rb") as file:
            head = file.read(HEAD_BYTES)
            file.seek(0)
            while piece := file.read(_READ_BYTES):
                checked = self._check_kept(piece, checked)
        is_sound = self._checksum.is_right() and begins_right(self._file.path, head, size_bytes)
        self._checksum.restart()
        if not is_sound:
            self._note = say.damaged_copy_words()
        return found if is_sound else None

    def _fetch(self, place: Place) -> Path:
        """Bring the file into its part, complete and sound, and return the part."""
        kept, self._version = self._trusted(place)
        missing = self._file.size_bytes - kept
        self._check_space(place, missing + self._tools.claimed_bytes() if missing else 0)
        part = PartFile(place.part, kept, lambda flushed: self._flushed(place, flushed), self._tools.flush_bytes)
        try:
            self._have_bytes = part.have_bytes
            self._flushed(place, part.have_bytes)
            checked = 0
            for piece in part.pieces():  # a hash that was begun cannot be kept on a disk
                checked = self._check_kept(piece, checked)
            self._bring(place, part)
        except _DamagedError as damage:
            part.close()
            discard_part(place.part)
            raise damage.error from damage
        except OSError:
            with contextlib.suppress(OSError):
                part.make_room()
                part.sync()
            raise
        except (DownloadError, StoppedError):
            with contextlib.suppress(OSError):
                part.sync()
            raise
        finally:
            part.close()
        return place.part

    def _trusted(self, place: Place) -> tuple[int, str]:
        """Return how many bytes of an earlier run are kept, and what their server called their version."""
        note = read_sidecar(place.sidecar)
        if note is None or not note.is_about(self._file):
            return 0, ""
        if not (self._checksum.can_check or note.version):
            return 0, ""  # nothing would tell whether old and new bytes belong together
        return note.flushed_bytes, note.version

    def _check_kept(self, piece: bytes, checked: int) -> int:
        """Hash a piece of what is here already; returns how much that makes."""
        if self._stop.is_set():
            raise StoppedError
        self._checksum.update(piece)
        if (checked + len(piece)) // _TELL_EVERY_BYTES > checked // _TELL_EVERY_BYTES or checked == 0:
            self._tell(DownloadState.VERIFYING, checked_bytes=checked + len(piece))
        return checked + len(piece)

    def _flushed(self, place: Place, size_bytes: int) -> None:
        """Note that bytes are on the disk for good; the part calls it on a thread of its own too."""
        with self._sidecar_lock:
            self._flushed_bytes = size_bytes
            write_sidecar(place.sidecar, sidecar_of(self._file, self._version, size_bytes))

    def _check_space(self, place: Place, missing_bytes: int) -> None:
        check_space(missing_bytes, self._tools.free_bytes(place.part.parent), self._tools.reserve_bytes)

    # -------------------------------------------------------------------------------------------- what comes

    def _bring(self, place: Place, part: PartFile) -> None:
        """Receive what is missing, over as many connections as it takes, and once more from the beginning if wrong."""
        is_again = False
        while True:
            try:
                while part.have_bytes < self._file.size_bytes:
                    self._try_once(place, part)
                part.sync()
                self._check(part)
            except _DamagedError:
                if is_again:
                    raise
                is_again = True
                self._restart(place, part, say.damaged_words())
            else:
                return

    def _try_once(self, place: Place, part: PartFile) -> None:
        """Receive over one connection; wait afterwards where the server or the network failed."""
        before = part.have_bytes
        self._tell_running()
        wanted = Wanted(self._url(), part.have_bytes, self._version)
        connection = Connection(self._tools.clients, self._tools.client, wanted, self._tools.silence_s)
        try:
            self._receive(place, part, connection)
        except RemoteError as error:
            if part.have_bytes - before >= _MIN_PROGRESS_BYTES:
                self._plan.progressed()
            self._wait_for_next(error)
        finally:
            connection.close()

    def _receive(self, place: Place, part: PartFile, connection: Connection) -> None:
        """Take what a connection brings, until the file is complete or must be asked for anew."""
        head = connection.open(self._stop, self._tell_running)
        if head.size_bytes not in (None, self._file.size_bytes):
            raise self._wrong_size(head.size_bytes or 0)
        skipped = 0
        if part.have_bytes and head.version != self._version and (head.version or not head.start):
            self._restart(place, part, say.changed_words())
            if head.start:
                return  # its bytes belong behind others that are gone
        elif head.start < part.have_bytes:
            skipped = part.have_bytes
            self._note = say.no_ranges_words()
        if head.version and head.version != self._version:
            self._version = head.version
            self._flushed(place, self._flushed_bytes)
        while pieces := connection.take(self._stop, self._tell_running):
            if skipped:
                pieces, skipped = _without(pieces, skipped)
            self._keep(place, part, pieces)
            self._tell_running()
            if part.have_bytes >= self._file.size_bytes:
                return
        raise RemoteError(RemoteFault.BROKEN_OFF, head.host)

    def _keep(self, place: Place, part: PartFile, pieces: Sequence[bytes]) -> None:
        """Write what came, and look at it."""
        before = part.have_bytes
        count = sum(map(len, pieces))
        if before + count > self._file.size_bytes:
            raise self._wrong_size(before + count)
        was_flushed = part.write(pieces)
        for piece in pieces:
            self._checksum.update(piece)
        self._have_bytes = part.have_bytes
        if before < HEAD_BYTES <= part.have_bytes:
            self._check_head(part)
        if was_flushed:
            self._check_space(place, self._file.size_bytes - part.have_bytes)

    def _restart(self, place: Place, part: PartFile, reason: Words) -> None:
        """Drop every byte, for a reason that a person is told; raises DownloadError when that happens over and over."""
        self._restarts += 1
        if self._restarts > _MAX_RESTARTS:
            raise server_error(RemoteError(RemoteFault.CHANGED, self._file.repo))
        part.restart()
        self._checksum.restart()
        self._version = ""
        self._flushed(place, 0)
        self._have_bytes, self._note = 0, reason
        self._tell_running()

    def _wait_for_next(self, error: RemoteError) -> None:
        """Wait as long as the fault wants; raises DownloadError where there is no next try."""
        wait_s = self._plan.wait_s(error)
        if wait_s is None:
            raise server_error(error) from error
        self._tell(DownloadState.WAITING, retry_at=self._tools.now() + wait_s, words=error.words)
        if self._tools.wait(self._stop, wait_s):
            raise StoppedError

    # ------------------------------------------------------------------------------------- whether it is right

    def _check(self, part: PartFile) -> None:
        self._check_head(part)
        if not self._checksum.is_right():
            raise _DamagedError(download_error(DownloadFault.WRONG_HASH, name=self._file.path))

    def _check_head(self, part: PartFile) -> None:
        if not begins_right(self._file.path, part.head(HEAD_BYTES), self._file.size_bytes):
            raise _DamagedError(download_error(DownloadFault.NO_MODEL, name=self._file.path))

    def _wrong_size(self, found: int) -> DownloadError:
        told = self._file.size_bytes
        return download_error(DownloadFault.WRONG_SIZE, name=self._file.path, found=found, told=told)

    # ------------------------------------------------------------------------------------------- small things

    def _url(self) -> str:
        file = self._file
        return f"{file.endpoint.rstrip('/')}/{file.repo}/resolve/{file.revision}/{quote(file.path)}"

    def _tell_running(self) -> None:
        self._tell(DownloadState.RUNNING)

    def _tell(
        self,
        state: DownloadState,
        *,
        checked_bytes: int = 0,
        retry_at: float | None = None,
        words: Words | None = None,
    ) -> None:
        self._on_progress(Progress(state, self._have_bytes, checked_bytes, retry_at, words or self._note))


def _without(pieces: list[bytes], count: int) -> tuple[list[bytes], int]:
    """Return the pieces without their first bytes, and how many bytes more must go."""
    for number, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[number + 1 :]], 0
        count -= len(piece)
    return [], count
