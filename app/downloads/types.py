"""What a download is to whoever shows it, and what each of its files is to whoever fetches it.

Knows neither HTTP nor disks.
"""

from __future__ import annotations

import enum
from pathlib import Path

import msgspec

from app.errors import Words


class FileRef(msgspec.Struct, frozen=True):
    """One file of a repo at one commit.

    Attributes:
        endpoint: the hub's address, such as https://huggingface.co; it holds no name and no password.
        repo: owner/name.
        revision: the commit's SHA-1, so that the file stays what it was when it was chosen.
        path: in the repo.
        size_bytes: of the whole file.
        sha256: of the whole file; "" where the hub gives none, as for small files.
        etag: what the hub calls these bytes: the SHA-256 of large files, the git object's name of small ones; "" where
            it is not known.
    """

    endpoint: str
    repo: str
    revision: str
    path: str
    size_bytes: int
    sha256: str = ""
    etag: str = ""


class DownloadState(enum.StrEnum):
    """What a download is doing."""

    QUEUED = "queued"  # waits for one of the places
    RUNNING = "running"  # bytes arrive, or are asked for
    PAUSED = "paused"  # by the person, by a full disk, or by the end of the program
    WAITING = "waiting"  # tries again by itself at retry_at, or when another Cutaway is done with the file
    VERIFYING = "verifying"  # reads what is here and computes its hash
    DONE = "done"  # every file is in its place
    FAILED = "failed"  # stopped; the words say why and what can be done
    CANCELLED = "cancelled"  # by the person


# Those in which a download holds or wants one of the places.
ACTIVE_STATES = frozenset({DownloadState.QUEUED, DownloadState.RUNNING, DownloadState.WAITING, DownloadState.VERIFYING})


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked for, as it stands at one moment: one file, or several that belong together.

    Attributes:
        download_id: keeps its meaning over restarts.
        title: such as owner/name:Q4_K_M.
        files: in the order in which they are fetched; none for a leftover that nobody knows any more.
        state: see DownloadState.
        done_bytes: how much is here. It never becomes less while the download runs, unless the words say why.
        total_bytes: of all files.
        checked_bytes: while VERIFYING, how much was read of what is here.
        speed_bytes_per_s: over the last seconds; None while it is not known or nothing is expected.
        left_s: how long it will take at this speed; None while it is not known.
        retry_at: while WAITING for a time, that time (seconds since 1970); else None.
        words: why it stopped or waits, and what can be done; None when all is well.
        action: the one thing that a person can do: "" nothing, "resume", "retry", "token" (give one, or accept the
            licence), "free_space", "choose" (another file).
        path: once DONE, the first file's place; else None.
        is_leftover: whether it was found on the disk without being known: an unfinished file of an earlier run.
    """

    download_id: str
    title: str
    files: tuple[FileRef, ...]
    state: DownloadState
    done_bytes: int = 0
    total_bytes: int = 0
    checked_bytes: int = 0
    speed_bytes_per_s: float | None = None
    left_s: float | None = None
    retry_at: float | None = None
    words: Words | None = None
    action: str = ""
    path: Path | None = None
    is_leftover: bool = False
