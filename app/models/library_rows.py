"""The library's rows: models, the paths they lie at, the folders looked into. One function a read or write.

Each takes a connection inside the caller's transaction. Knows SQL and identities; knows no file on disk and no thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.models.entry import FoundModel
from app.models.identity import FULL, PROVISIONAL
from app.models.library_packing import pack, unpack

IMPORTED, STARTER = "imported", "starter"
_NO_DEFAULTS = "{}"


class PathRow(NamedTuple):
    """A file or folder of a model.

    Attributes:
        path: the system's own bytes.
        model_id: whose bytes it holds; None when they were never read.
        origin: see entry.Origin.
        root: the folder it was found in; b"" for what a person pointed at.
        record: a FoundModel, packed.
        is_away: whether its root was not there at the last scan.
    """

    path_id: int
    path: bytes
    model_id: int | None
    origin: str
    root: bytes
    stamp: str
    record: bytes
    is_away: int


class ModelRow(NamedTuple):
    """A model: what a person says of it."""

    model_id: int
    sha256: str | None
    provisional: str | None
    note: str
    defaults: str

    @property
    def identity(self) -> str:
        """Return "sha256:…" when the bytes were read, else the provisional identity."""
        return FULL + self.sha256 if self.sha256 else (self.provisional or "")


class Trust(NamedTuple):
    """The last state of a path that nobody needs to be asked about.

    Attributes:
        stamp: see FoundModel; "" makes the next look a thorough one.
        identity: "sha256:…", "provisional:…", or "" when it could not be read.
    """

    stamp: str
    identity: str


# ------------------------------------------------------------------------------------------------------- reads


def read_paths(connection: sqlite3.Connection) -> list[PathRow]:
    """Return every path, in the order in which they came."""
    query = "SELECT path_id, path, model_id, origin, root, stamp, record, is_away FROM paths ORDER BY path_id"
    return list(map(PathRow._make, connection.execute(query)))


def read_path(connection: sqlite3.Connection, path: Path) -> PathRow | None:
    """Return one path's row; None when it is not in the library."""
    query = "SELECT path_id, path, model_id, origin, root, stamp, record, is_away FROM paths WHERE path = ?"
    row = connection.execute(query, (os.fsencode(path),)).fetchone()
    return None if row is None else PathRow(*row)


def read_pointed_at(connection: sqlite3.Connection, paths: Sequence[Path] | None) -> list[PathRow]:
    """Return the rows of these paths; without any, of the starter and of what was imported."""
    if paths is not None:
        return [row for path in paths if (row := read_path(connection, path)) is not None]
    query = (
        "SELECT path_id, path, model_id, origin, root, stamp, record, is_away FROM paths "
        f"WHERE origin IN ('{IMPORTED}', '{STARTER}') ORDER BY path_id"
    )
    return list(map(PathRow._make, connection.execute(query)))


def read_models(connection: sqlite3.Connection) -> dict[int, ModelRow]:
    """Return every model by its id."""
    rows = connection.execute("SELECT model_id, sha256, provisional, note, defaults FROM models")
    return {model.model_id: model for model in map(ModelRow._make, rows)}


def read_model(connection: sqlite3.Connection, model_id: int) -> ModelRow:
    """Return one model, which must be there."""
    query = "SELECT model_id, sha256, provisional, note, defaults FROM models WHERE model_id = ?"
    return ModelRow(*connection.execute(query, (model_id,)).fetchone())


