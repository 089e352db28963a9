"""An unfinished file grows at its end, knows what is safe, and is never somebody else's file."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from app.downloads import part_file
from app.downloads.part_file import PartFile


def nothing(_flushed):
    pass


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.part"


def test_bytes_are_added_behind_what_is_kept(path):
    path.write_bytes(b"0123456789")
    part = PartFile(path, 4, nothing)
    assert part.have_bytes == 4
    part.write([b"ab", b"", b"c"])
    assert part.have_bytes == 7
    assert b"".join(part.pieces()) == b"0123abc"
    part.write([b"d"])  # reading moved nothing
    assert part.head(2) == b"01"
    assert part.head(100) == b"0123abcd"
    part.write([b"e"])
    part.close()
    part.close()
    assert path.read_bytes() == b"0123abcde"


def test_what_is_kept_is_at_most_what_is_there(path):
    path.write_bytes(b"0123")
    part = PartFile(path, 100, nothing)
    assert part.have_bytes == 4
    part.close()


def test_a_restart_drops_everything(path):
    part = PartFile(path, 0, nothing)
    part.write([b"abc"])
    part.restart()
    part.write([b"x"])
    part.close()
    assert path.read_bytes() == b"x"


def test_every_so_many_bytes_are_flushed_and_told_in_order(path):
    told = []
    part = PartFile(path, 0, told.append, flush_bytes=10)
    begun = [part.write([b"x" * 4]) for _number in range(10)]
    assert begun == [False, False, True] * 3 + [False]
    part.sync()
    part.close()
    assert told == [12, 24, 36, 40]


def test_what_is_told_was_synced_before(path, monkeypatch):
    events = []
    plain = os.fsync

    def note(descriptor):
        plain(descriptor)
        events.append(("synced", os.fstat(descriptor).st_size))

    monkeypatch.setattr(part_file.os, "fsync", note)
    part = PartFile(path, 0, lambda flushed: events.append(("told", flushed)), flush_bytes=10)
    part.write([b"x" * 10])
    part.sync()
    part.close()
    assert events == [("synced", 10), ("told", 10), ("synced", 10), ("told", 10)]


def test_at_most_two_spans_are_at_risk(path):
    # While one flush is under way, bytes go on being written; the next flush waits for it.
    began, go_on = threading.Event(), threading.Event()
    told = []

    def slow(flushed):
        told.append(flushed)
        began.set()
        assert go_on.wait(10)

    part = PartFile(path, 0, slow, flush_bytes=10)
    part.write([b"x" * 10])
    assert began.wait(10)
    part.write([b"x" * 9])  # does not wait
    writer = threading.Thread(target=part.write, args=([b"x"],))
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    go_on.set()
    writer.join()
    part.close()
    assert told == [10, 20]


def test_a_full_disk_says_so_and_counts_what_was_written(path, monkeypatch):
    room = [5]
    plain = os.write

    def write(descriptor, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = plain(descriptor, bytes(data[: room[0]]))
        room[0] -= count
        return count

    monkeypatch.setattr(part_file.os, "write", write)
    part = PartFile(path, 0, nothing)
    with pytest.raises(OSError, match="No space left"):
        part.write([b"abc", b"defgh"])
    assert part.have_bytes == 5
    part.sync()
    part.close()
    assert path.read_bytes() == b"abcde"


def test_a_full_disk_gets_some_room_back_for_the_notes(path):
    told = []
    part = PartFile(path, 0, told.append)
    part.write([b"x" * 300_000])
    part.make_room()
    part.sync()
    assert (part.have_bytes, told) == (300_000 - 262_144, [300_000 - 262_144])
    part.make_room()
    assert part.have_bytes == 0
    part.close()


def test_an_error_of_a_flush_reaches_whoever_writes_next(path):
    def fail(_flushed):
        raise OSError(errno.EIO, "Input/output error")

    part = PartFile(path, 0, fail, flush_bytes=4)
    part.write([b"abcd"])
    with pytest.raises(OSError, match="Input/output"):
        part.write([b"abcd"])
    part.write([b"x"])
    part.close()


def test_a_file_that_shrinks_while_it_is_read_is_an_error(path):
    part = PartFile(path, 0, nothing)
    part.write([b"x" * 100])
    os.truncate(path, 50)
    with pytest.raises(OSError, match="became shorter"):
        list(part.pieces())
    part.close()


def made_link(path, target):
    path.symlink_to(target)


def made_second_name(path, target):
    os.link(target, path)


def made_pipe(path, _target):
    os.mkfifo(path)


def made_folder(path, _target):
    path.mkdir()


@pytest.mark.parametrize("made", [made_link, made_second_name, made_pipe, made_folder])
def test_what_is_no_ordinary_file_is_refused_and_nothing_behind_it_changes(tmp_path, path, made):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    made(path, target)
    with pytest.raises(OSError, match="symbolic links"):
        PartFile(path, 0, nothing)
    assert target.read_bytes() == b"precious"


def test_a_broken_link_makes_no_file_elsewhere(tmp_path, path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        PartFile(path, 0, nothing)
    assert not (tmp_path / "elsewhere").exists()
