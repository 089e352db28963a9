"""Each way for a download to end has a sentence that says what happened and one that says what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from app.downloads.faults import DownloadFault, disk_error, download_error, server_error
from app.models.http_faults import RemoteError, RemoteFault

SIZES = {"needed": 5, "free": 4, "kept": 1, "told": 3, "found": 2}


@pytest.mark.parametrize("kind", DownloadFault)
def test_every_fault_has_words(kind):
    error = download_error(kind, name="m.gguf", detail="/folder", **SIZES)
    assert error.kind is kind
    assert error.words.message[-1] in ".!)" or kind is DownloadFault.LINK
    assert error.words.hint.endswith(".")
    assert "{" not in error.words.message + error.words.hint
    assert error.action in ("retry", "choose", "free_space")


@pytest.mark.parametrize("fault", RemoteFault)
def test_every_fault_of_a_server_has_an_action(fault):
    error = server_error(RemoteError(fault, "h"))
    assert error.kind is fault
    assert error.action in ("retry", "token", "choose")


@pytest.mark.parametrize(
    ("number", "kind", "action"),
    [
        (errno.ENOSPC, DownloadFault.DISK_FULL, "free_space"),
        (errno.EDQUOT, DownloadFault.DISK_FULL, "free_space"),
        (errno.EFBIG, DownloadFault.FILE_TOO_LARGE, "choose"),
        (errno.ELOOP, DownloadFault.LINK, "retry"),
        (errno.EROFS, DownloadFault.NOT_WRITABLE, "retry"),
        (errno.EACCES, DownloadFault.NOT_WRITABLE, "retry"),
        (errno.EIO, DownloadFault.NOT_WRITABLE, "retry"),
    ],
)
def test_what_the_system_refuses_has_its_words(number, kind, action):
    error = disk_error(OSError(number, "the reason"), Path("/cache/blobs/x.part"))
    assert (error.kind, error.action) == (kind, action)
    assert "/cache/blobs" in error.words.message


def test_a_name_is_shown_on_one_line():
    error = download_error(DownloadFault.WRONG_HASH, name="a\nb\u202ec")
    assert "“a b c”" in error.words.message
