"""One root being looked through: listing its folders within bounds, and telling links that may be followed.

Opens no file but the list of mounts. Knows no layout.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from app.errors import one_line
from app.i18n import _, ngettext
from app.models.scan_messages import ScanLimits
from app.models.source_candidate import is_link, is_there

# Folders that hold no person's files, and those of systems that are not on a disk of this computer.
_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev", "/run")
_ELSEWHERE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "davfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs"}
    | {"fuse.glusterfs", "fuse.gvfsd-fuse", "autofs", "proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "debugfs"}
)
_MOUNTS = Path("/proc/self/mounts")


class SearchLimitError(Exception):
    """The search has reached one of its limits; the problem is noted."""


class Search:
    """The search of one root.

    Attributes:
        root: the folder.
        origin: see entry.Origin.
        limits: see ScanLimits.
        steps: grows while the search moves on.
        skipped_count: what was passed over.
        _allowed: real paths that links may lead into: those of every root of the scan.
        _barred: real paths of folders that are not entered.
        _real_folders: real paths of folders that were asked for.
        _unreadable: folders that could not be opened.
        _foreign: links to folders elsewhere.
    """

    def __init__(
        self,
        root: Path,
        origin: str,
        allowed: Iterable[str] = (),
        limits: ScanLimits | None = None,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        self.root = root
        self.origin = origin
        self.limits = limits or ScanLimits()
        self.steps = 0
        self.skipped_count = 0
        self._allowed = tuple(allowed) or (os.path.realpath(root),)
        self._real_folders: dict[Path, str] = {}
        self._barred = barred
        self._unreadable: list[Path] = []
        self._foreign: list[Path] = []
        self._notes: list[str] = []

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """Return what lies in a folder, by name; nothing when it cannot be listed, which is noted.

        Raises:
            SearchLimitError: the root holds more than anybody's models.
        """
        found: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    self.steps += 1
                    if self.steps > self.limits.entries:
                        self._end(_("The folder {path} holds more files than Cutaway looks through."))
                    found.append(entry)
        except (OSError, ValueError):
            self._unreadable.append(folder)
            self.skipped_count += 1
        return sorted(found, key=lambda entry: entry.name)

    def real_path(self, path: Path) -> str:
        """Return where a file or folder really lies."""
        if is_link(path):
            return os.path.realpath(path)
        real = self._real_folders.get(path.parent)
        if real is None:
            real = self._real_folders[path.parent] = os.path.realpath(path.parent)
        return os.path.join(real, path.name)  # noqa: PTH118

    def may_enter(self, folder: str) -> bool:
        """Whether the folder of this real path holds a person's files on this computer."""
        return folder not in self._barred

    def is_inside(self, real: str) -> bool:
        """Whether a real path lies in a root of this scan."""
        return any(real == top or real.startswith(top.rstrip(os.sep) + os.sep) for top in self._allowed)

    def link_fault(self, path: Path) -> str:
        """Return why a link may not be followed, in words; "" when it may, or is none."""
        real = os.path.realpath(path)
        if not self.is_inside(real):
            words = _("This link leads out of the folder, to {path}. Add that folder or import the file from there.")
            return words.format(path=one_line(real))
        if not is_there(path):
            return _("This link leads to a file that is not there.")
        return ""

    def note_foreign(self, folder: Path) -> None:
        """Note a link to a folder elsewhere, which is not followed."""
        self._foreign.append(folder)
        self.skipped_count += 1

    def note(self, problem: str) -> None:
        """Note a problem in words."""
        self._notes.append(problem)

    def _end(self, words: str) -> None:
        self.note(words.format(path=one_line(str(self.root))))
        raise SearchLimitError

    def count_model(self, number: int) -> None:
        """Look whether one more model may be listed; raises SearchLimitError."""
        if number > self.limits.models:
            self._end(_("The folder {path} holds more models than Cutaway lists."))

    def problems(self) -> list[str]:
        """Return what was noted, a sentence each."""
        told = list(self._notes)
        if self._unreadable:
            words = ngettext(
                "The folder {path} could not be opened.",
                "{path} and {others} more folders could not be opened.",
                len(self._unreadable),
            )
            told.append(words.format(path=one_line(str(self._unreadable[0])), others=len(self._unreadable) - 1))
        if self._foreign:
            words = ngettext(
                "The link {path} leads out of its folder and was not followed. Add the folder that it leads to.",
                "{path} and {others} more links lead out of their folder and were not followed.",
                len(self._foreign),
            )
            told.append(words.format(path=one_line(str(self._foreign[0])), others=len(self._foreign) - 1))
        return told


def is_own_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder itself, not a link to one."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def barred_folders(root: Path, mounts: Path = _MOUNTS) -> frozenset[str]:
    """Return the real paths below a root that are the system's own or lie on other computers.

    A root that lies there itself is looked through: the person asked for it.
    """
    real_root = os.path.realpath(root)
    places = set(_SYSTEM_FOLDERS)
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        lines = []
    for line in lines:
        fields = line.split(b" ")
        if len(fields) > 2 and fields[2].decode("ascii", "replace") in _ELSEWHERE:
            places.add(os.fsdecode(_unescaped(fields[1])))
    return frozenset(place for place in places if place != real_root and not real_root.startswith(place + os.sep))


def _unescaped(field: bytes) -> bytes:
    """Return a path of the list of mounts, where blanks and such stand as octal numbers."""
    for octal in (b"\\040", b"\\011", b"\\012", b"\\134"):
        field = field.replace(octal, bytes([int(octal[1:], 8)]))
    return field