def read_stamps(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the stamp of each path that has one and whose record can be read."""
    stamps = {}
    for path, stamp, record in connection.execute("SELECT path, stamp, record FROM paths WHERE stamp <> ''"):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            unpack(record)
            stamps[os.fsdecode(path)] = stamp
    return stamps


def read_folders(connection: sqlite3.Connection) -> list[Path]:
    """Return the folders that the person added, in the order in which they came."""
    rows = connection.execute("SELECT path FROM folders ORDER BY added_s, path")
    return [Path(os.fsdecode(path)) for (path,) in rows]


def read_trust(connection: sqlite3.Connection, path: Path) -> Trust | None:
    """Return the trusted state of a path; None when it is not in the library."""
    query = "SELECT trusted_stamp, trusted_identity FROM paths WHERE path = ?"
    row = connection.execute(query, (os.fsencode(path),)).fetchone()
    return None if row is None else Trust(*row)


# ------------------------------------------------------------------------------------------------------- paths


def put_found(connection: sqlite3.Connection, found: FoundModel, root: str, scan_number: int) -> None:
    """Keep what was found at a path; what a person imported stays imported.

    A path that shows other bytes than before becomes another model. The person's words go along, since they were
    said of the path as much as of its bytes.
    """
    path = os.fsencode(found.path)
    query = "SELECT model_id, origin, root, trusted_stamp, trusted_identity FROM paths WHERE path = ?"
    known = connection.execute(query, (path,)).fetchone()
    model_id: int | None = known[0] if known else None
    if found.identity:
        model_id = model_for(connection, found.identity)
        if known and known[0] not in (None, model_id):
            _fill_words(connection, known[0], model_id)
    trust = _trust_after(found, Trust(*known[3:]) if known else None)
    is_kept = known is not None and known[1] == IMPORTED
    origin, kept_root = known[1:3] if is_kept else (found.origin, os.fsencode(root))
    connection.execute(
        """INSERT INTO paths (path, model_id, origin, root, stamp, record, is_away, scan_number, trusted_stamp,
            trusted_identity) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?)
        ON CONFLICT (path) DO UPDATE SET model_id = excluded.model_id, origin = excluded.origin, root = excluded.root,
            stamp = excluded.stamp, record = excluded.record, is_away = 0, scan_number = MAX(scan_number,
            excluded.scan_number), trusted_stamp = excluded.trusted_stamp, trusted_identity =
            excluded.trusted_identity""",
        (path, model_id, origin, kept_root, found.stamp, pack(found), scan_number, *trust),
    )


def _trust_after(found: FoundModel, known: Trust | None) -> Trust:
    """Return what is trusted of a path that was looked at: the first state, and then only what is the same."""
    if known is None or not known.identity:
        return Trust(found.stamp, found.identity)
    if found.identity == known.identity and known.identity.startswith(PROVISIONAL):
        return Trust(found.stamp, known.identity)
    return known


def mark_seen(connection: sqlite3.Connection, paths: Iterable[str], origin: str, root: str, scan_number: int) -> None:
    """Note that a scan saw these paths unchanged in this root."""
    connection.executemany(
        f"""UPDATE paths SET is_away = 0, scan_number = MAX(scan_number, ?),
            root = CASE origin WHEN '{IMPORTED}' THEN root ELSE ? END,
            origin = CASE origin WHEN '{IMPORTED}' THEN origin ELSE ? END WHERE path = ?""",
        [(scan_number, os.fsencode(root), origin, os.fsencode(path)) for path in paths],
    )


def drop_gone(connection: sqlite3.Connection, complete_roots: Sequence[str], scan_number: int) -> None:
    """Forget what a scan did not see any more in roots that it looked through to the end."""
    connection.executemany(
        f"DELETE FROM paths WHERE root = ? AND scan_number < ? AND origin <> '{IMPORTED}'",
        [(os.fsencode(root), scan_number) for root in complete_roots],
    )


def drop_foreign(connection: sqlite3.Connection, roots: Sequence[str]) -> None:
    """Forget what was found in folders that are no longer looked into."""
    kept = {os.fsencode(root) for root in roots}
    query = f"SELECT DISTINCT root FROM paths WHERE origin NOT IN ('{IMPORTED}', '{STARTER}')"
    gone = [root for (root,) in connection.execute(query) if root not in kept]
    connection.executemany(f"DELETE FROM paths WHERE root = ? AND origin <> '{IMPORTED}'", [(root,) for root in gone])


def mark_away(connection: sqlite3.Connection, roots: Iterable[str]) -> None:
    """Note that these folders were not there: what was found in them stays listed, with that fault."""
    connection.executemany(
        f"UPDATE paths SET is_away = 1 WHERE root = ? AND origin <> '{IMPORTED}'",
        [(os.fsencode(root),) for root in roots],
    )


def drop_path(connection: sqlite3.Connection, path: Path) -> None:
    """Forget a path; what was said of its model stays."""
    connection.execute("DELETE FROM paths WHERE path = ?", (os.fsencode(path),))


def set_trust(connection: sqlite3.Connection, path: Path, trust: Trust) -> None:
    """Set the state of a path that nobody needs to be asked about."""
    connection.execute(
        "UPDATE paths SET trusted_stamp = ?, trusted_identity = ? WHERE path = ?", (*trust, os.fsencode(path))
    )


# ------------------------------------------------------------------------------------------------------ models


def model_for(connection: sqlite3.Connection, identity: str) -> int:
    """Return the model with this identity, made if there is none.

    A provisional identity that one read model has means that model; when several have it, the bytes must be read
    before anybody can tell, so the file is a model of its own until then.
    """
    found = find_model(connection, identity)
    if found is not None:
        return found
    sha256 = identity.removeprefix(FULL) if identity.startswith(FULL) else None
    provisional = None if sha256 else identity
    cursor = connection.execute("INSERT INTO models (sha256, provisional) VALUES (?, ?)", (sha256, provisional))
    return int(cursor.lastrowid or 0)


def model_at(connection: sqlite3.Connection, path: Path, identity: str) -> int:
    """Return the model that lies at a path; where the path is not stored, the one with this identity."""
    row = read_path(connection, path)
    return row.model_id if row is not None and row.model_id is not None else model_for(connection, identity)


def find_model(connection: sqlite3.Connection, identity: str) -> int | None:
    """Return the model with this identity; None when there is none, or nobody can tell which."""
    if identity.startswith(FULL):
        query = "SELECT model_id FROM models WHERE sha256 = ?"
        row = connection.execute(query, (identity.removeprefix(FULL),)).fetchone()
        return None if row is None else int(row[0])
    rows = connection.execute("SELECT model_id, sha256 FROM models WHERE provisional = ?", (identity,)).fetchall()
    if len(rows) == 1:
        return int(rows[0][0])
    return next((int(model_id) for model_id, sha256 in rows if sha256 is None), None)


def set_hash(connection: sqlite3.Connection, path: Path, sha256: str, provisional: str) -> None:
    """Give a path's model its hash: what was kept under the provisional identity moves along, notes included.

    Args:
        connection: inside a transaction.
        path: the file that was read.
        sha256: of its bytes, in hex.
        provisional: of the same bytes.
    """
    row = read_path(connection, path)
    if row is None:
        return
    source = None if row.model_id is None else read_model(connection, row.model_id)
    target = find_model(connection, FULL + sha256)
    if target is None and source is not None and source.sha256 is None and source.provisional == provisional:
        connection.execute("UPDATE models SET sha256 = ? WHERE model_id = ?", (sha256, source.model_id))
        return
    if target is None:
        target = model_for(connection, FULL + sha256)
    connection.execute(
        "UPDATE models SET provisional = ? WHERE model_id = ? AND provisional IS NULL", (provisional, target)
    )
    if source is None or source.model_id == target:
        connection.execute("UPDATE paths SET model_id = ? WHERE path_id = ?", (target, row.path_id))
        return
    if source.sha256 is None and source.provisional == provisional:
        _merge(connection, source, target)
    else:
        _fill_words(connection, source.model_id, target)
        connection.execute("UPDATE paths SET model_id = ? WHERE path_id = ?", (target, row.path_id))


def _merge(connection: sqlite3.Connection, source: ModelRow, target: int) -> None:
    """Move all that hangs on one model to another, and end the first; two notes both stay readable."""
    kept = read_model(connection, target)
    if source.note and kept.note and source.note not in kept.note:
        set_words(connection, target, note=f"{kept.note}\n\n{source.note}")
    _fill_words(connection, source.model_id, target)
    connection.execute("UPDATE paths SET model_id = ? WHERE model_id = ?", (target, source.model_id))
    connection.execute("UPDATE loads SET model_id = ? WHERE model_id = ?", (target, source.model_id))
    connection.execute("UPDATE OR IGNORE probes SET model_id = ? WHERE model_id = ?", (target, source.model_id))
    connection.execute("DELETE FROM models WHERE model_id = ?", (source.model_id,))


def _fill_words(connection: sqlite3.Connection, source: int, target: int) -> None:
    """Give a model the note and defaults of another where it has none of its own."""
    old, new = read_model(connection, source), read_model(connection, target)
    defaults = json.dumps({**json.loads(old.defaults), **json.loads(new.defaults)})
    set_words(connection, target, note=new.note or old.note, defaults=defaults)


def set_words(
    connection: sqlite3.Connection, model_id: int, *, note: str | None = None, defaults: str | None = None
) -> None:
    """Keep what a person says of a model; None leaves it."""
    connection.execute(
        "UPDATE models SET note = COALESCE(?, note), defaults = COALESCE(?, defaults) WHERE model_id = ?",
        (note, defaults, model_id),
    )


def set_model(connection: sqlite3.Connection, path: Path, model_id: int) -> None:
    """Say whose bytes a path holds."""
    connection.execute("UPDATE paths SET model_id = ? WHERE path = ?", (model_id, os.fsencode(path)))


def drop_empty_models(connection: sqlite3.Connection) -> None:
    """Forget models that lie nowhere and of which nothing was said or measured."""
    connection.execute(
        """DELETE FROM models WHERE note = '' AND defaults = ?
            AND NOT EXISTS (SELECT 1 FROM paths WHERE paths.model_id = models.model_id)
            AND NOT EXISTS (SELECT 1 FROM loads WHERE loads.model_id = models.model_id)""",
        (_NO_DEFAULTS,),
    )


# ----------------------------------------------------------------------------------------------------- folders


def put_folder(connection: sqlite3.Connection, folder: Path, added_s: float) -> None:
    """Add a folder to look into; one that is there already stays as it is."""
    connection.execute("INSERT OR IGNORE INTO folders VALUES (?, ?)", (os.fsencode(folder), added_s))


def drop_folder(connection: sqlite3.Connection, folder: Path) -> bool:
    """Forget a folder and what was found in it; return whether it was there."""
    cursor = connection.execute("DELETE FROM folders WHERE path = ?", (os.fsencode(folder),))
    connection.execute(f"DELETE FROM paths WHERE root = ? AND origin <> '{IMPORTED}'", (os.fsencode(folder),))
    return cursor.rowcount > 0
