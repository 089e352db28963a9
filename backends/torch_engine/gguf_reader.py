"""The header of a GGUF file for the torch engine, vocabulary and all, and where each tensor lies.

The program has checked the header before the worker sees the path (app/models/gguf_header.py); this reader keeps what
that one passes over. It bounds what it takes all the same: a count is believed as far as the file's size allows.
Reference: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from backends.errors import EngineError, ErrorCode

MAX_ENTRIES = 65_536  # of metadata, and of tensors
MAX_TEXTS = 4_000_000  # in one array: the largest vocabularies have 0.6 million merges
MAX_TEXT_BYTES = 64 * 2**20
MAX_DIMS = 4
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_DEFAULT_ALIGNMENT = 32

# A number, a text, a list of texts, or an array of numbers.
Value = int | float | bool | str | list[str] | np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of a GGUF file.

    Attributes:
        name: such as "blk.0.attn_q.weight".
        shape: in torch's order, slowest axis first.
        kind: how its elements are stored.
        offset: of its first byte in the file.
        size_bytes: what it takes there.
    """

    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    size_bytes: int

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A GGUF file's header.

    Attributes:
        path: of the file.
        metadata: everything that stands in front of the tensors.
        tensors: by name.
    """

    path: Path
    metadata: Mapping[str, Value]
    tensors: Mapping[str, GgufTensor]

    @property
    def architecture(self) -> str:
        """The kind of model in llama.cpp's words, such as "llama"."""
        return self.text("general.architecture")

    def text(self, key: str, default: str = "") -> str:
        """Return a text of the metadata."""
        value = self.metadata.get(key, default)
        return value if isinstance(value, str) else default

    def texts(self, key: str) -> list[str]:
        """Return a list of texts of the metadata, [] when there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, list) else []

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number of the metadata.

        Raises:
            EngineError: HEADER_INVALID; it is not there and there is no default.
        """
        value = self.metadata.get(key)
        if isinstance(value, int | float):
            return value
        if default is None:
            raise self.damaged(f"{key} is missing")
        return default

    def numbers(self, key: str) -> list[float]:
        """Return an array of numbers of the metadata, [] when there is none."""
        value = self.metadata.get(key)
        return value.tolist() if isinstance(value, np.ndarray) else []

    def damaged(self, detail: str) -> EngineError:
        """Return the error for a header that cannot be true."""
        return EngineError(ErrorCode.HEADER_INVALID, path=str(self.path), detail=detail)


def read_gguf(path: Path) -> GgufFile:
    """Return the header of a GGUF file.

    Raises:
        EngineError: FILE_MISSING, FILE_UNREADABLE, NOT_A_MODEL or HEADER_INVALID.
    """
    try:
        with path.open("rb", buffering=2**20) as file:
            return _Reader(path, file).read()
    except FileNotFoundError as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=str(path)) from error
    except OSError as error:
        raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail=error.strerror or str(error)) from error


class _Reader:
    """Reads one header from its beginning."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._size_bytes = file.seek(0, io.SEEK_END)
        file.seek(0)

    def read(self) -> GgufFile:
        """Read everything in front of the weights."""
        if self._file.read(4) != b"GGUF":
            raise EngineError(ErrorCode.NOT_A_MODEL, path=str(self._path), detail="it does not begin with GGUF")
        version, num_tensors, num_entries = self._unpack("<IQQ")
        if version not in (2, 3):
            raise self._damaged(f"it says it is of version {version}")
        if num_tensors > MAX_ENTRIES or num_entries > MAX_ENTRIES:
            raise self._damaged(f"it claims {num_tensors} tensors and {num_entries} entries")
        metadata: dict[str, Value] = {}
        for _ in range(num_entries):
            key = self._text()
            metadata[key] = self._value(self._unpack("<I")[0])
        placed = [self._place() for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 2**20:
            raise self._damaged("its alignment is no number that any file has")
        start = -(-self._file.tell() // alignment) * alignment
        tensors = [self._tensor(start, *one) for one in placed]
        named = {tensor.name: tensor for tensor in tensors}
        if len(named) != len(tensors):
            raise self._damaged("two of its tensors have the same name")
        return GgufFile(self._path, MappingProxyType(metadata), MappingProxyType(named))

    def _place(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text()
        num_dims = self._unpack("<I")[0]
        if not 1 <= num_dims <= MAX_DIMS:
            raise self._damaged(f"a tensor claims {num_dims} dimensions")
        dims = self._unpack(f"<{num_dims}Q")
        kind, offset = self._unpack("<IQ")
        return name, tuple(reversed(dims)), kind, offset

    def _tensor(self, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
        try:
            stored = GGMLQuantizationType(kind)
            block_elements, block_bytes = GGML_QUANT_SIZES[stored]
        except (ValueError, KeyError) as error:
            raise self._damaged(f"the tensor {name[:80]!a} is stored in the unknown type {kind}") from error
        if shape[-1] % block_elements or not all(shape):
            raise self._damaged(f"the tensor {name[:80]!a} has an impossible shape")
        size_bytes = math.prod(shape) // block_elements * block_bytes
        if start + offset + size_bytes > self._size_bytes:
            raise self._damaged(f"the tensor {name[:80]!a} reaches beyond the end of the file")
        return GgufTensor(name, shape, stored, start + offset, size_bytes)

    def _value(self, kind: int) -> Value:
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            scalar: int | float | bool = self._unpack(f"<{self._code(kind)}")[0]
            return scalar
        kind, count = self._unpack("<IQ")
        if kind == _TEXT:
            if count > MAX_TEXTS:
                raise self._damaged(f"an array claims {count} texts")
            return [self._text() for _ in range(count)]
        code = self._code(kind)
        layout = np.dtype(code).newbyteorder("<")
        return np.frombuffer(self._take(count * layout.itemsize), layout)

    def _code(self, kind: int) -> str:
        code = _SCALARS.get(kind)
        if code is None:
            raise self._damaged(f"its metadata holds a value of the unknown type {kind}")
        return code

    def _text(self) -> str:
        length = self._unpack("<Q")[0]
        if length > MAX_TEXT_BYTES:
            raise self._damaged(f"a text claims {length} bytes")
        return self._take(length).decode(errors="replace")

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))

    def _take(self, length: int) -> bytes:
        if length > self._size_bytes:
            raise self._damaged("its header claims more than the file holds")
        data = self._file.read(length)
        if len(data) != length:
            raise self._damaged("it ends inside its header")
        return data

    def _damaged(self, detail: str) -> EngineError:
        return EngineError(ErrorCode.HEADER_INVALID, path=str(self._path), detail=detail)
