"""The list of downloads over restarts, crashes, damage and beside a second program; S-46, field reports 1 and 5."""

from __future__ import annotations

import json
import threading
import time

import pytest

from app.downloads.types import DownloadState
from tests.helpers.downloads import MIB, PLENTY, QueueWatch, file_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

REPO = "ann/x-GGUF"
NAMES = tuple(f"m{number}.gguf" for number in range(4))
SIZE = 2 * MIB
SILENCE_S = 30.0  # what the queue gives a server


@pytest.fixture
def hub():
    with HubServer() as server:
        files = {name: Generated(SIZE, seed=number) for number, name in enumerate(NAMES)}
        server.add_repo(REPO, files, card={"license": "mit"})
        yield server


def add(hub, watch, name):
    return watch.queue.add(name, [file_of(hub, REPO, name)]).download_id


def hold(hub, name=NAMES[0]):
    """Let a file come up to its middle and no further."""
    hub.fault("stall_in_body", f"cdn:*{name}", value=MIB)


def has(count):
    return lambda one: one.done_bytes >= count


def test_a_full_disk_is_a_pause_that_the_next_start_still_shows(hub, tmp_path):
    # Field report 1.
    looks = iter([PLENTY] * 3 + [0] * 1000)
    with QueueWatch(hub, tmp_path, changes={"free_bytes": lambda _f: next(looks), "flush_bytes": 65_536}) as watch:
        paused = watch.ended(add(hub, watch, NAMES[0]))
        assert (paused.state, paused.action) == (DownloadState.PAUSED, "free_space")
        assert paused.done_bytes > 0
    with QueueWatch(hub, tmp_path) as later:
        (again,) = later.queue.downloads()
        assert (again.state, again.words, again.action) == (paused.state, paused.words, "free_space")
        assert again.done_bytes == paused.done_bytes
        later.queue.resume(again.download_id)
        assert later.ended(again.download_id).state is DownloadState.DONE


def test_the_next_start_has_what_was_under_way_paused(hub, tmp_path):
    for name in NAMES[:2]:
        hold(hub, name)
    with QueueWatch(hub, tmp_path) as watch:
        ids = [add(hub, watch, name) for name in NAMES[:3]]
        for download_id in ids[:2]:
            watch.wait(download_id, has(MIB - 300_000))
        here = [watch.now(one).done_bytes for one in ids]
    hub.clear_faults()
    with QueueWatch(hub, tmp_path) as later:
        found = later.queue.downloads()
        assert [one.download_id for one in found] == ids
        assert [(one.state, one.action) for one in found] == [(DownloadState.PAUSED, "resume")] * 3
        assert [one.done_bytes >= before for one, before in zip(found, here, strict=True)] == [True] * 3
        assert "Cutaway ended" in found[0].words.message
        for download_id in ids:
            later.queue.resume(download_id)
        assert [later.ended(one).state for one in ids] == [DownloadState.DONE] * 3
    assert [hub.repeated(f"{REPO}/{name}") for name in NAMES[:3]] == [[], [], []]


def test_the_next_start_goes_on_by_itself_where_that_is_wanted(hub, tmp_path):
    hold(hub)
    with QueueWatch(hub, tmp_path) as watch:
        download_id = add(hub, watch, NAMES[0])
        watch.wait(download_id, has(MIB - 300_000))
    hub.clear_faults()
    with QueueWatch(hub, tmp_path, is_resuming=True) as later:
        assert later.ended(download_id).state is DownloadState.DONE


def test_a_list_of_before_a_crash_is_adopted(hub, tmp_path):
    # Field report 5: what a killed program left on the disk is the list as it was while everything ran.
    hold(hub)
    with QueueWatch(hub, tmp_path) as watch:
        download_id = add(hub, watch, NAMES[0])
        watch.wait(download_id, has(MIB - 300_000))
        as_left = wait_for_file(tmp_path / "data" / "downloads.json")
    (tmp_path / "data" / "downloads.json").write_bytes(as_left)
    with QueueWatch(hub, tmp_path) as later:
        assert later.now(download_id).state is DownloadState.PAUSED


def wait_for_file(path):
    """Return what is in a file that another thread is writing."""
    deadline_s = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.01)
    return path.read_bytes()


def test_a_damaged_list_costs_no_file(hub, tmp_path):
    hold(hub)
    with QueueWatch(hub, tmp_path) as watch:
        watch.wait(add(hub, watch, NAMES[0]), has(MIB - 300_000))
    (tmp_path / "data" / "downloads.json").write_bytes(b"\0" * 100)
    with QueueWatch(hub, tmp_path) as later:
        assert later.queue.downloads() == []
        assert "put aside" in later.queue.notices[0].message
        (left,) = later.queue.find_leftovers()
        assert left.files[0].path == NAMES[0]


def test_what_is_done_or_gone_is_remembered_as_such(hub, tmp_path):
    with QueueWatch(hub, tmp_path) as watch:
        done, removed, cancelled = (add(hub, watch, name) for name in NAMES[:3])
        for download_id in (done, removed, cancelled):
            watch.ended(download_id)
        watch.queue.remove(removed)
    with QueueWatch(hub, tmp_path) as later:
        found = {one.download_id: one for one in later.queue.downloads()}
        assert set(found) == {done, cancelled}
        assert (found[done].state, found[done].done_bytes) == (DownloadState.DONE, SIZE)
        assert found[done].path.exists()


def test_what_was_deleted_since_is_no_longer_listed(hub, tmp_path):
    with QueueWatch(hub, tmp_path) as watch:
        done = watch.ended(add(hub, watch, NAMES[0]))
    done.path.resolve().unlink()
    with QueueWatch(hub, tmp_path) as later:
        assert later.queue.downloads() == []


def test_a_second_program_downloads_but_leaves_the_list_alone(hub, tmp_path):
    with QueueWatch(hub, tmp_path) as first:
        first.ended(add(hub, first, NAMES[0]))
        with QueueWatch(hub, tmp_path) as second:
            assert second.queue.downloads() == []
            assert second.ended(add(hub, second, NAMES[1])).state is DownloadState.DONE
        first.ended(add(hub, first, NAMES[2]))
    stored = json.loads((tmp_path / "data" / "downloads.json").read_bytes())["downloads"]
    assert [one["title"] for one in stored] == [NAMES[0], NAMES[2]]


def test_a_list_that_cannot_be_kept_hinders_no_download(hub, tmp_path, allow_log):
    allow_log(r"cannot be kept|could not be noted")
    (tmp_path / "data").write_bytes(b"no folder")
    with QueueWatch(hub, tmp_path) as watch:
        assert watch.ended(add(hub, watch, NAMES[0])).state is DownloadState.DONE


def test_closing_does_not_wait_for_silent_servers(hub, tmp_path):
    hub.fault("stall_before_headers", "cdn")
    watch = QueueWatch(hub, tmp_path)
    for name in NAMES[:3]:
        add(hub, watch, name)
    watch.wait(watch.queue.downloads()[0].download_id, lambda _one: len(hub.seen("cdn")) == 2)
    began_s = time.monotonic()
    watch.close()
    assert time.monotonic() - began_s < SILENCE_S / 4
    watch.queue.pause("nobody")
    add(hub, watch, NAMES[3])  # after the end: noted, never begun
    assert watch.queue.downloads()[-1].state is DownloadState.QUEUED
