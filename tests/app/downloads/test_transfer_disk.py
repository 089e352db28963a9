"""One file on its way when the disk is full, odd or shared with somebody else; trust S-25 to S-27."""

from __future__ import annotations

import errno
import os
import subprocess
import threading

import pytest

from app.downloads import part_file
from app.downloads.cache_layout import CacheLayout
from app.downloads.faults import DownloadFault
from app.downloads.file_lock import FileLock
from app.downloads.sidecar import read_sidecar
from app.downloads.tools import StoppedError
from tests.helpers.downloads import KIB, MIB, Fetch, file_of, final_names, sha256_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

REPO, NAME = "ann/x-GGUF", "m.gguf"
SIZE = 3 * MIB + 5


@pytest.fixture
def hub():
    with HubServer() as server:
        server.add_repo(REPO, {NAME: Generated(SIZE, seed=8)}, card={"license": "mit"})
        yield server


def ref(hub):
    return file_of(hub, REPO, NAME)


def place(tmp_path, file):
    return CacheLayout(tmp_path).place(file)


# ------------------------------------------------------------------------------------------------------ the disk


def test_no_room_is_said_before_the_first_byte(hub, tmp_path):
    # Field report 1: both sizes are named.
    done = Fetch(hub, ref(hub), tmp_path, free_bytes=lambda _folder: 2 * MIB, reserve_bytes=MIB)
    assert (done.error.kind, done.error.action) == (DownloadFault.NO_SPACE, "free_space")
    assert hub.requests == []
    message = done.error.words.message.replace("\u00a0", " ")
    assert "4.00 MiB are needed" in message
    assert "2.00 MiB are there" in message


def test_what_others_will_still_write_counts(hub, tmp_path):
    room = {"free_bytes": lambda _folder: 10 * MIB, "reserve_bytes": MIB}
    assert Fetch(hub, ref(hub), tmp_path, claimed_bytes=lambda: 7 * MIB, **room).error.kind is DownloadFault.NO_SPACE
    assert Fetch(hub, ref(hub), tmp_path, claimed_bytes=lambda: 5 * MIB, **room).error is None


def test_space_that_vanishes_on_the_way_pauses_and_what_is_here_goes_on(hub, tmp_path):
    looks = iter([10 * MIB, 10 * MIB, 10 * MIB] + [0] * 100)
    done = Fetch(hub, ref(hub), tmp_path, free_bytes=lambda _folder: next(looks), reserve_bytes=MIB)
    assert done.error.kind is DownloadFault.NO_SPACE
    kept = read_sidecar(place(tmp_path, ref(hub)).sidecar).flushed_bytes
    assert kept >= 3 * 256 * KIB
    hub.requests.clear()
    assert Fetch(hub, ref(hub), tmp_path).error is None
    assert hub.seen("cdn")[0].range == f"bytes={kept}-"


def test_a_disk_that_is_full_all_of_a_sudden_loses_nothing_that_was_flushed(hub, tmp_path, monkeypatch):
    # S-26 where no small file system can be made: the system refuses after 2 MiB.
    plain, room = os.write, [2 * MIB]

    def write(descriptor, data):
        if len(data) > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0] -= len(data)
        return plain(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(part_file.os, "write", write)
        done = Fetch(hub, ref(hub), tmp_path)
    assert (done.error.kind, done.error.action) == (DownloadFault.DISK_FULL, "free_space")
    kept = read_sidecar(place(tmp_path, ref(hub)).sidecar).flushed_bytes
    assert 1 * MIB < kept <= 2 * MIB
    hub.requests.clear()
    assert sha256_of(Fetch(hub, ref(hub), tmp_path).path) == ref(hub).sha256
    assert hub.seen("cdn")[0].range == f"bytes={kept}-"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    result = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if result.returncode != 0:
        pytest.skip("only root can make a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_real_disk_that_is_full_is_resumed_after_space_was_freed(hub, small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(MIB))
    done = Fetch(hub, ref(hub), small_disk)
    assert (done.error.kind, done.error.action) == (DownloadFault.DISK_FULL, "free_space")
    assert final_names(small_disk) == []
    kept = read_sidecar(place(small_disk, ref(hub)).sidecar).flushed_bytes
    assert kept > MIB
    ballast.unlink()
    hub.requests.clear()
    subprocess.run(["mount", "-o", "remount,size=6m", str(small_disk)], check=True)
    assert sha256_of(Fetch(hub, ref(hub), small_disk).path) == ref(hub).sha256
    assert hub.seen("cdn")[0].range == f"bytes={kept}-"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_cache_that_is_no_folder_or_holds_something_else_is_said_so(hub, tmp_path, what):
    if what == "file":
        (tmp_path / "hub").write_bytes(b"")
    else:
        place(tmp_path / "hub", ref(hub)).blob.mkdir(parents=True)
    done = Fetch(hub, ref(hub), tmp_path / "hub")
    assert done.error.kind in (DownloadFault.NOT_WRITABLE, DownloadFault.LINK)
    assert str(tmp_path) in done.error.words.message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said_so(hub, tmp_path):
    tmp_path.chmod(0o500)
    assert Fetch(hub, ref(hub), tmp_path).error.kind is DownloadFault.NOT_WRITABLE


def test_a_link_in_place_of_the_part_is_refused(hub, tmp_path):
    target, where = tmp_path / "target", place(tmp_path / "hub", ref(hub))
    target.write_bytes(b"precious")
    where.part.parent.mkdir(parents=True)
    where.part.symlink_to(target)
    done = Fetch(hub, ref(hub), tmp_path / "hub")
    assert done.error.kind is DownloadFault.LINK
    assert target.read_bytes() == b"precious"


# ------------------------------------------------------------------------------------------------- two at a file


def test_a_file_that_somebody_else_fetches_is_waited_for_and_then_taken(hub, tmp_path):
    where = place(tmp_path, ref(hub))
    lock = FileLock(where.lock)
    assert lock.take()
    polls = []

    def wait(_stop, seconds):
        polls.append(seconds)
        if len(polls) == 3:  # the other one is done
            where.blob.parent.mkdir(parents=True, exist_ok=True)
            where.blob.write_bytes(Generated(SIZE, seed=8).part(0, SIZE))
            lock.release()
        return False

    done = Fetch(hub, ref(hub), tmp_path, wait=wait)
    assert done.states() == ["waiting", "verifying"]
    assert "being downloaded already" in done.progress[0].words.message
    assert len(polls) == 3
    assert hub.requests == []


def test_waiting_for_somebody_else_can_be_stopped(hub, tmp_path):
    lock = FileLock(place(tmp_path, ref(hub)).lock)
    assert lock.take()
    stop = threading.Event()
    done = Fetch(hub, ref(hub), tmp_path, stop=stop, on_progress=lambda _progress: stop.set())
    assert isinstance(done.error, StoppedError)
    lock.release()


def test_two_of_the_same_file_at_once_fetch_it_once(hub, tmp_path):
    hub.fault("throttle", "cdn", value=8_000_000)
    found = [None, None]

    def run(number):
        found[number] = Fetch(hub, ref(hub), tmp_path, wait=lambda stop, seconds: stop.wait(min(seconds, 0.05)))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.error for one in found] == [None, None]
    assert len(hub.seen("cdn")) == 1
    assert sha256_of(found[0].path) == ref(hub).sha256
