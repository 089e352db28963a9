"""The memory of one quantization by owner: the parts of its bars, and the same numbers as a table.

Knows no widget. What belongs to whom is decided by `app.models.fit_words.owner_rows`, for every screen alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from app.i18n import _
from app.models.fit_types import Fit, Measured
from app.models.fit_words import owner_rows
from app.telemetry.export import Column, Table
from app.units import bytes_text, percent_text
from ui.widgets.memory_bar import MemoryPart

OWNER, PREDICTED, MEASURED, OFF = range(4)

# The colour of each owner; what is not named here is the rest.
_ROLES: Final[Mapping[str, str]] = {
    "weights": "weights",
    "copies": "weights",
    "projector": "weights",
    "kv": "kv",
    "compute": "compute",
    "output": "compute",
    "draft": "draft",
}
# What is set aside, or may be taken back: hatched.
_HATCHED: Final = ("kv", "copies")


def memory_parts(fit: Fit, measured: Measured | None) -> tuple[MemoryPart, ...]:
    """Return the owners of a model's memory, predicted and, after a load, measured; those without any are left out."""
    source = _source_text(fit)
    # what the system may take back comes last: the rest is what has to fit
    rows = sorted(owner_rows(fit, measured), key=lambda row: row.owner == "copies")
    return tuple(
        MemoryPart(
            key=row.owner,
            title=row.title,
            role=_ROLES.get(row.owner, "rest"),
            is_reserved=row.owner in _HATCHED,
            predicted_bytes=row.predicted_bytes,
            measured_bytes=row.measured_bytes,
            source=_copies_text() if row.owner == "copies" else source,
        )
        for row in rows
        if row.predicted_bytes or row.measured_bytes
    )


def memory_table(parts: Sequence[MemoryPart], is_comparable: bool) -> Table:
    """Return the numbers of the bars as a table, the total in its last row.

    Args:
        parts: the owners.
        is_comparable: whether prediction and measurement are for the same context and KV type.
    """
    predicted = _with_total([part.predicted_bytes for part in parts])
    measured = _with_total([part.measured_bytes for part in parts])
    off = (
        measured / np.where(predicted > 0, predicted, math.nan) - 1
        if is_comparable
        else np.full_like(predicted, np.nan)
    )
    columns = (
        Column("owner", _("Owner"), str, (*(part.title for part in parts), _("Total"))),
        Column("predicted_bytes", _("predicted"), _amount, predicted),
        Column("measured_bytes", _("measured"), _amount, measured),
        Column("off", _("off"), _off, off),
    )
    return Table("model_memory", _("Memory by owner"), columns)


def _with_total(amounts: Sequence[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    known = [amount for amount in amounts if amount is not None]
    total = sum(known) if known else math.nan
    return np.array([*(math.nan if amount is None else amount for amount in amounts), total], dtype=np.float64)


def _amount(count: float) -> str:
    return "–" if math.isnan(count) else bytes_text(count)


def _off(fraction: float) -> str:
    return "–" if math.isnan(fraction) else percent_text(fraction, signed=True)


def _copies_text() -> str:
    return _("Pages of the file that a rearranged copy stands in for: the system takes them back when room is short.")


def _source_text(fit: Fit) -> str:
    words = {
        "header": _("Computed from the file's header."),
        "probe": _("Told by the engine's allocator, nothing loaded."),
        "measured": _("From an earlier load on this machine."),
    }
    return words[fit.estimate.source] if fit.estimate is not None else ""
