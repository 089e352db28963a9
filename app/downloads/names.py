"""Which names of a repo may become names of files here: those that mean one and the same place on every system.

A name is taken as it is or refused, never changed, since other programs look for the file under its own name. Touches
no disk. Reference: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from app.downloads.faults import DownloadError, DownloadFault, download_error
from app.i18n import _

_MAX_NAME_BYTES = 255  # ext4, APFS and NTFS agree
_MAX_PATH_BYTES = 900
_MAX_DEPTH = 32
_FORBIDDEN = set('\\:*?"<>|')
# Control, format (bidi, zero-width, tags), half characters, private, unassigned, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
_GIT = re.compile(r"\.git|git~[0-9]+", re.IGNORECASE)  # a folder of git's runs what its config names
_REPO_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def check_path(path: str) -> tuple[str, ...]:
    """Return the parts of a file's path in its repo; raises DownloadError for one that may not be a path here."""
    parts = tuple(path.split("/"))
    reason = ""
    if len(parts) > _MAX_DEPTH or len(path.encode("utf-8", "replace")) > _MAX_PATH_BYTES:
        reason = _("its path is too long")
    for part in parts:
        reason = reason or _why_refused(part)
    if reason:
        raise _bad(path, reason)
    return parts


def _why_refused(part: str) -> str:
    if not part or part in (".", ".."):
        return _("its path leads elsewhere")
    if any(unicodedata.category(character) in _INVISIBLE for character in part):
        return _("its name holds characters that cannot be seen")
    if _FORBIDDEN & set(part):
        return _("its name holds characters that not every system allows")
    if len(part.encode()) > _MAX_NAME_BYTES:
        return _("its name is too long")
    if part[-1] in ". " or part[0] == " " or part != part.strip():
        return _("its name begins or ends with a space or a full stop")
    if _DEVICES.fullmatch(part.partition(".")[0].strip()):
        return _("its name is that of a device")
    if _GIT.fullmatch(part):
        return _("it lies in a folder of git")
    if not unicodedata.is_normalized("NFC", part):
        return _("its name is written in a way that not every system keeps")
    return ""


def check_repo(repo: str) -> str:
    """Return the name of the cache's folder for a repo, owner/name or a bare name; raises DownloadError."""
    parts = repo.split("/")
    is_sound = len(parts) in (1, 2) and all(_REPO_PART.fullmatch(part) for part in parts)
    if not is_sound or "--" in repo or ".." in repo or repo.endswith(".git"):
        raise _bad(repo, _("this is not the name of a repo"))
    return "--".join(["models", *parts])


def check_revision(revision: str) -> str:
    """Return a commit's SHA-1; raises DownloadError for what is none."""
    if not _COMMIT.fullmatch(revision):
        raise _bad(revision, _("this is not a commit"))
    return revision


def blob_name(etag: str, sha256: str) -> str:
    """Return the name that the cache gives a file's bytes; raises DownloadError where nothing identifies them.

    Args:
        etag: what the hub calls them.
        sha256: of them; "" where it is not known.
    """
    for name in (etag, sha256):
        if _ETAG.fullmatch(name):
            return name
    raise _bad(etag or "?", _("the hub does not say what identifies it"))


def check_twins(paths: Iterable[str]) -> None:
    """Refuse files that would be one on a system that does not tell their names apart; raises DownloadError."""
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(folded(path), path)
        if other != path:
            raise twin_error(path, other)


def folded(name: str) -> str:
    """Return what two names have in common that some systems do not tell apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def twin_error(name: str, other: str) -> DownloadError:
    """Return the error for two names that are one on some systems."""
    return download_error(DownloadFault.TWIN_NAME, name=name, detail=other)


def _bad(name: str, reason: str) -> DownloadError:
    return download_error(DownloadFault.BAD_NAME, name=name, detail=reason)
