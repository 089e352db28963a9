"""Makes a staged tree the same to the byte wherever and whenever it is made: modes, times, order. Knows no content."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import bootstrap

# Below these, files may be run; everywhere else they are read, libraries too.
_RUN_FOLDERS = ("bin", "runtime/bin")


def source_time_s() -> int:
    """Return the time that every file gets: SOURCE_DATE_EPOCH, else the last commit's, in seconds since 1970."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given:
        return int(given)
    command = ["git", "-C", str(bootstrap.ROOT), "log", "-1", "--format=%ct"]
    try:
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise bootstrap.SetupError("This is no git repository. Set SOURCE_DATE_EPOCH to the release's time.") from error


def walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder, by name."""
    yield from sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def normalise(folder: Path, time_s: int, run_folders: tuple[str, ...] = _RUN_FOLDERS) -> None:
    """Give everything below the folder, and the folder, its fixed mode and time."""
    for path in [*walk(folder), folder]:
        if not path.is_symlink():
            may_run = path.is_dir() or path.parent.relative_to(folder).as_posix() in run_folders
            path.chmod(0o755 if may_run else 0o644)
    for path in [*walk(folder), folder]:
        os.utime(path, (time_s, time_s), follow_symlinks=False)


def digest(folder: Path) -> str:
    """Return a hash of every name, mode, time and byte below a folder."""
    total = hashlib.sha256()
    for path in walk(folder):
        status = path.lstat()
        line = f"{path.relative_to(folder).as_posix()}\0{stat.S_IMODE(status.st_mode):o}\0{int(status.st_mtime)}\0"
        total.update(line.encode())
        if path.is_symlink():
            total.update(os.fsencode(path.readlink()))
        elif path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
