"""What has no room is refused before the first byte, with both sizes; trust S-26, field report 1."""

from __future__ import annotations

import shutil

import pytest

from app.downloads.faults import DownloadError, DownloadFault
from app.downloads.space import RESERVE_BYTES, check_space, free_bytes

GIB = 2**30


def test_a_folder_that_is_not_there_yet_counts_as_its_parent(tmp_path):
    assert free_bytes(tmp_path / "a" / "b") == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.01)


def test_both_sizes_are_in_the_words():
    with pytest.raises(DownloadError) as caught:
        check_space(2 * GIB, GIB)
    assert (caught.value.kind, caught.value.action) == (DownloadFault.NO_SPACE, "free_space")
    message = caught.value.words.message.replace("\u00a0", " ")
    assert (
        message == "There is not enough space: 2.93 GiB are needed, of which 954 MiB stay free, and 1.00 GiB are there."
    )


def test_the_reserve_stays_free_to_the_byte():
    check_space(GIB, GIB + RESERVE_BYTES)
    with pytest.raises(DownloadError):
        check_space(GIB, GIB + RESERVE_BYTES - 1)


def test_nothing_missing_needs_no_space():
    check_space(0, 0)
