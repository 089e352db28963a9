"""What is said under a finished download about newer versions of it, and the button that goes with it.

Knows no hub and no widget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.downloads.types import ACTIVE_STATES, Download, DownloadState
from app.downloads.updates import Update, is_same
from app.errors import Words
from app.hub.update_check import UpdateAnswer, short_commit
from app.i18n import _
from app.units import bytes_text
from ui.models.download_words import Button


@dataclass(frozen=True, slots=True)
class UpdateNote:
    """One note.

    Attributes:
        words: what is known.
        button: what can be done about it; None for nothing.
        is_busy: whether the hub is being asked.
        is_fault: whether it could not be found out.
    """

    words: Words
    button: Button | None = None
    is_busy: bool = False
    is_fault: bool = False


def checking_note() -> UpdateNote:
    """Say that the hub is being asked."""
    return UpdateNote(Words(_("Asking the hub whether there is a newer version…")), is_busy=True)


def slow_note() -> UpdateNote:
    """Say that the hub takes its time."""
    return UpdateNote(Words(_("The hub is slow to answer. Still waiting…")), is_busy=True)


def fault_note(words: Words) -> UpdateNote:
    """Say why it could not be found out."""
    return UpdateNote(words, Button.CHECK, is_fault=True)


def answer_note(answer: UpdateAnswer) -> UpdateNote:
    """Say what the hub answered."""
    return UpdateNote(answer.words, Button.NEWER if answer.state is Update.CHANGED else Button.CHECK)


def newer_of(download: Download, downloads: Sequence[Download]) -> Download | None:
    """Return the later download of the same files at another commit, with other bytes; None where there is none.

    Args:
        download: one that is done.
        downloads: all of them, oldest first.
    """
    if download.state is not DownloadState.DONE or not download.files:
        return None
    ids = [one.download_id for one in downloads]
    later = downloads[ids.index(download.download_id) + 1 :] if download.download_id in ids else ()
    own = {(file.repo, file.path): file for file in download.files}
    for other in later:
        pairs = [(own[key], new) for new in other.files if (key := (new.repo, new.path)) in own]
        is_newer = any(old.revision != new.revision and not is_same(old, new) for old, new in pairs)
        if is_newer and not other.is_leftover and other.state is not DownloadState.CANCELLED:
            return other
    return None


def newer_note(download: Download, newer: Download) -> UpdateNote:
    """Say how far the newer version of a finished download is."""
    commit = short_commit(newer.files[0].revision)
    if newer.state is DownloadState.DONE:
        words = Words(
            _("The newer version is here too (commit {commit}).").format(commit=commit),
            _("This older one still takes {size}.").format(size=bytes_text(download.total_bytes)),
        )
        return UpdateNote(words, Button.DELETE_OLD)
    message = _("The newer version is on its way (commit {commit}).")
    if newer.state not in ACTIVE_STATES:
        message = _("The newer version is not here yet (commit {commit}).")
    return UpdateNote(Words(message.format(commit=commit), _("This one stays until you delete it.")))
