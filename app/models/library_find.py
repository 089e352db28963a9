"""Finding one model by what a person calls it: a key, a name, a unique beginning of either, or a path.

Knows the view; the caller knows what lies at a path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.library_places import absolute, is_there
from app.models.library_view import View
from app.models.library_words import LibraryError

_MAX_LISTED = 20


def find(text: str, view: View, entry_at: Callable[[Path], ModelEntry]) -> ModelEntry:
    """Return the model that is called so.

    Args:
        text: a key, name, path, or unique beginning of a key or name.
        view: what is in the library.
        entry_at: returns the entry for a path, listed or not.

    Raises:
        LibraryError: no model or more than one fits; the text lists what is there.
    """
    wanted = text.strip().casefold()
    exact = view.by_key.get(wanted)
    if exact is not None:
        return exact
    tests: tuple[Callable[[str], bool], ...] = (wanted.__eq__, lambda calling: calling.startswith(wanted))
    for fits in tests:
        fitting = [entry for entry in view.entries if wanted and any(map(fits, _callings(entry)))]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise LibraryError(
                _("More than one model fits “{text}”: {models}.").format(text=text, models=_listed(fitting))
            )
    path = absolute(Path(text))
    if wanted and is_there(path):
        return entry_at(path)
    if wanted and (str(path) in view.by_path or _looks_like_path(text)):
        if str(path) in view.by_path:
            return view.by_path[str(path)]
        raise LibraryError(_("There is no file {path}.").format(path=path))
    if not view.entries:
        raise LibraryError(_("There is no model in the library yet. Give the path of a GGUF file."))
    raise LibraryError(
        _("No model is called “{text}”. There are: {models}.").format(text=text, models=_listed(view.entries))
    )


def _callings(entry: ModelEntry) -> tuple[str, ...]:
    """Return what a model may be called by, folded: its key, the key without its owner, its name."""
    key = entry.key.casefold()
    return (key, key.rpartition("/")[2], entry.name.casefold())


def _listed(entries: Sequence[ModelEntry]) -> str:
    text = ", ".join(entry.key for entry in entries[:_MAX_LISTED])
    return text if len(entries) <= _MAX_LISTED else f"{text}, …"


def _looks_like_path(text: str) -> bool:
    return text.startswith(("~", ".")) or text.lower().endswith(".gguf") or Path(text).is_absolute()
