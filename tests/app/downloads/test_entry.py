"""How a download stands: what is shown, what is written down, what a full disk means."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.entry import Entry, entry_of
from app.downloads.faults import DownloadFault, download_error
from app.downloads.sidecar import sidecar_of, write_sidecar
from app.downloads.tools import Progress
from app.downloads.types import ACTIVE_STATES, DownloadState, FileRef
from app.errors import Words

ONE = FileRef("https://h", "a/b", "c" * 40, "one.gguf", 100, "1" * 64, "1" * 64)
TWO = FileRef("https://h", "a/b", "c" * 40, "two.gguf", 50, "2" * 64, "2" * 64)


def test_a_new_download_waits_for_a_place():
    shown = Entry("t", (ONE, TWO)).shown(0)
    assert (shown.state, shown.done_bytes, shown.total_bytes) == (DownloadState.QUEUED, 0, 150)
    assert (shown.speed_bytes_per_s, shown.left_s, shown.words, shown.action) == (None, None, None, "")


def test_bytes_of_all_files_make_one_progress_and_one_speed():
    entry = Entry("t", (ONE, TWO))
    entry.progressed(0, Progress(DownloadState.RUNNING, 0), 10.0)
    entry.progressed(0, Progress(DownloadState.RUNNING, 100), 12.0)
    entry.progressed(1, Progress(DownloadState.RUNNING, 20), 14.0)
    shown = entry.shown(14.0)
    assert (shown.done_bytes, shown.speed_bytes_per_s, shown.left_s) == (120, 30.0, 1.0)


def test_what_is_no_running_has_no_speed():
    entry = Entry("t", (ONE,))
    for now_s, have in ((0.0, 0), (2.0, 50)):
        entry.progressed(0, Progress(DownloadState.RUNNING, have), now_s)
    assert entry.shown(2.0).speed_bytes_per_s == 25
    waiting = Progress(DownloadState.WAITING, 50, retry_at=1000.0, words=Words("Broken."))
    assert entry.progressed(0, waiting, 3.0)
    shown = entry.shown(3.0)
    assert (shown.speed_bytes_per_s, shown.retry_at, shown.words) == (None, 1000.0, Words("Broken."))
    assert not entry.progressed(0, waiting, 4.0)  # nothing new but the time
    entry.progressed(0, Progress(DownloadState.VERIFYING, 50, checked_bytes=30), 5.0)
    assert entry.shown(5.0).checked_bytes == 30


@pytest.mark.parametrize("state", DownloadState)
def test_what_is_written_down_is_what_is_read(state):
    entry = Entry("t", (ONE,), branch="", state=state, words=Words("Why."), action="retry", path=Path("/x/one.gguf"))
    again = entry_of(entry.stored())
    is_active = state in ACTIVE_STATES
    assert again.state is (DownloadState.QUEUED if is_active else state)
    assert again.words == (None if is_active else Words("Why."))
    assert (again.download_id, again.files, again.branch, again.path) == (
        entry.download_id,
        (ONE,),
        "",
        Path("/x/one.gguf"),
    )


def test_the_same_files_in_any_order_are_the_same_download():
    entry = Entry("t", (ONE, TWO))
    assert entry.is_about((TWO, ONE))
    assert not entry.is_about((ONE,))
    assert not Entry("t", ()).is_about(())


@pytest.mark.parametrize(("have_bytes", "state"), [({}, DownloadState.FAILED), ({0: 5}, DownloadState.PAUSED)])
def test_a_full_disk_is_a_pause_where_something_is_here(have_bytes, state):
    entry = Entry("t", (ONE,), have_bytes=have_bytes)
    entry.fail(download_error(DownloadFault.DISK_FULL))
    assert (entry.state, entry.action) == (state, "free_space")
    entry.fail(download_error(DownloadFault.WRONG_HASH))
    assert (entry.state, entry.action) == (DownloadState.FAILED, "retry")


def test_what_is_on_the_disk_counts_at_once(tmp_path):
    layout = CacheLayout(tmp_path)
    done, begun = layout.place(ONE), layout.place(TWO)
    layout.prepare(done)
    done.blob.write_bytes(bytes(100))
    write_sidecar(begun.sidecar, sidecar_of(TWO, "", 20))
    entry = Entry("t", (ONE, TWO))
    entry.look(layout)
    assert entry.have_bytes == {0: 100, 1: 20}
    assert entry.missing_bytes == 30
    assert list(entry.parts(layout)) == [done.part, begun.part]


def test_a_name_that_is_refused_today_hinders_nothing(tmp_path):
    entry = Entry("t", (FileRef("https://h", "a/b", "c" * 40, "../x", 5, "1" * 64),))
    entry.look(CacheLayout(tmp_path))
    assert list(entry.parts(CacheLayout(tmp_path))) == []


def test_halting_is_told_to_the_transfer():
    entry = Entry("t", (ONE,))
    entry.halt()
    entry.stop = threading.Event()
    entry.halt()
    assert entry.stop.is_set()
