"""What one run said of every scored token: the per-token figures that all statistics are made of.

Plain arrays, no tensor and no words. One run, all its windows, in the order in which they were scored.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.atomic_file import replace_file
from backends import protocol

FloatRow = NDArray[np.float32]
IntRow = NDArray[np.int32]
BoolRow = NDArray[np.bool_]

_DTYPES: dict[str, Any] = {
    "logprobs": np.float32,
    "reference_logprobs": np.float32,
    "kl": np.float32,
    "cosine": np.float32,
    "best_ids": np.int32,
    "reference_best_ids": np.int32,
    "non_finite": np.bool_,
    "window": np.int32,
    "token_ids": np.int32,
}


def _no_ids() -> IntRow:
    return np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """One run's figures, one a scored token; N tokens.

    What compares with a reference has no entries where there was none: the reference's own run, when it was written.

    Attributes:
        logprobs: [N] float32, of the tokens that were scored, natural logarithms.
        reference_logprobs: [N] float32, of the same tokens by the reference.
        kl: [N] float32, Kullback-Leibler divergence of the reference's distribution to this run's, nats.
        cosine: [N] float32, of the two rows of log-probabilities, each less its mean.
        best_ids: [N] int32, the likeliest token.
        reference_best_ids: [N] int32, the reference's likeliest.
        non_finite: [N] bool, rows whose logits were not all finite; their other figures mean nothing.
        window: [N] int32, the number of the window a token stands in.
        token_ids: [N] int32, the tokens themselves.
    """

    logprobs: FloatRow
    reference_logprobs: FloatRow
    kl: FloatRow
    cosine: FloatRow
    best_ids: IntRow
    reference_best_ids: IntRow
    non_finite: BoolRow
    window: IntRow
    token_ids: IntRow = field(default_factory=_no_ids)

    def __post_init__(self) -> None:
        """Refuse arrays of different lengths; raises ValueError."""
        count = len(self.logprobs)
        for name in ("best_ids", "non_finite", "window"):
            if len(getattr(self, name)) != count:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries, not {count}")
        for name in ("reference_logprobs", "kl", "cosine", "reference_best_ids", "token_ids"):
            if len(getattr(self, name)) not in (0, count):
                raise ValueError(f"{name} has {len(getattr(self, name))} entries, not {count}")
        if len({len(self.reference_logprobs), len(self.kl), len(self.reference_best_ids)}) > 1:
            raise ValueError("a run is compared in all figures or in none")

    def __len__(self) -> int:
        return len(self.logprobs)

    @property
    def has_reference(self) -> bool:
        """Whether the run was compared."""
        return len(self.kl) > 0

    @property
    def finite(self) -> BoolRow:
        """[N] bool: the rows that count. One whose figures are no numbers does not, whatever its flag says."""
        finite = ~self.non_finite & np.isfinite(self.logprobs)
        if self.has_reference:
            finite &= np.isfinite(self.kl) & np.isfinite(self.reference_logprobs)
        return finite

    @classmethod
    def from_events(cls, events: Sequence[protocol.ScoreDone], first_window: int = 0) -> Self:
        """Return the figures of several windows, numbered from first_window on; all of one run.

        Raises:
            ValueError: some were compared with a reference and some were not, or arrays do not fit each other.
        """
        parts = [_from_event(event, first_window + number) for number, event in enumerate(events)]
        return cls.concatenate([cls(**part) for part in parts])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return several pieces of one run as one; raises ValueError where only some of them were compared."""
        filled = [part for part in parts if len(part)]
        if len({part.has_reference for part in filled}) > 1:
            raise ValueError("some windows were compared with a reference and some were not")
        joined = {}
        for one in fields(cls):
            rows = [getattr(part, one.name) for part in filled]
            if one.name == "cosine" and any(len(row) for row in rows):  # unknown in some windows
                rows = [row if len(row) else np.full(len(part), np.nan) for row, part in zip(rows, filled, strict=True)]
            dtype = _DTYPES[one.name]
            joined[one.name] = np.concatenate([np.empty(0, dtype), *rows]).astype(dtype)
        return cls(**joined)

    def windows(self, wanted: Sequence[int]) -> Self:
        """Return the rows of these windows, in the order in which they stand here."""
        return self.select(np.isin(self.window, np.asarray(wanted, np.int32)))

    def select(self, mask: BoolRow) -> Self:
        """Return the rows where the mask [N] is true."""
        rows = {one.name: getattr(self, one.name) for one in fields(self)}
        return type(self)(**{name: row[mask] if len(row) else row for name, row in rows.items()})

    def save(self, path: Path) -> None:
        """Write a .npz file, whole or not at all; raises OSError."""
        held = io.BytesIO()
        np.savez(held, **{one.name: getattr(self, one.name) for one in fields(self)})
        replace_file(path, held.getvalue())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what save() wrote; raises OSError, or ValueError where the file is damaged."""
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                return cls(**{one.name: file[one.name].astype(_DTYPES[one.name]) for one in fields(cls)})
        except _DAMAGE as error:
            raise ValueError(f"{path.name} holds no token scores: {error}") from error


# What is raised for a file that was cut off or changed.
_DAMAGE = (KeyError, EOFError, NotImplementedError, ValueError, zipfile.BadZipFile, zlib.error)


def _from_event(event: protocol.ScoreDone, window: int) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "logprobs": np.frombuffer(event.logprobs, "<f4"),
        "reference_logprobs": np.frombuffer(event.reference_logprobs, "<f4"),
        "kl": np.frombuffer(event.kl, "<f4"),
        "cosine": np.frombuffer(event.cosine, "<f4"),
        "best_ids": np.frombuffer(event.best_ids, "<i4"),
        "reference_best_ids": np.frombuffer(event.reference_best_ids, "<i4"),
        "non_finite": np.frombuffer(event.non_finite, np.uint8).astype(np.bool_),
        "token_ids": np.frombuffer(event.token_ids, "<i4"),
    }
    rows["window"] = np.full(len(rows["logprobs"]), window, np.int32)
    return rows
