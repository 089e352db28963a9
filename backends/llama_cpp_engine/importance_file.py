"""Importance matrices on disk: llama.cpp's own files, read in both of its formats and written in the newer one.

For each input column of each matrix an importance matrix holds the mean of the squares of what came in there. A file of
ours can be used by llama.cpp's tools, and theirs here. The newer format is a GGUF with two F32 tensors for a matrix,
`<name>.in_sum2` [columns, matrices] and `<name>.counts` [1, matrices]; the older one (`.dat`) is a row of records.
Reference: tools/imatrix/imatrix.cpp and common/imatrix-loader.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from backends.errors import EngineError, ErrorCode

Floats = npt.NDArray[np.float32]

_MAGIC, _VERSION, _ALIGNMENT, _F32 = b"GGUF", 3, 32, 0
_U32, _STRING, _ARRAY = 4, 8, 9
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's value types
_SUMS, _COUNTS = ".in_sum2", ".counts"
# Far beyond any model, and far below what would exhaust the memory.
_MAX_ENTRIES, _MAX_TEXT_BYTES, _MAX_LIST = 1_000_000, 65_536, 10_000


@dataclass(frozen=True, slots=True)
class Sums:
    """What was counted for one matrix, or for the matrices of all experts.

    Attributes:
        squares: float [matrices, columns], summed over the rows that came in.
        counts: float [matrices], how many rows came in; one for all where there is only one.
    """

    squares: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Importance:
    """An importance matrix as llama.cpp is given it.

    Attributes:
        means: by matrix, float32 [matrices x columns]: the mean square of what came in; 1 where nothing did.
        chunks: how many windows of text it comes from; 0 when unknown.
        source: what text it comes from; "" when unknown.
    """

    means: Mapping[str, Floats]
    chunks: int = 0
    source: str = ""


class _DamageError(Exception):
    """Why a file is none of an importance matrix."""


# ------------------------------------------------------------------------------------------------------ reading


def read_importance(path: Path) -> Importance:
    """Return the importance matrix in this file, of either format; raises EngineError, IMPORTANCE_UNREADABLE."""
    try:
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            reader = _Reader(file, size_bytes)
            found = _read_gguf(reader) if reader.take(4) == _MAGIC else _read_records(reader)
        _check(found)
    except OSError as error:
        raise EngineError(
            ErrorCode.IMPORTANCE_UNREADABLE, path=str(path), detail=error.strerror or str(error)
        ) from error
    except _DamageError as error:
        raise EngineError(ErrorCode.IMPORTANCE_UNREADABLE, path=str(path), detail=str(error)) from error
    return found


def _check(found: Importance) -> None:
    if not found.means:
        raise _DamageError("it says nothing of any matrix")
    for name, values in found.means.items():
        if not np.isfinite(values).all() or (values < 0).any():
            raise _DamageError(f"what it says of {name} are no mean squares")


class _Reader:
    """Reads values in order and never beyond the file's end."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self.size_bytes = size_bytes

    def seek(self, offset: int) -> None:
        if not 0 <= offset <= self.size_bytes:
            raise _DamageError("it ends too early")
        self._file.seek(offset)

    @property
    def position(self) -> int:
        return self._file.tell()

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.size_bytes - self.position:
            raise _DamageError("it ends too early")
        return self._file.read(count)

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def bounded(self, layout: str, most: int) -> int:
        number = self.number(layout)
        if not 0 <= number <= most:
            raise _DamageError("its sizes cannot be true")
        return number

    def text(self, length: int) -> str:
        return self.take(length).decode(errors="replace")

    def floats(self, count: int) -> Floats:
        return np.frombuffer(self.take(4 * count), dtype="<f4").astype(np.float32)


