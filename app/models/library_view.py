"""The library as it is shown: one entry a model, wherever its bytes lie, with names that tell them apart.

A model that lies in several places is one entry, at the place that is preferred; its other places are its copies. A
pure function of what is stored; knows no database and no disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

from app.errors import one_line
from app.i18n import _
from app.models.entry import Format, FoundModel, ModelDefaults, ModelEntry, Origin

# The first is preferred: what is ours or was chosen comes before what another program may change or delete.
ORIGINS: tuple[Origin, ...] = (
    "starter",
    "imported",
    "folder",
    "added",
    "huggingface",
    "lm_studio",
    "ollama",
    "jan",
    "gpt4all",
)
_RANKS: Mapping[str, int] = {origin: rank for rank, origin in enumerate(ORIGINS)}
_NO_DEFAULTS = ModelDefaults()


class Listed(NamedTuple):
    """A place where a model lies.

    Attributes:
        found: what was found there.
        origin: see entry.Origin.
        identity: of its bytes; "" when they were never read.
        note: what a person says of the model. Likewise defaults.
        away: the folder that was not there when it was last looked for; "" when it was.
    """

    found: FoundModel
    origin: str
    identity: str = ""
    note: str = ""
    defaults: ModelDefaults = _NO_DEFAULTS
    away: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """Every model and where it lies.

    Attributes:
        entries: one a model, the starter first.
        copies: every place of the models that lie in more than one, by identity, the preferred first.
        by_key: every place by its key, folded.
        by_path: likewise by its path, as text.
    """

    entries: tuple[ModelEntry, ...]
    copies: Mapping[str, tuple[ModelEntry, ...]]
    by_key: Mapping[str, ModelEntry]
    by_path: Mapping[str, ModelEntry]

    def all_places(self) -> Iterable[ModelEntry]:
        """Return an entry for each place."""
        return self.by_key.values()

    def at(self, identity: str) -> tuple[ModelEntry, ...]:
        """Return every place of a model, the preferred first."""
        if identity in self.copies:
            return self.copies[identity]
        return tuple(entry for entry in self.entries if identity and entry.identity == identity)

    def with_words(self, entry: ModelEntry, note: str, defaults: ModelDefaults) -> View:
        """Return a view in which a model has another note and other defaults."""

        def changed(other: ModelEntry) -> ModelEntry:
            is_same = other.identity == entry.identity if entry.identity else other.path == entry.path
            return replace(other, note=note, defaults=defaults) if is_same else other

        return _view(
            tuple(map(changed, self.entries)),
            {identity: tuple(map(changed, places)) for identity, places in self.copies.items()},
        )


EMPTY = View((), {}, {}, {})


def build_view(listed: Iterable[Listed]) -> View:
    """Return the view of these places; of equals the earlier one comes first."""
    ordered = sorted(listed, key=lambda place: _RANKS.get(place.origin, len(_RANKS)))
    groups: dict[str, list[Listed]] = {}
    for number, place in enumerate(ordered):
        groups.setdefault(place.identity or f"place {number}", []).append(place)
    names = _Names()
    # A model keeps its place in the order, whichever of its places turns out to be sound.
    chosen = [places[0] if len(places) == 1 else min(places, key=_is_broken) for places in groups.values()]
    entries = tuple(_entry(place, names) for place in chosen)
    copies: dict[str, tuple[ModelEntry, ...]] = {}
    for entry, place, places in zip(entries, chosen, groups.values(), strict=True):
        if len(places) > 1:
            # Named last, so that no copy takes the plain name of another model.
            copies[place.identity] = (entry, *(_entry(other, names) for other in places if other is not place))
    return _view(entries, copies)


def _is_broken(place: Listed) -> bool:
    return bool(place.found.fault or place.away)


def _view(entries: tuple[ModelEntry, ...], copies: Mapping[str, tuple[ModelEntry, ...]]) -> View:
    places = [*entries, *(place for group in copies.values() for place in group[1:])]
    return View(
        entries,
        copies,
        {entry.key.casefold(): entry for entry in places},
        {str(entry.path): entry for entry in reversed(places)},
    )


class _Names:
    """Keys that are unique without regard to case: `name:QUANT`, then `name:QUANT#2`.

    Attributes:
        _next: the number that the next key of this name gets.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """Return the key, or the first numbered one that is free."""
        folded = wanted.casefold()
        number = self._next.get(folded, 1)
        key = wanted if number == 1 else f"{wanted}#{number}"
        while key.casefold() in self._taken:
            number += 1
            key = f"{wanted}#{number}"
        self._next[folded] = number + 1
        self._taken.add(key.casefold())
        return key


def plain_key(found: FoundModel) -> str:
    """Return the key that a model has when no other is called so."""
    name = f"{found.owner}/{found.name}" if found.owner else found.name
    return f"{name}:{found.quantization}" if found.quantization else name


def _entry(place: Listed, names: _Names) -> ModelEntry:
    return make_entry(place, names.take(plain_key(place.found)))


def make_entry(place: Listed, key: str) -> ModelEntry:
    """Return the entry for a place under this key."""
    found = place.found
    path = Path(found.path)
    # By position, in the order of the fields: ten thousand of these are made before a window shows them.
    return ModelEntry(
        key,
        found.name,
        path,
        found.quantization,
        found.architecture,
        found.size_bytes,
        found.parameters_count,
        found.context_tokens,
        cast("Origin", place.origin),
        _away_fault(place.away) if place.away else found.fault,
        cast("Format", found.format),
        found.owner,
        _parts(found, path),
        found.bits_per_weight,
        found.fallback_tensors,
        found.has_importance_matrix,
        found.has_chat_template,
        Path(found.projector_path) if found.projector_path else None,
        found.projector_bytes,
        place.identity,
        found.shape,
        place.note,
        place.defaults,
    )


def _parts(found: FoundModel, path: Path) -> tuple[Path, ...]:
    is_alone: bool = found.parts == (found.path,)
    return (path,) if is_alone else tuple(map(Path, found.parts))


def _away_fault(folder: str) -> str:
    words = _("The folder {path} is not there now. Its drive may not be connected.")
    return words.format(path=one_line(folder))


def missing(found: FoundModel) -> FoundModel:
    """Return a model whose file vanished: still known by its name, with its fault."""
    fault = _("The file is not there: it was moved, renamed or deleted.")
    known: Sequence[str] = found.parts or (found.path,)
    return FoundModel(
        path=found.path,
        origin=found.origin,
        format=found.format,
        parts=tuple(known),
        name=found.name,
        owner=found.owner,
        quantization=found.quantization,
        fault=fault,
    )
