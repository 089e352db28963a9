"""A downloader that is killed, or whose machine loses its power: the next one goes on, and the file comes right.

Trust S-21, list C-09, field report 2. A power cut is played by what it may do to the file: everything that was not
flushed is gone or is garbage.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.downloads.cache_layout import CacheLayout
from app.downloads.sidecar import read_sidecar
from tests.helpers.downloads import MIB, Fetch, content_of, file_of, sha256_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

CHILD = Path(__file__).resolve().parent.parent / "helpers" / "download_child.py"
REPO, NAME = "ann/x-GGUF", "m.gguf"
TARGET = f"{REPO}/{NAME}"


def hub_with(size_bytes):
    hub = HubServer(bytes_per_s=100_000_000)
    hub.add_repo(REPO, {NAME: Generated(size_bytes, seed=3)}, card={"license": "mit"})
    return hub


class Child:
    """A process that fetches the file."""

    def __init__(self, hub, root, flush_bytes):
        self._lines = [sys.executable, str(CHILD), str(root), str(flush_bytes)]
        self._lines.append(msgspec.json.encode(file_of(hub, REPO, NAME)).decode())
        self.first_running_bytes = None

    def run(self, until_bytes=None):
        """Run to the end, or until so much is here and then kill it; returns its last line."""
        last = ""
        with subprocess.Popen(self._lines, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                last = line
                state, _space, told = line.strip().partition(" ")
                if state == "running" and self.first_running_bytes is None:
                    self.first_running_bytes = int(told)
                if until_bytes is not None and state == "running" and int(told) >= until_bytes:
                    process.send_signal(signal.SIGKILL)
                    break
        assert process.returncode == (0 if until_bytes is None else -signal.SIGKILL)
        return last


def kill_and_resume(root, size_bytes, points, flush_bytes):
    """Kill a child at each of these numbers of bytes, let another end it, and check every request on the way."""
    with hub_with(size_bytes) as hub:
        place = CacheLayout(root).place(file_of(hub, REPO, NAME))
        flushed = 0
        for point in points:
            child = Child(hub, root, flush_bytes)
            child.run(until_bytes=point)
            assert hub.wait_idle()
            assert child.first_running_bytes == flushed  # what was flushed is shown from the first moment on
            note = read_sidecar(place.sidecar)
            assert note is not None
            assert flushed <= note.flushed_bytes <= place.part.stat().st_size
            assert hub.seen("cdn")[-1].range == (f"bytes={flushed}-" if flushed else "")
            assert point - note.flushed_bytes <= 2 * flush_bytes  # no kill costs more
            flushed = note.flushed_bytes
        last = Child(hub, root, flush_bytes).run()
        assert last.startswith("done ")
        assert hub.seen("cdn")[-1].range == f"bytes={flushed}-"
        assert sha256_of(place.snapshot) == content_of(hub, REPO, NAME).sha256
        assert [path.name for path in place.blob.parent.iterdir()] == [place.blob.name]


def test_nothing_that_was_flushed_is_fetched_again_after_a_kill(tmp_path):
    points = sorted(random.Random(5).sample(range(4 * MIB, 46 * MIB), 3))
    kill_and_resume(tmp_path, 48 * MIB, points, 4 * MIB)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_ten_kills_at_random_points_of_200_megabytes(tmp_path, seed):
    points = sorted(random.Random(seed).sample(range(MIB, 199 * MIB), 10))
    kill_and_resume(tmp_path, 200 * MIB, points, 32 * MIB)


# What a power cut may leave of a part of which `flushed` bytes are safe: a function of the part and that number.
def cut_off(part, flushed):
    with part.open("rb+") as file:
        file.truncate(flushed)


def cut_below(part, flushed):  # a disk that lies about flushes
    with part.open("rb+") as file:
        file.truncate(flushed - 1000)


def zeros_behind(part, flushed):
    size = part.stat().st_size
    with part.open("rb+") as file:
        file.truncate(flushed)
        file.truncate(size + MIB)


def garbage_behind(part, flushed):
    size = part.stat().st_size
    with part.open("rb+") as file:
        file.seek(flushed)
        file.write(random.Random(1).randbytes(size - flushed + MIB))


def garbage_before(part, flushed):  # the disk itself is bad
    with part.open("rb+") as file:
        file.seek(flushed // 2)
        file.write(b"\xff" * 100)


DAMAGES = {
    cut_off: lambda flushed: flushed,
    cut_below: lambda flushed: flushed - 1000,
    zeros_behind: lambda flushed: flushed,
    garbage_behind: lambda flushed: flushed,
    garbage_before: lambda flushed: flushed,
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_after_a_power_cut_the_file_still_comes_right(tmp_path, damage):
    with hub_with(8 * MIB) as hub:
        file = file_of(hub, REPO, NAME)
        place = CacheLayout(tmp_path).place(file)
        Child(hub, tmp_path, MIB).run(until_bytes=5 * MIB)
        assert hub.wait_idle()
        flushed = read_sidecar(place.sidecar).flushed_bytes
        assert flushed >= 3 * MIB
        damage(place.part, flushed)
        done = Fetch(hub, file, tmp_path)
        assert hub.seen("cdn")[1].range == f"bytes={DAMAGES[damage](flushed)}-"
        assert sha256_of(done.path) == file.sha256
        is_again = damage is garbage_before
        assert len(hub.seen("cdn")) == (3 if is_again else 2)
        assert bool(done.steps_back()) == is_again


@pytest.mark.parametrize("note", [None, b"", b"{", b'{"flushed_bytes": 5}', b"\xff" * 100])
def test_without_a_sound_note_nothing_is_trusted(tmp_path, note):
    with hub_with(4 * MIB) as hub:
        file = file_of(hub, REPO, NAME)
        place = CacheLayout(tmp_path).place(file)
        Child(hub, tmp_path, MIB).run(until_bytes=2 * MIB)
        if note is None:
            place.sidecar.unlink()
        else:
            place.sidecar.write_bytes(note)
        done = Fetch(hub, file, tmp_path)
        assert hub.seen("cdn")[-1].range == ""
        assert sha256_of(done.path) == file.sha256