def _read_gguf(reader: _Reader) -> Importance:
    if reader.number("<I") not in (2, _VERSION):
        raise _DamageError("it is a GGUF of another version")
    tensors_count = reader.bounded("<Q", _MAX_ENTRIES)
    values = dict(_read_value(reader) for _ in range(reader.bounded("<Q", _MAX_LIST)))
    if values.get("general.type") != "imatrix":
        raise _DamageError("it is a GGUF of something else")
    places = [_read_tensor(reader) for _ in range(tensors_count)]
    alignment = values.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or not 0 < alignment <= _MAX_TEXT_BYTES:
        raise _DamageError("its sizes cannot be true")
    first = -(-reader.position // alignment) * alignment
    sums: dict[str, Floats] = {}
    counts: dict[str, Floats] = {}
    for name, elements, offset in places:
        kind = sums if name.endswith(_SUMS) else counts if name.endswith(_COUNTS) else None
        if kind is not None:
            reader.seek(first + offset)
            kind[name.removesuffix(_SUMS).removesuffix(_COUNTS)] = reader.floats(elements)
    if sums.keys() != counts.keys():
        raise _DamageError("it holds sums without counts")
    means = {name: _means(name, sums[name], counts[name]) for name in sums}
    chunks = values.get("imatrix.chunk_count", 0)
    source = values.get("imatrix.datasets", "")
    return Importance(means, chunks if isinstance(chunks, int) else 0, source if isinstance(source, str) else "")


def _read_value(reader: _Reader) -> tuple[str, str | int]:
    """Return a key with its text or number; of a list of texts the last one, and 0 for what nobody asks for."""
    key = reader.text(reader.bounded("<Q", _MAX_TEXT_BYTES))
    kind = reader.number("<I")
    if kind != _ARRAY:
        return key, _read_plain(reader, kind)
    element_kind, length = reader.number("<I"), reader.bounded("<Q", _MAX_LIST)
    last: str | int = 0
    for _ in range(length):
        last = _read_plain(reader, element_kind)
    return key, last


def _read_plain(reader: _Reader, kind: int) -> str | int:
    if kind == _STRING:
        return reader.text(reader.bounded("<Q", _MAX_TEXT_BYTES))
    if kind not in _WIDTHS:
        raise _DamageError("it holds values of an unknown kind")
    raw = reader.take(_WIDTHS[kind])
    return int.from_bytes(raw, "little") if kind == _U32 else 0


def _read_tensor(reader: _Reader) -> tuple[str, int, int]:
    """Return a tensor's name, how many elements it has and where it begins, counted from the first tensor."""
    name = reader.text(reader.bounded("<Q", _MAX_TEXT_BYTES))
    elements = 1
    for _ in range(reader.bounded("<I", 4)):
        elements *= reader.bounded("<Q", reader.size_bytes)
    if reader.number("<I") != _F32 and name.endswith((_SUMS, _COUNTS)):
        raise _DamageError(f"{name} is not in F32")
    return name, elements, reader.bounded("<Q", reader.size_bytes)


def _means(name: str, sums: Floats, counts: Floats) -> Floats:
    if not len(counts) or not len(sums) or len(sums) % len(counts):
        raise _DamageError(f"its sums and counts of {name} do not fit together")
    # An expert that was never asked says nothing: all its inputs count alike.
    rows = sums.reshape(len(counts), -1)
    asked = counts[:, None] > 0
    means = np.where(asked, rows / np.where(asked, counts[:, None], 1), 1)
    return np.ascontiguousarray(means.reshape(-1), dtype=np.float32)


def _read_records(reader: _Reader) -> Importance:
    """Read the older format: for each matrix its name, a number of calls, and sums that were scaled by it."""
    reader.seek(0)
    means: dict[str, Floats] = {}
    for _ in range(reader.bounded("<i", _MAX_ENTRIES)):
        name = reader.text(reader.bounded("<i", _MAX_TEXT_BYTES))
        calls = reader.number("<i")
        values = reader.floats(reader.bounded("<i", reader.size_bytes // 4))
        if not name or not len(values):
            raise _DamageError("it is no importance matrix")
        means[name] = values / np.float32(calls) if calls > 0 else values
    chunks, source = 0, ""
    if reader.position < reader.size_bytes:  # the oldest files end here
        chunks = max(0, reader.number("<i"))
        source = reader.text(reader.bounded("<i", _MAX_TEXT_BYTES))
    return Importance(means, chunks, source)


# ------------------------------------------------------------------------------------------------------ writing


def write_importance(path: Path, sums: Mapping[str, Sums], *, windows: int, window_tokens: int, source: str) -> None:
    """Write an importance matrix in llama.cpp's own format; nothing is left behind where that fails.

    Args:
        path: of the file; one that is there is replaced.
        sums: what was counted, by matrix.
        windows: how many windows of text it comes from.
        window_tokens: how long each was.
        source: what text that was.

    Raises:
        EngineError: WRITE_FAILED.
    """
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            _write(file, sums, (windows, window_tokens), source)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise EngineError(ErrorCode.WRITE_FAILED, path=str(path), detail=error.strerror or str(error)) from error


def _write(file: BinaryIO, sums: Mapping[str, Sums], windows: tuple[int, int], source: str) -> None:
    tensors: list[tuple[str, Sequence[int], bytes]] = []
    for name in sorted(sums):
        one = sums[name]
        columns = one.squares.size // len(one.counts)
        tensors.append((name + _SUMS, (columns, len(one.counts)), one.squares.astype("<f4").tobytes()))
        tensors.append((name + _COUNTS, (1, len(one.counts)), one.counts.astype("<f4").tobytes()))
    header = bytearray(_MAGIC + struct.pack("<IQQ", _VERSION, len(tensors), 4))
    header += _text("general.type") + struct.pack("<I", _STRING) + _text("imatrix")
    header += _text("imatrix.datasets") + struct.pack("<IIQ", _ARRAY, _STRING, 1) + _text(source)
    header += _text("imatrix.chunk_count") + struct.pack("<II", _U32, windows[0])
    header += _text("imatrix.chunk_size") + struct.pack("<II", _U32, windows[1])
    offset = 0
    for name, dims, data in tensors:
        header += _text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, _F32, offset)
        offset += _padded(len(data))
    file.write(header.ljust(_padded(len(header)), b"\0"))
    for _name, _dims, data in tensors:
        file.write(data.ljust(_padded(len(data)), b"\0"))


def _text(words: str) -> bytes:
    raw = words.encode()
    return struct.pack("<Q", len(raw)) + raw


def _padded(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
