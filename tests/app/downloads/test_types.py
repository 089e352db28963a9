"""What a download is survives being written down."""

from __future__ import annotations

import msgspec

from app.downloads.types import ACTIVE_STATES, DownloadState, FileRef


def test_a_file_is_the_same_after_it_was_written_and_read():
    file = FileRef("https://huggingface.co", "a/b", "c" * 40, "ü/m.gguf", 2**40, "d" * 64, "d" * 64)
    assert msgspec.json.decode(msgspec.json.encode(file), type=FileRef) == file


def test_a_download_is_either_active_or_at_rest():
    resting = set(DownloadState) - ACTIVE_STATES
    assert resting == {DownloadState.PAUSED, DownloadState.DONE, DownloadState.FAILED, DownloadState.CANCELLED}
