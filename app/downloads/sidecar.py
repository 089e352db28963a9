"""The note beside an unfinished file: whose bytes they are, and how many of them a power cut cannot take away.

It holds no address and no token: addresses of a CDN are signed. Knows no server.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import msgspec

from app.atomic_file import keep_names
from app.downloads.types import FileRef

_MAX_BYTES = 65_536


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an unfinished file.

    Attributes:
        repo: owner/name.
        revision: the commit.
        path: in the repo.
        size_bytes: of the whole file.
        sha256: of the whole file, or "".
        etag: what the hub calls the bytes, or "".
        version: what the server that gave the bytes calls this version of them (a strong ETag), or "".
        flushed_bytes: how many bytes from the beginning are on the disk for good.
        format: of this note.
    """

    repo: str
    revision: str
    path: str
    size_bytes: int
    sha256: str = ""
    etag: str = ""
    version: str = ""
    flushed_bytes: int = 0
    format: int = 1

    def is_about(self, file: FileRef) -> bool:
        """Return whether these are the bytes of a file, whichever commit they were asked for with."""
        if self.size_bytes != file.size_bytes:
            return False
        if self.sha256 and file.sha256:
            return self.sha256 == file.sha256
        if self.etag or file.etag:
            return self.etag == file.etag
        return (self.repo, self.revision, self.path) == (file.repo, file.revision, file.path)

    def file(self, endpoint: str) -> FileRef:
        """Return the file that it is about, at this hub."""
        return FileRef(endpoint, self.repo, self.revision, self.path, self.size_bytes, self.sha256, self.etag)


def sidecar_of(file: FileRef, version: str = "", flushed_bytes: int = 0) -> Sidecar:
    """Return the note for a file."""
    return Sidecar(
        repo=file.repo,
        revision=file.revision,
        path=file.path,
        size_bytes=file.size_bytes,
        sha256=file.sha256,
        etag=file.etag,
        version=version,
        flushed_bytes=flushed_bytes,
    )


def read_sidecar(path: Path) -> Sidecar | None:
    """Return the note; None where there is none, or none that can be true. A link is never followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            found = msgspec.json.decode(file.read(_MAX_BYTES), type=Sidecar)
        return found if 0 <= found.flushed_bytes <= found.size_bytes else None
    return None


def write_sidecar(path: Path, note: Sidecar) -> None:
    """Write the note so that a power cut leaves the old one or the new one; raises OSError. No link is followed.

    The draft has always the same name, so that a program that is killed leaves at most one behind.
    """
    draft = draft_path(path)
    draft.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
        file.write(msgspec.json.encode(note))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    keep_names(path.parent)


def draft_path(path: Path) -> Path:
    """Return where a note lies until it is complete."""
    return path.with_name(path.name + ".new")
