"""One process at a time has a file; trust S-27."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from app.downloads import file_lock
from app.downloads.file_lock import FileLock

ROOT = Path(__file__).resolve().parents[3]


def test_two_locks_exclude_each_other_until_one_is_given_back(tmp_path):
    one, other = FileLock(tmp_path / "a" / "x.lock"), FileLock(tmp_path / "a" / "x.lock")
    assert one.take()
    assert not other.take()
    one.release()
    assert other.take()
    other.release()
    other.release()
    assert (tmp_path / "a" / "x.lock").exists()


def hold_elsewhere(path, library):
    """Start another process that holds the lock until it is told to end."""
    code = {
        "ours": "from app.downloads.file_lock import FileLock; lock = FileLock(Path(sys.argv[1])); assert lock.take()",
        "hub": "from huggingface_hub.utils import WeakFileLock; lock = WeakFileLock(sys.argv[1]); lock.__enter__()",
    }[library]
    code = f"import sys; from pathlib import Path; {code}; print('held', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("library", ["ours", "hub"])
def test_another_process_and_huggingface_hub_are_excluded_too(tmp_path, library):
    path = tmp_path / "x.lock"
    with hold_elsewhere(path, library) as process:
        assert not FileLock(path).take()
        process.kill()
    lock = FileLock(path)
    assert lock.take()  # its death gave it back
    lock.release()


def test_a_lock_whose_file_was_deleted_meanwhile_is_taken_on_the_new_one(tmp_path, monkeypatch):
    path = tmp_path / "x.lock"
    plain = file_lock._lock
    deletions = iter([True, False])

    def lock_after_deletion(descriptor):
        if next(deletions):
            path.unlink()
        return plain(descriptor)

    monkeypatch.setattr(file_lock, "_lock", lock_after_deletion)
    lock = FileLock(path)
    assert lock.take()
    assert path.exists()
    assert not plain_take(path, monkeypatch, plain)
    lock.release()


def plain_take(path, monkeypatch, plain):
    monkeypatch.setattr(file_lock, "_lock", plain)
    return FileLock(path).take()


@pytest.mark.skipif(sys.platform == "win32", reason="flock is POSIX")
def test_a_file_system_without_locks_is_used_without(tmp_path, monkeypatch):
    def refuse(_descriptor, _flags):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(file_lock.fcntl, "flock", refuse)
    lock = FileLock(tmp_path / "x.lock")
    assert lock.take()
    lock.release()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(tmp_path / "x.lock").take()
    assert not (tmp_path / "elsewhere").exists()
