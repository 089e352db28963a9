"""What the library knows in numbers: what loads took, what probes told, facts about this machine.

Each function takes a connection inside the caller's transaction. Knows SQL; knows no path and no file on disk.
"""

from __future__ import annotations

import sqlite3

MAX_RECORDS = 20  # of one model; the newest stay


def read_loads(connection: sqlite3.Connection) -> dict[int, list[str]]:
    """Return what loads took, by model, the newest first."""
    loads: dict[int, list[str]] = {}
    for model_id, measured in connection.execute("SELECT model_id, measured FROM loads ORDER BY load_id DESC"):
        loads.setdefault(model_id, []).append(measured)
    return loads


def read_probes(connection: sqlite3.Connection) -> dict[int, dict[str, str]]:
    """Return what the allocator told, by model and params."""
    probes: dict[int, dict[str, str]] = {}
    for model_id, params, split in connection.execute("SELECT model_id, params, split FROM probes"):
        probes.setdefault(model_id, {})[params] = split
    return probes


def read_facts(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what is known of this machine and of the library itself."""
    return dict(connection.execute("SELECT name, value FROM facts"))


def put_load(connection: sqlite3.Connection, model_id: int, loaded_s: float, measured: str) -> None:
    """Keep what a load took; of one model only the newest few stay."""
    connection.execute(
        "INSERT INTO loads (model_id, loaded_s, measured) VALUES (?, ?, ?)", (model_id, loaded_s, measured)
    )
    connection.execute(
        """DELETE FROM loads WHERE model_id = ? AND load_id NOT IN (
            SELECT load_id FROM loads WHERE model_id = ? ORDER BY load_id DESC LIMIT ?)""",
        (model_id, model_id, MAX_RECORDS),
    )


def put_probe(connection: sqlite3.Connection, model_id: int, params: str, split: str) -> None:
    """Keep what the allocator told for these params; of one model only the newest few stay."""
    connection.execute("DELETE FROM probes WHERE model_id = ? AND params = ?", (model_id, params))
    connection.execute("INSERT INTO probes (model_id, params, split) VALUES (?, ?, ?)", (model_id, params, split))
    connection.execute(
        """DELETE FROM probes WHERE model_id = ? AND probe_id NOT IN (
            SELECT probe_id FROM probes WHERE model_id = ? ORDER BY probe_id DESC LIMIT ?)""",
        (model_id, model_id, MAX_RECORDS),
    )


def put_fact(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Keep something that is known of this machine or of the library itself."""
    connection.execute(
        "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
    )


def next_scan_number(connection: sqlite3.Connection) -> int:
    """Return the number of a scan that begins now: higher than that of any other, in any process."""
    number = int(read_facts(connection).get("scan", "0")) + 1
    put_fact(connection, "scan", str(number))
    return number
