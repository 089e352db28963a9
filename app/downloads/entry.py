"""One download while the program runs: what was asked for, how it stands, and how that is shown and written down.

Does nothing by itself; app/downloads/queue.py changes it under its lock.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.downloads.cache_layout import CacheLayout
from app.downloads.faults import DownloadError
from app.downloads.queue_file import StoredDownload
from app.downloads.sidecar import read_sidecar
from app.downloads.speed import SpeedMeter
from app.downloads.tools import Progress
from app.downloads.types import ACTIVE_STATES, Download, DownloadState, FileRef
from app.errors import Words


@dataclass
class Entry:
    """A download in the list.

    Attributes:
        title: see Download.
        files: see Download.
        branch: which branch the files' commit is the newest of; "" for none.
        download_id: see Download.
        state: see Download.
        words: see Download.
        action: see Download.
        path: see Download.
        have_bytes: how much of each file is here.
        progress: what the running transfer said last; None without one.
        stop: ends the running transfer; None without one.
        nudge: ends a wait of the running transfer; set together with stop, or alone to try now.
        is_deleting: whether what is here is deleted once the transfer has ended.
        part: of a leftover, its unfinished file.
        meter: its speed.
        told_s: when a change was told last.
    """

    title: str
    files: tuple[FileRef, ...]
    branch: str = "main"
    download_id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: DownloadState = DownloadState.QUEUED
    words: Words | None = None
    action: str = ""
    path: Path | None = None
    have_bytes: dict[int, int] = field(default_factory=dict)
    progress: Progress | None = None
    stop: threading.Event | None = None
    nudge: threading.Event = field(default_factory=threading.Event)
    is_deleting: bool = False
    part: Path | None = None
    meter: SpeedMeter = field(default_factory=SpeedMeter)
    told_s: float = 0.0

    @property
    def total_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def missing_bytes(self) -> int:
        """What is still to come."""
        return self.total_bytes - sum(self.have_bytes.values())

    def is_about(self, files: tuple[FileRef, ...]) -> bool:
        """Return whether it brings these very files."""
        return bool(files) and {_key(file) for file in self.files} == {_key(file) for file in files}

    def progressed(self, number: int, progress: Progress, now_s: float) -> bool:
        """Note what a transfer said of a file; returns whether more changed than a count of bytes."""
        is_new = (progress.state, progress.words, progress.retry_at) != (
            self.state,
            self.words,
            self.progress.retry_at if self.progress else None,
        )
        self.state, self.words, self.progress = progress.state, progress.words, progress
        self.have_bytes[number] = progress.have_bytes
        if progress.state is DownloadState.RUNNING:
            self.meter.add(now_s, sum(self.have_bytes.values()))
        else:
            self.meter.restart()
        return is_new

    def ask_again(self) -> None:
        """Let it wait for a place."""
        self.rest(DownloadState.QUEUED)
        self.path, self.is_deleting = None, False

    def halt(self) -> None:
        """Let the running transfer end."""
        if self.stop is not None:
            self.stop.set()
            self.nudge.set()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait, on the transfer's thread, until it is nudged or the time is over; returns whether it is to end."""
        self.nudge.wait(seconds)
        self.nudge.clear()
        return stop.is_set()

    def parts(self, layout: CacheLayout) -> Iterator[Path]:
        """Yield where its unfinished files lie or would."""
        if self.part is not None:
            yield self.part
        for file in self.files:
            with contextlib.suppress(DownloadError):
                yield layout.place(file).part

    def rest(self, state: DownloadState, words: Words | None = None, action: str = "") -> None:
        """Leave the running states."""
        self.state, self.words, self.action = state, words, action
        self.progress = None
        self.meter.restart()

    def fail(self, error: DownloadError) -> None:
        """Stop for a reason. A full disk is a pause where something is here already."""
        has_some = any(self.have_bytes.values())
        is_pause = error.action == "free_space" and has_some
        self.rest(DownloadState.PAUSED if is_pause else DownloadState.FAILED, error.words, error.action)

    def shown(self, now_s: float) -> Download:
        """Return how it stands, for whoever shows it.

        Args:
            now_s: seconds that only go forward, for the speed.
        """
        done_bytes = sum(self.have_bytes.values())
        is_running = self.state is DownloadState.RUNNING
        return Download(
            download_id=self.download_id,
            title=self.title,
            files=self.files,
            state=self.state,
            done_bytes=done_bytes,
            total_bytes=max(done_bytes, self.total_bytes),
            checked_bytes=self.progress.checked_bytes if self.progress else 0,
            speed_bytes_per_s=self.meter.bytes_per_s(now_s) if is_running else None,
            left_s=self.meter.left_s(now_s, self.missing_bytes) if is_running else None,
            retry_at=self.progress.retry_at if self.progress else None,
            words=self.words,
            action=self.action,
            path=self.path,
            is_leftover=self.part is not None,
        )

    def stored(self) -> StoredDownload:
        """Return how it is written down."""
        is_active = self.state in ACTIVE_STATES
        return StoredDownload(
            download_id=self.download_id,
            title=self.title,
            files=self.files,
            branch=self.branch,
            state=DownloadState.QUEUED if is_active else self.state,
            words=None if is_active else self.words,
            action="" if is_active else self.action,
            path=str(self.path or ""),
        )

    def look(self, layout: CacheLayout) -> None:
        """Note how much of each file is on the disk, from the notes beside them."""
        for number, file in enumerate(self.files):
            try:
                place = layout.place(file)
            except DownloadError:  # a name that an older version accepted
                continue
            if layout.present(place, file.size_bytes) is not None:
                self.have_bytes[number] = file.size_bytes
            else:
                note = read_sidecar(place.sidecar)
                self.have_bytes[number] = note.flushed_bytes if note is not None and note.is_about(file) else 0


def entry_of(stored: StoredDownload) -> Entry:
    """Return a download that was written down."""
    return Entry(
        title=stored.title,
        files=stored.files,
        branch=stored.branch,
        download_id=stored.download_id,
        state=stored.state,
        words=stored.words,
        action=stored.action,
        path=Path(stored.path) if stored.path else None,
    )


def _key(file: FileRef) -> tuple[str, str, str, str]:
    return file.repo, file.path, file.etag or file.revision, file.sha256
