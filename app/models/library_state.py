"""The library in memory: what is stored, read at once and turned into what is shown.

Read again when the database changed; small changes are made in place. Knows the rows; knows no file on disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from app.i18n import _
from app.models import library_figures, library_rows
from app.models.entry import FoundModel, ModelDefaults, ModelEntry
from app.models.identity import FULL, PROVISIONAL
from app.models.library_packing import unpack
from app.models.library_rows import STARTER, ModelRow, PathRow
from app.models.library_view import EMPTY, Listed, View, build_view, make_entry, plain_key
from app.models.model_name import file_name

_NO_DEFAULTS = ModelDefaults()
_PLAIN = "{}"


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything in the database, as it is there.

    Attributes:
        loads: what loads took, by model, the newest first.
        probes: what the allocator told, by model and params.
        facts: of this machine and the library itself.
    """

    paths: Sequence[PathRow] = ()
    models: Mapping[int, ModelRow] = field(default_factory=dict)
    folders: Sequence[Path] = ()
    loads: dict[int, list[str]] = field(default_factory=dict)
    probes: dict[int, dict[str, str]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)


def read_stored(connection: sqlite3.Connection) -> Stored:
    """Return everything in the database."""
    return Stored(
        library_rows.read_paths(connection),
        library_rows.read_models(connection),
        library_rows.read_folders(connection),
        library_figures.read_loads(connection),
        library_figures.read_probes(connection),
        library_figures.read_facts(connection),
    )


@dataclass(slots=True)
class State:
    """The library at one moment.

    Attributes:
        token: of the database at that moment.
        view: what is shown.
        model_ids: the model of each identity. A provisional one that a single read model has means that model.
        folders: those that the person added.
        loads, probes, facts: see Stored.
    """

    token: int = -1
    view: View = EMPTY
    model_ids: dict[str, int] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    loads: dict[int, list[str]] = field(default_factory=dict)
    probes: dict[int, dict[str, str]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)

    def model_id(self, entry: ModelEntry) -> int | None:
        """Return the model that an entry shows, listed or not; None when nothing is kept of it."""
        return self.model_ids.get(entry.identity) if entry.identity else None


def build_state(
    stored: Stored,
    token: int,
    starters: Callable[[Mapping[str, FoundModel]], Sequence[FoundModel]],
    newcomers: Sequence[FoundModel],
) -> State:
    """Return the state for what is stored.

    Args:
        stored: everything in the database.
        token: of the database when it was read.
        starters: given what is known by path, returns the starter models.
        newcomers: what was found and is not stored yet.
    """
    known = {os.fsdecode(row.path): (row, record_of(row)) for row in stored.paths}
    first = starters({path: found for path, (_row, found) in known.items()})
    shown_first = {found.path for found in first}
    ids = _model_ids(stored.models)
    listed = [_listed(replace_origin(found, STARTER), known.get(found.path), stored.models, ids) for found in first]
    for path, (row, found) in known.items():
        if path not in shown_first and row.origin != STARTER:
            listed.append(_listed(found, (row, found), stored.models, ids))
    listed += [
        _listed(found, None, stored.models, ids)
        for found in newcomers
        if found.path not in known and found.path not in shown_first
    ]
    return State(token, build_view(listed), ids, list(stored.folders), stored.loads, stored.probes, stored.facts)


def record_of(row: PathRow) -> FoundModel:
    """Return what was found at a path; of a record that cannot be true only the name, with a fault."""
    try:
        return unpack(row.record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        path = os.fsdecode(row.path)
        fault = _("What was known of this model is damaged. Look for models again.")
        return FoundModel(path=path, origin=row.origin, name=file_name(Path(path)), fault=fault)


def replace_origin(found: FoundModel, origin: str) -> FoundModel:
    """Return what was found as being from elsewhere."""
    return found if found.origin == origin else msgspec.structs.replace(found, origin=origin)


def single_entry(found: FoundModel, row: PathRow | None, model: ModelRow | None, key: str = "") -> ModelEntry:
    """Return the entry for one place, without regard to any other."""
    models = {} if model is None else {model.model_id: model}
    listed = _listed(found, None if row is None else (row, found), models, _model_ids(models))
    return make_entry(listed, key or plain_key(found))


def _listed(
    found: FoundModel,
    known: tuple[PathRow, FoundModel] | None,
    models: Mapping[int, ModelRow],
    ids: Mapping[str, int],
) -> Listed:
    row = known[0] if known else None
    model_id = row.model_id if row else ids.get(found.identity)
    model = models.get(model_id) if model_id is not None else None
    origin = found.origin if row is None or found.origin == STARTER else row.origin
    away = os.fsdecode(row.root) if row is not None and row.is_away else ""
    if model is None:
        return Listed(found, origin, found.identity, away=away)
    identity = model.identity if model.identity.startswith((FULL, PROVISIONAL)) else ""
    return Listed(found, origin, identity, model.note, defaults_of(model), away)


def defaults_of(model: ModelRow) -> ModelDefaults:
    """Return a model's defaults; none when they cannot be read."""
    if model.defaults == _PLAIN:
        return _NO_DEFAULTS
    try:
        return msgspec.json.decode(model.defaults, type=ModelDefaults)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _NO_DEFAULTS


def _model_ids(models: Mapping[int, ModelRow]) -> dict[str, int]:
    """Return the model of each identity; a provisional one that several read models share means none of them."""
    shared: dict[str, list[ModelRow]] = {}
    ids: dict[str, int] = {}
    for model in models.values():
        ids[model.identity] = model.model_id
        if model.provisional:
            shared.setdefault(model.provisional, []).append(model)
    for provisional, having in shared.items():
        if len(having) == 1:
            ids[provisional] = having[0].model_id
    return ids


def with_words(state: State, entry: ModelEntry, note: str, defaults: ModelDefaults) -> State:
    """Return a state in which a person said something else of a model."""
    return replace(state, view=state.view.with_words(entry, note, defaults))
