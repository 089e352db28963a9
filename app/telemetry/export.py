"""The numbers behind a plot as a table, and a table as a CSV file.

The table twin shows the same object that is exported, so the two cannot disagree. Knows no window.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app import units
from app.atomic_file import replace_file
from app.i18n import _
from app.telemetry.block_map import BlockSource
from app.telemetry.series import TIME, FloatArray
from app.telemetry.store import TelemetryStore

# A cell of text that begins with one of these would run as a formula in a spreadsheet.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

Cell = float | str


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        key: the name in the CSV file, snake_case with its unit.
        title: the name for people.
        text: words a value for people, with its unit.
        values: the values, oldest first.
    """

    key: str
    title: str
    text: Callable[[float], str]
    values: FloatArray | tuple[str, ...]

    def cell_text(self, row: int) -> str:
        """Return one value for people."""
        value = self.values[row]
        return value if isinstance(value, str) else self.text(float(value))


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of one plot.

    Attributes:
        name: what the file is called, without an ending.
        title: what it is called for people.
        columns: all of one length.
        is_over_time: a row is a reading; else all rows are of one moment.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    is_over_time: bool = True

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0].values) if self.columns else 0


def memory_table(store: TelemetryStore, since_s: float = -math.inf) -> Table:
    """Return the memory by owner; unrounded bytes inside, worded amounts for people."""
    view = store.memory(since_s)
    owners = (
        ("measured", _("measured total")),
        ("rest", _("rest")),
        ("weights", _("weights")),
        ("compute", _("compute")),
        ("kv_used", _("KV used")),
        ("kv_reserved", _("KV reserved")),
        ("device_used", _("device used")),
        ("device_total", _("device total")),
    )
    columns = [Column(f"{key}_bytes", title, units.bytes_text, view[key]) for key, title in owners]
    return Table("memory", _("Memory over time by owner"), (_time_column(view[TIME]), *columns))


def kv_table(store: TelemetryStore, since_s: float = -math.inf) -> Table:
    """Return the KV cache after each step."""
    view = store.kv(since_s)
    columns = (
        _time_column(view[TIME]),
        Column("kv_tokens", _("tokens"), units.count_text, view["tokens"]),
        Column("kv_used_bytes", _("KV used"), units.bytes_text, view["used"]),
        Column("kv_predicted_bytes", _("KV predicted"), units.bytes_text, view["predicted"]),
        Column("kv_reserved_bytes", _("KV reserved"), units.bytes_text, view["reserved"]),
    )
    return Table("kv_cache", _("KV cache over time"), columns)


def speed_table(store: TelemetryStore, since_s: float = -math.inf) -> Table:
    """Return writing and reading in the order of time; each row says which of the two it is."""
    writing, reading = store.writing(since_s), store.reading(since_s)
    times = np.concatenate((writing[TIME], reading[TIME]))
    rates = np.concatenate((writing["tokens_per_s"], reading["tokens_per_s"]))
    durations = np.concatenate((np.full(len(writing[TIME]), math.nan), reading["duration_s"]))
    order = np.argsort(times, kind="stable")
    words = [_("writing")] * len(writing[TIME]) + [_("reading")] * len(reading[TIME])
    columns = (
        _time_column(times[order]),
        Column("activity", _("activity"), str, tuple(words[row] for row in order)),
        Column("tokens_per_s", _("speed"), units.rate_text, rates[order]),
        Column("duration_s", _("duration"), _duration_text, durations[order]),
    )
    return Table("tokens_per_second", _("Tokens per second over time"), columns)


def blocks_table(store: TelemetryStore) -> Table:
    """Return the KV blocks as they are now: state, tokens that lie in each, which of its text, and how many use it."""
    view = store.blocks()
    if view is None:
        return Table("kv_blocks", _("KV blocks"), (), is_over_time=False)
    states = (_("free"), _("kept"), _("used"), _("shared"))
    first = np.where(view.orders >= 0, view.orders.astype(np.float64) * view.block_tokens, math.nan)
    sequence = np.where(view.holders >= 0, view.holders + 1.0, math.nan)
    columns = (
        Column("block", _("block"), units.count_text, np.arange(view.num_blocks, dtype=np.float64)),
        Column("state", _("state"), str, tuple(states[state] for state in view.states)),
        Column("tokens", _("tokens"), units.count_text, view.filled.astype(np.float64)),
        Column("first_token", _("first token"), _known_count_text, first),
        Column("sequence", _("sequence"), _known_count_text, sequence),
        Column("sequences", _("sequences"), units.count_text, view.users.astype(np.float64)),
    )
    title = _("KV blocks of {engine}") if view.source is BlockSource.PHYSICAL else _("Logical KV blocks of {engine}")
    return Table("kv_blocks", title.format(engine=view.engine), columns, is_over_time=False)


def csv_text(table: Table) -> str:
    """Return the table as CSV: names with units in the first row, plain numbers, empty where nothing is known."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([column.key for column in table.columns])
    for row in range(table.num_rows):
        writer.writerow([_csv_cell(column.values[row]) for column in table.columns])
    return lines.getvalue()


def write_csv(table: Table, path: Path) -> None:
    """Write the table to a file; a file that was there is replaced as a whole or not at all. Raises OSError."""
    replace_file(path, csv_text(table).encode())


def _time_column(times: FloatArray) -> Column:
    return Column(TIME, _("seconds since load"), _time_text, times)


def _time_text(time_s: float) -> str:
    return f"{time_s:,.2f}{units.NBSP}s"


def _duration_text(duration_s: float) -> str:
    return "" if math.isnan(duration_s) else units.seconds_text(duration_s)


def _known_count_text(count: float) -> str:
    return "" if math.isnan(count) else units.count_text(count)


def _csv_cell(value: Cell) -> str:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
    number = float(value)
    if not math.isfinite(number):
        return ""
    return str(int(number)) if number.is_integer() else f"{number:.6f}"
