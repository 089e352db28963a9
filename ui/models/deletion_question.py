"""The question before a model's files are deleted: what it frees, where they go, which they are. Or why they stay.

Knows no widget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.i18n import _, ngettext
from app.models.removal import Deletion
from app.units import bytes_text
from ui.widgets.display_text import display_text

_MOST_PATHS_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class DeletionQuestion:
    """The question in words.

    Attributes:
        message: the question, or why nothing may be deleted.
        hint: where the files go, and which they are.
        can_trash: whether moving them to the trash is among the answers.
        can_delete: whether there is anything to answer.
    """

    message: str
    hint: str = ""
    can_trash: bool = False
    can_delete: bool = False


def deletion_question(deletion: Deletion) -> DeletionQuestion:
    """Return the question for what a deletion would do."""
    if deletion.refusal:
        return DeletionQuestion(deletion.refusal)
    count = len(deletion.paths)
    words = ngettext("Delete {count} file and free {size}?", "Delete {count} files and free {size}?", count)
    if not deletion.freed_bytes:
        words = ngettext(
            "Delete {count} file? It frees nothing: the same bytes are used elsewhere.",
            "Delete {count} files? It frees nothing: the same bytes are used elsewhere.",
            count,
        )
        if deletion.kept:
            words = ngettext("Delete {count} file? It frees nothing.", "Delete {count} files? It frees nothing.", count)
    where = _("There is no trash here: it is gone for good.")
    if deletion.uses_trash:
        where = _("It goes to the trash; the room is free once that is emptied.")
    elif deletion.kept and not deletion.freed_bytes:
        where = _("Only the name goes; it can be downloaded again.")
    paths = [display_text(str(path)) for path in deletion.paths[:_MOST_PATHS_SHOWN]]
    if count > len(paths):
        paths.append("…")
    return DeletionQuestion(
        message=words.format(count=count, size=bytes_text(deletion.freed_bytes)),
        hint="\n".join([" ".join(filter(None, (deletion.kept, where))), *paths]),
        can_trash=deletion.uses_trash,
        can_delete=True,
    )
