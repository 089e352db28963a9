"""What the library keeps of earlier loads: what they took, what the allocator told, facts about this machine.

Everything is answered from memory; writes wait for the disk. Knows no file on disk.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.models import library_figures, library_rows
from app.models.entry import ModelEntry
from app.models.fit_types import Measured
from app.models.library_core import LibraryCore
from app.models.library_state import State
from backends.protocol import LoadParams, MemorySplit

_FLOOR, _BANDWIDTH = "floor ", "bandwidth "
# What a probe's answer does not depend on.
_NO_MATTER = ("threads",)
_ENGINE_PACKAGE = "llama-cpp-python"


def measured_of(state: State, entry: ModelEntry) -> list[Measured]:
    """Return what loads of a model took, the newest first; what cannot be read is left out."""
    model_id = state.model_id(entry)
    records = [] if model_id is None else state.loads.get(model_id, [])
    return [measured for record in records if (measured := _measured(record)) is not None]


def probed_of(state: State, entry: ModelEntry, params: LoadParams) -> MemorySplit | None:
    """Return what the allocator told for these params; None when it was not asked, or by another engine."""
    model_id = state.model_id(entry)
    answers = {} if model_id is None else state.probes.get(model_id, {})
    split = answers.get(params_key(params)) if answers else None
    return None if split is None else _split(split)


def floors_of(state: State) -> dict[str, int]:
    """Return what a worker took before any model, by backend."""
    return _numbers(state.facts, _FLOOR)


def bandwidth_of(state: State, machine_key: str) -> float:
    """Return a machine's measured memory read bandwidth in bytes/s; 0 when it was not measured."""
    try:
        return float(state.facts.get(_BANDWIDTH + machine_key, "0"))
    except ValueError:
        return 0.0


def keep_load(core: LibraryCore, path: Path, identity: str, measured: Measured) -> None:
    """Keep what a load took, and what its worker took before it; raises LibraryError."""
    record = msgspec.json.encode(measured).decode()
    floor = (_FLOOR + measured.backend, str(measured.floor_bytes))

    def keep(connection: sqlite3.Connection) -> int:
        model_id = library_rows.model_at(connection, path, identity)
        library_figures.put_load(connection, model_id, time.time(), record)
        if measured.floor_bytes > 0:
            library_figures.put_fact(connection, *floor)
        return model_id

    state = core.state()
    model_id = core.store.write(keep)
    state.loads[model_id] = [record, *state.loads.get(model_id, [])][: library_figures.MAX_RECORDS]
    state.model_ids.setdefault(identity, model_id)
    if measured.floor_bytes > 0:
        state.facts.update([floor])
    core.patched(state, state)


def keep_probe(core: LibraryCore, entry: ModelEntry, params: LoadParams, split: MemorySplit) -> None:
    """Keep what the allocator told of a model for these params; raises LibraryError."""
    key, answer = params_key(params), msgspec.json.encode(split).decode()

    def keep(connection: sqlite3.Connection) -> int:
        model_id = library_rows.model_at(connection, entry.path, entry.identity)
        library_figures.put_probe(connection, model_id, key, answer)
        return model_id

    state = core.state()
    model_id = core.store.write(keep)
    state.probes.setdefault(model_id, {})[key] = answer
    state.model_ids.setdefault(entry.identity, model_id)
    core.patched(state, state)


def keep_bandwidth(core: LibraryCore, machine_key: str, bytes_per_s: float) -> None:
    """Keep a machine's measured memory read bandwidth; raises LibraryError."""
    name, value = _BANDWIDTH + machine_key, repr(float(bytes_per_s))
    state = core.state()
    core.store.write(lambda connection: library_figures.put_fact(connection, name, value))
    state.facts[name] = value
    core.patched(state, state)


def params_key(params: LoadParams) -> str:
    """Return what of the params and of the engine decides a probe's answer."""
    fields = msgspec.structs.asdict(params)
    told = tuple((name, value) for name, value in sorted(fields.items()) if name not in _NO_MATTER)
    return ascii((_engine_version(), *told))  # a draft's path need not be text


@functools.cache
def _engine_version() -> str:
    try:
        return importlib.metadata.version(_ENGINE_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _measured(record: str) -> Measured | None:
    try:
        return msgspec.json.decode(record, type=Measured)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _split(record: str) -> MemorySplit | None:
    try:
        return msgspec.json.decode(record, type=MemorySplit)
    except (msgspec.DecodeError, UnicodeError):
        return None


def _numbers(facts: Mapping[str, str], prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix): int(value)
        for name, value in facts.items()
        if name.startswith(prefix) and value.isdecimal()
    }
