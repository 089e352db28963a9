"""Everything that ends a download, and the words for it. What a server does wrong has its words in http_faults.py.

Knows neither HTTP nor disks.
"""

from __future__ import annotations

import enum
import errno
from collections.abc import Callable
from pathlib import Path

from app.errors import AppError, Words, one_line
from app.i18n import _
from app.models.http_faults import RemoteError, RemoteFault
from app.units import bytes_text


class DownloadFault(enum.StrEnum):
    """Why a download stopped, where it was not the server's or the network's doing."""

    BAD_NAME = "bad_name"  # a file, repo or revision whose name may not become a path here
    TWIN_NAME = "twin_name"  # two names that are one on other systems
    LINK = "link"  # a link, or something else than a file or folder, where ours should be
    NO_SPACE = "no_space"  # the disk has no room for the rest
    DISK_FULL = "disk_full"  # the system refused to write more
    FILE_TOO_LARGE = "file_too_large"  # this kind of disk holds no such large files
    NOT_WRITABLE = "not_writable"  # the system refused something else
    WRONG_SIZE = "wrong_size"  # the server has another size than the hub says
    NO_MODEL = "no_model"  # what came is no model file, by its first bytes
    WRONG_HASH = "wrong_hash"  # what came is not what the hub says, twice


# Which one thing a person can do; see Download.action. What is not here can be retried.
_ACTIONS: dict[RemoteFault | DownloadFault, str] = {
    RemoteFault.GATED: "token",
    RemoteFault.NO_ACCESS: "token",
    RemoteFault.TOKEN_REFUSED: "token",
    RemoteFault.MISSING: "choose",
    RemoteFault.BAD_ADDRESS: "choose",
    DownloadFault.BAD_NAME: "choose",
    DownloadFault.TWIN_NAME: "choose",
    DownloadFault.NO_SPACE: "free_space",
    DownloadFault.DISK_FULL: "free_space",
    DownloadFault.FILE_TOO_LARGE: "choose",
}


class DownloadError(AppError):
    """A download stopped and cannot go on by itself.

    Attributes:
        kind: why.
        action: see Download.action.
    """

    def __init__(self, kind: RemoteFault | DownloadFault, words: Words) -> None:
        super().__init__(words)
        self.kind = kind
        self.action = _ACTIONS.get(kind, "retry")


def download_error(kind: DownloadFault, *, name: str = "", detail: str = "", **sizes_bytes: int) -> DownloadError:
    """Return the error to raise.

    Args:
        kind: why.
        name: of the file, as the repo has it.
        detail: what the sentence needs besides.
        sizes_bytes: needed, free, told, found, here: those that the sentence needs.
    """
    message, hint = _WORDS[kind]()
    values = {"name": one_line(name, 120), "detail": one_line(detail, 200)}
    values |= {key: bytes_text(size) for key, size in sizes_bytes.items()}
    return DownloadError(kind, Words(message.format_map(values), hint.format_map(values)))


def server_error(error: RemoteError) -> DownloadError:
    """Return the error for what a server did, when it is not tried again."""
    return DownloadError(error.fault, error.words)


def disk_error(error: OSError, path: Path) -> DownloadError:
    """Return the error for what the system refused to do with a file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return download_error(DownloadFault.DISK_FULL, detail=str(path.parent))
    if error.errno == errno.EFBIG:
        return download_error(DownloadFault.FILE_TOO_LARGE, detail=str(path.parent))
    if error.errno == errno.ELOOP:
        return download_error(DownloadFault.LINK, detail=str(path))
    reason = error.strerror or type(error).__name__
    return download_error(DownloadFault.NOT_WRITABLE, name=reason, detail=str(error.filename or path))


_WORDS: dict[DownloadFault, Callable[[], tuple[str, str]]] = {
    DownloadFault.BAD_NAME: lambda: (
        _("“{name}” cannot be downloaded: {detail}."),
        _("Choose another file, or the same model of another publisher."),
    ),
    DownloadFault.TWIN_NAME: lambda: (
        _("“{name}” and “{detail}” would be one file on some systems, so the first one would be lost."),
        _("Choose another file, or the same model of another publisher."),
    ),
    DownloadFault.LINK: lambda: (
        _("There is a link, or something that is no file, where the download belongs: {detail}"),
        _("Remove it, or choose another folder for models, then try again."),
    ),
    DownloadFault.NO_SPACE: lambda: (
        _("There is not enough space: {needed} are needed, of which {kept} stay free, and {free} are there."),
        _("Free some space, then try again. What is here is kept."),
    ),
    DownloadFault.DISK_FULL: lambda: (
        _("The disk is full: nothing more can be written to {detail}."),
        _("Free some space, then resume. What is here is kept."),
    ),
    DownloadFault.FILE_TOO_LARGE: lambda: (
        _("The disk of {detail} cannot hold a file as large as this one, however much space it has."),
        _("Choose a folder for models on another disk, or a smaller quantization."),
    ),
    DownloadFault.NOT_WRITABLE: lambda: (
        _("The system refused to write: {name} ({detail})."),
        _("Check that you may write to this folder and that its disk is connected, then try again."),
    ),
    DownloadFault.WRONG_SIZE: lambda: (
        _("The server's “{name}” has another size than the hub says: {found} in place of {told}."),
        _("It may have changed just now. Look at the model's page again, then retry."),
    ),
    DownloadFault.NO_MODEL: lambda: (
        _("“{name}” is no model file: it does not begin as one."),
        _("Something in this network may have changed it. Retry, or choose another file."),
    ),
    DownloadFault.WRONG_HASH: lambda: (
        _("“{name}” arrived damaged twice: its SHA-256 is not the one that the hub gives."),
        _("Nothing of it was kept. Something in this network may change what is downloaded. Retry later."),
    ),
}
