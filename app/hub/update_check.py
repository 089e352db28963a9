"""Whether the hub has something newer than what was downloaded, asked when a person asks, and the words for it.

A download is pinned to a commit. A newer commit may have changed the model card alone: the files' own bytes decide, by
app/downloads/updates.py. Knows no window.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.downloads.fetched import FetchedModel
from app.downloads.types import FileRef
from app.downloads.updates import Update, compare, is_same
from app.errors import Words, one_line
from app.hub.access import access_words
from app.hub.hub_errors import HubError, HubErrorKind, age_words
from app.hub.types import RepoDetail
from app.i18n import _, ngettext
from app.units import bytes_text

if TYPE_CHECKING:
    from app.hub.hub import Hub

_SHORT = 7  # characters of a commit that tell it from the others of its repo
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class UpdateAnswer:
    """How what is here stands to what the hub has now.

    Attributes:
        state: see Update; never UNKNOWN, since the hub lists its files.
        files: as they were downloaded.
        head_revision: the newest commit.
        head_files: the files of the same names at that commit.
        updated_at: when that commit was made, in seconds since 1970; None when the hub does not say.
        gate: what a person must do before they can have the newer files; None for nothing.
    """

    state: Update
    files: tuple[FileRef, ...]
    head_revision: str
    head_files: tuple[FileRef, ...] = ()
    updated_at: float | None = None
    gate: Words | None = None

    @property
    def words(self) -> Words:
        """The answer for a person."""
        return update_words(self, time.time())


def check_update(hub: Hub, files: Sequence[FileRef], cancel: threading.Event | None = None) -> UpdateAnswer:
    """Ask the hub what it has now of the files of one download; blocks.

    Args:
        hub: is asked, whatever is kept of its answers.
        files: of one repo, as they were downloaded.
        cancel: the answer is not wanted any more.

    Raises:
        HubError: there is no answer: no network, a pause that the hub wants, a repo that is gone, a gate.
    """
    try:
        detail = hub.detail(files[0].repo, "", cancel, refresh=True)
    except HubError as error:
        if error.kind is not HubErrorKind.NOT_FOUND:
            raise
        message = _("The hub has no repo {repo} any more, or hides it.").format(repo=one_line(files[0].repo, 120))
        words = Words(message, _("What is here stays and works."))
        raise HubError(error.kind, status=error.status, words=words) from error
    if detail.is_stale:  # an old answer cannot tell what is new
        raise HubError(HubErrorKind.OFFLINE, words=detail.fault)
    listed = _files_of(detail)
    by_path = {file.path: file for file in listed}
    head_files = tuple(by_path[file.path] for file in files if file.path in by_path)
    state = compare(files, detail.revision, listed) if listed else Update.REMOVED
    if all(file.revision == detail.revision for file in files):
        state = Update.CURRENT
    updated = detail.summary.updated_at
    return UpdateAnswer(
        state=state,
        files=tuple(files),
        head_revision=detail.revision,
        head_files=head_files,
        updated_at=updated.timestamp() if updated is not None else None,
        gate=access_words(detail) if state is Update.CHANGED else None,
    )


def update_words(answer: UpdateAnswer, now_s: float) -> Words:
    """Return an answer in words.

    Args:
        answer: of check_update().
        now_s: seconds since 1970.
    """
    head, pinned = short_commit(answer.head_revision), short_commit(answer.files[0].revision)
    if answer.updated_at is not None:
        head = f"{head}, {age_words(now_s - answer.updated_at)}"
    if answer.state is Update.CURRENT:
        if answer.files[0].revision == answer.head_revision:
            return Words(_("Up to date: this is the newest version (commit {head}).").format(head=head))
        message = _("Up to date: these files have not changed since commit {pinned}.")
        return Words(message.format(pinned=pinned), _("The newest commit ({head}) changed others.").format(head=head))
    if answer.state is Update.REMOVED:
        message = _("The newest version (commit {head}) has no file of this name any more.")
        hint = _("What is here, of commit {pinned}, stays as it is. The model's page may say what took its place.")
        return Words(message.format(head=head), hint.format(pinned=pinned))
    message = _("There is a newer version: commit {head}. Here is commit {pinned}.").format(head=head, pinned=pinned)
    hint = _changes_text(answer)
    return Words(message, f"{hint} {answer.gate.message} {answer.gate.hint}".rstrip() if answer.gate else hint)


def short_commit(revision: str) -> str:
    """Return a commit as people write it."""
    return one_line(revision, 40)[:_SHORT]


def older_here(models: Iterable[FetchedModel], files: Sequence[FileRef]) -> FetchedModel | None:
    """Return what was downloaded before of the same files at another commit, where its bytes are others; else None.

    Args:
        models: of the record, oldest first; the newest of them counts.
        files: as the hub has them now.
    """
    found = None
    now = {(file.repo, file.path): file for file in files}
    for model in models:
        pairs = [(old, now.get((old.repo, old.path))) for old in model.refs]
        if any(new is not None and new.revision == old.revision for old, new in pairs):
            return None
        if any(new is not None and not is_same(old, new) for old, new in pairs):
            found = model
    return found


def older_here_words(older: FetchedModel, now_s: float) -> Words:
    """Say that what is about to come is newer than what is here.

    Args:
        older: of older_here().
        now_s: seconds since 1970.
    """
    message = _("An older version is here: commit {pinned}, downloaded {age}. The hub has changed its files since.")
    return Words(
        message.format(pinned=short_commit(older.refs[0].revision), age=age_words(now_s - older.fetched_at)),
        _("The newer version comes beside it; the older one stays until you delete it."),
    )


def _changes_text(answer: UpdateAnswer) -> str:
    """Return which files changed and how their sizes did."""
    by_path = {file.path: file for file in answer.head_files}
    changed = [(old, new) for old in answer.files if (new := by_path.get(old.path)) and not is_same(old, new)]
    texts = []
    for old, new in changed[:_MOST_SHOWN]:
        name = one_line(new.path.rpartition("/")[2], 80)
        if old.size_bytes == new.size_bytes:
            texts.append(_("{name}: other bytes, {size} as before.").format(name=name, size=bytes_text(new.size_bytes)))
        else:
            sizes = {"new": bytes_text(new.size_bytes), "old": bytes_text(old.size_bytes)}
            texts.append(_("{name}: {new}, was {old}.").format(name=name, **sizes))
    left = len(changed) - len(texts)
    if left > 0:
        texts.append(ngettext("{count} more file.", "{count} more files.", left).format(count=left))
    return " ".join(texts)


def _files_of(detail: RepoDetail) -> list[FileRef]:
    rows = [file for row in detail.rows for file in row.files]
    return [*rows, *detail.projectors, *detail.others]
