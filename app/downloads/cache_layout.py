"""Where files lie in a hub cache, so that huggingface_hub and every program that reads it find them too.

A repo is a folder `models--owner--name`: bytes in `blobs`, by what the hub calls them; for each commit a folder in
`snapshots` with a link for each file; the commit of a branch in `refs`. Where links are impossible the file itself lies
in the snapshot. Nothing is made, replaced or deleted outside the cache, and no link is followed on the way to it.
Reference: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.atomic_file import keep_names, replace_file
from app.downloads.faults import DownloadFault, download_error
from app.downloads.names import blob_name, check_path, check_repo, check_revision, folded, twin_error
from app.downloads.sidecar import draft_path
from app.downloads.types import FileRef

PART_SUFFIX = ".part"
_SIDECAR_SUFFIX = ".json"
_WINDOWS_PATH_LIMIT = 240  # 260 with room for what is added to a name


@dataclass(frozen=True, slots=True)
class Place:
    """Where one file lies, or will.

    Attributes:
        root: the cache's folder, in a form that the system takes for all of these.
        repo_folder: of its repo.
        blob: its bytes.
        part: its bytes as long as they are not complete.
        sidecar: the note beside them.
        lock: what is locked while they are fetched, by huggingface_hub too.
        snapshot: the file under its own name.
    """

    root: Path
    repo_folder: Path
    blob: Path
    part: Path
    sidecar: Path
    lock: Path
    snapshot: Path


@dataclass(frozen=True, slots=True)
class _Inside:
    """Where a file belongs, seen from the cache's folder; every name was checked."""

    folder: str
    blob: str
    snapshot: tuple[str, ...]

    def place(self, root: Path) -> Place:
        repo_folder = root / self.folder
        blob = repo_folder / "blobs" / self.blob
        part = blob.with_name(blob.name + PART_SUFFIX)
        return Place(
            root=root,
            repo_folder=repo_folder,
            blob=blob,
            part=part,
            sidecar=sidecar_path(part),
            lock=root / ".locks" / self.folder / f"{self.blob}.lock",
            snapshot=repo_folder.joinpath("snapshots", *self.snapshot),
        )


class CacheLayout:
    """A hub cache.

    Args:
        root: its folder, which is made when something is put into it.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    @property
    def root(self) -> Path:
        """The folder of the cache, links in its own path resolved."""
        return self._root

    def place(self, file: FileRef) -> Place:
        """Return where a file belongs; touches nothing. Raises DownloadError for names that may not be paths."""
        inside = _Inside(
            folder=check_repo(file.repo),
            blob=blob_name(file.etag, file.sha256),
            snapshot=(check_revision(file.revision), *check_path(file.path)),
        )
        found = inside.place(self._root)
        longest = max(len(str(path)) for path in (found.sidecar, found.lock, found.snapshot))
        return inside.place(extended(self._root)) if os.name == "nt" and longest > _WINDOWS_PATH_LIMIT else found

    def prepare(self, place: Place) -> None:
        """Make the folders that a file needs; raises DownloadError or OSError."""
        for folder in (place.blob.parent, place.snapshot.parent, place.lock.parent):
            self._make_folder(place.root, folder)
        _refuse_twin(place.snapshot)

    def _make_folder(self, root: Path, folder: Path) -> None:
        """Make a folder below the root, and refuse one that a link leads out of it."""
        root.mkdir(parents=True, exist_ok=True)
        step = root
        for part in folder.relative_to(root).parts:
            step = step / part
            with contextlib.suppress(FileExistsError):
                step.mkdir()
            if not step.is_dir() or not self._holds(step):
                raise download_error(DownloadFault.LINK, detail=str(step))

    def _holds(self, path: Path) -> bool:
        """Return whether a path, links resolved, lies in the cache."""
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._root))

    def present(self, place: Place, size_bytes: int) -> Path | None:
        """Return where complete bytes of a file already lie; None where they do not. Only their number is looked at."""
        for path in (place.blob, place.snapshot):
            with contextlib.suppress(OSError):
                status = path.stat()
                if stat.S_ISREG(status.st_mode) and status.st_size == size_bytes and self._holds(path):
                    return path
        return None

    def publish(self, place: Place, found: Path) -> Path:
        """Give complete bytes their name in the snapshot and return it.

        Args:
            place: of the file.
            found: where its bytes lie: the part, or what present() found.

        Raises:
            OSError, DownloadError: that cannot be done.
        """
        if found == place.snapshot:
            return place.snapshot
        if found != place.blob:
            found.replace(place.blob)
            keep_names(place.blob.parent)
        _refuse_twin(place.snapshot)
        draft = place.snapshot.with_name(f".{place.blob.name[:32]}.link")
        try:
            draft.unlink(missing_ok=True)  # of a program that was killed
            draft.symlink_to(os.path.relpath(place.blob, place.snapshot.parent))
            draft.replace(place.snapshot)
        except (OSError, NotImplementedError):  # as on Windows without its developer mode
            place.blob.replace(place.snapshot)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
        keep_names(place.snapshot.parent)
        with contextlib.suppress(OSError):
            discard_part(place.part)  # what is left is the note
        return place.snapshot

    def set_branch(self, file: FileRef, branch: str) -> None:
        """Note which commit a branch is at, so that programs find the file without naming one.

        Raises:
            OSError, DownloadError: that cannot be done.
        """
        path = self._root.joinpath(check_repo(file.repo), "refs", *check_path(branch))
        self._make_folder(self._root, path.parent)
        if path.is_symlink():
            path.unlink()
        replace_file(path, check_revision(file.revision).encode())
        path.chmod(0o644)  # as readable as the files

    def branch_commit(self, repo: str, branch: str = "main") -> str:
        """Return the commit that a branch was at when it was last downloaded; "" where nobody knows."""
        path = self._root.joinpath(check_repo(repo), "refs", *check_path(branch))
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return path.read_bytes()[:64].decode("ascii").strip()
        return ""

    def parts(self) -> Iterator[Path]:
        """Yield the unfinished files of every repo, and never what a link leads to."""
        for folder in _entries(self._root):
            if folder.name.startswith("models--") and folder.is_dir(follow_symlinks=False):
                for entry in _entries(Path(folder.path) / "blobs"):
                    if entry.name.endswith(PART_SUFFIX) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)


def sidecar_path(part: Path) -> Path:
    """Return where the note of an unfinished file lies."""
    return part.with_name(part.name + _SIDECAR_SUFFIX)


def discard_part(part: Path) -> None:
    """Delete an unfinished file and its note; a link is deleted, never followed. Raises OSError."""
    note = sidecar_path(part)
    for path in (part, note, draft_path(note)):
        path.unlink(missing_ok=True)


def extended(path: Path) -> Path:
    """Return a Windows path in the form that may be of any length."""
    text = str(path)
    if text.startswith("\\\\?\\"):
        return path
    return Path("\\\\?\\UNC\\" + text[2:] if text.startswith("\\\\") else "\\\\?\\" + text)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _refuse_twin(path: Path) -> None:
    """Refuse a name beside one that some systems take for the same; raises DownloadError."""
    for entry in _entries(path.parent):
        if entry.name != path.name and folded(entry.name) == folded(path.name):
            raise twin_error(path.name, entry.name)
