"""The headers of safetensors files: where each weight lies, checked before a byte of it is read.

Knows no model. A file is a length, a JSON text, and tensors that fill the rest without a hole and without overlap.
Reference: https://github.com/huggingface/safetensors, README.md; trust.md S-08.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_config import damaged

MAX_HEADER_BYTES = 100_000_000  # the format's own limit
MAX_TENSORS = 131_072
MAX_DIMS = 8
_LENGTH_BYTES = 8
_METADATA = "__metadata__"

# Bytes of an element of the types that the engine computes with, or keeps as buffers.
DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
)


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor of a safetensors file.

    Attributes:
        path: of the file.
        dtype: as the file says it, such as "BF16".
        shape: slowest axis first; () for a single number.
        offset: of its first byte in the file.
        size_bytes: what it takes.
    """

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


class _Entry(msgspec.Struct):
    """What a header says of one tensor."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def read_header(path: Path, file_bytes: int, head: bytes, model: Path) -> dict[str, FileTensor]:
    """Return the tensors of one file by name.

    Args:
        path: of the file.
        file_bytes: its size.
        head: its first bytes, at least the header.
        model: the folder, for the error.

    Raises:
        EngineError: HEADER_INVALID or WEIGHTS_UNSUPPORTED.
    """
    length = header_bytes(path, file_bytes, head, model)
    data = head[_LENGTH_BYTES : _LENGTH_BYTES + length]
    if data.count(b"[") > 4 * MAX_TENSORS:
        raise damaged(model, f"{path.name} claims more tensors than any model has")
    try:
        entries = _NAMES.decode(data)
        entries.pop(_METADATA, None)
        placed = [(name, _ENTRY.decode(raw)) for name, raw in entries.items()]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(model, f"the header of {path.name} is not as the format wants it") from error
    start = _LENGTH_BYTES + length
    tensors = {name: _tensor(path, name, entry, start, model) for name, entry in placed}
    _check_places(path, tensors, start, file_bytes, model)
    return tensors


def header_bytes(path: Path, file_bytes: int, head: bytes, model: Path) -> int:
    """Return how long the header says it is; the first 8 bytes are enough to ask.

    Raises:
        EngineError: HEADER_INVALID; it cannot be that long.
    """
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    if len(head) < _LENGTH_BYTES or not 2 <= length <= min(MAX_HEADER_BYTES, file_bytes - _LENGTH_BYTES):
        raise damaged(model, f"{path.name} is no safetensors file, or is cut short")
    return length


def _tensor(path: Path, name: str, entry: _Entry, start: int, model: Path) -> FileTensor:
    shown = f"the tensor {name[:80]!a} of {path.name}"
    element_bytes = DTYPE_BYTES.get(entry.dtype)
    if element_bytes is None:
        raise EngineError(ErrorCode.WEIGHTS_UNSUPPORTED, path=str(model), detail=entry.dtype[:40])
    begin, end = entry.data_offsets
    if len(entry.shape) > MAX_DIMS or any(not 0 <= dim < 2**48 for dim in entry.shape) or not 0 <= begin <= end:
        raise damaged(model, f"{shown} has an impossible shape or place")
    if math.prod(entry.shape) * element_bytes != end - begin:
        raise damaged(model, f"{shown} takes {end - begin:,} bytes, which is not what its shape needs")
    return FileTensor(path, entry.dtype, tuple(entry.shape), start + begin, end - begin)


def _check_places(path: Path, tensors: Mapping[str, FileTensor], start: int, file_bytes: int, model: Path) -> None:
    expected = start
    for tensor in sorted(tensors.values(), key=lambda one: (one.offset, one.size_bytes)):
        if tensor.offset != expected:
            kind = "overlap" if tensor.offset < expected else "have a hole between them"
            raise damaged(model, f"tensors of {path.name} {kind}")
        expected = tensor.offset + tensor.size_bytes
    if expected > file_bytes:
        raise damaged(model, f"{path.name} is cut short: its tensors reach beyond its end")
    if expected < file_bytes:
        raise damaged(model, f"{file_bytes - expected:,} bytes follow the last tensor of {path.name}")
