"""The list of downloads on the disk: what was asked for and how it stood, so that the next start knows it too.

An entry that this version does not understand is kept as it is. A list that cannot be read is put aside, never
forgotten. Knows no server; it holds neither addresses of a CDN nor tokens.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets
from pathlib import Path

import msgspec

from app.atomic_file import replace_file
from app.downloads import words as say
from app.downloads.types import DownloadState, FileRef
from app.errors import Words

_MAX_BYTES = 16 * 2**20


class StoredDownload(msgspec.Struct, frozen=True, kw_only=True):
    """One download as it is written down; see Download.

    Attributes:
        download_id: see Download.
        title: see Download.
        files: see Download.
        branch: which branch the files' commit is the newest of; "" for none.
        state: QUEUED for whatever was active.
        words: see Download.
        action: see Download.
        path: see Download.
    """

    download_id: str
    title: str
    files: tuple[FileRef, ...]
    branch: str = "main"
    state: DownloadState = DownloadState.QUEUED
    words: Words | None = None
    action: str = ""
    path: str = ""


class _Stored(msgspec.Struct, kw_only=True):
    format: int = 1
    downloads: list[msgspec.Raw] = []


class QueueFile:
    """The file of the list. One thread at a time uses it.

    Attributes:
        notices: what a person must be told about what was read.
    """

    def __init__(self, path: Path) -> None:
        self.notices: list[Words] = []
        self._path = path
        self._foreign: list[msgspec.Raw] = []
        self._written = b""

    def read(self) -> list[StoredDownload]:
        """Return what was written down, oldest first; nothing where there is no list."""
        try:
            with self._path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError:
            return []
        try:
            stored = msgspec.json.decode(data, type=_Stored)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._put_aside()
            return []
        found = []
        for raw in stored.downloads:
            try:
                found.append(msgspec.json.decode(raw, type=StoredDownload))
            except (msgspec.MsgspecError, ValueError):
                self._foreign.append(raw)
        self._written = data
        return found

    def write(self, downloads: list[StoredDownload]) -> None:
        """Write the list where it differs from what is written; raises OSError."""
        raws = [msgspec.Raw(msgspec.json.encode(one)) for one in downloads]
        data = msgspec.json.encode(_Stored(downloads=[*self._foreign, *raws]))
        if data != self._written:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, data)
            self._written = data

    def _put_aside(self) -> None:
        date = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
        aside = self._path.with_name(f"{self._path.stem}.damaged-{date}-{secrets.token_hex(2)}{self._path.suffix}")
        with contextlib.suppress(OSError):
            self._path.rename(aside)
            self.notices.append(say.queue_lost_words(aside.name))
