"""The header of one safetensors file: a length, a JSON text, and tensors that must fill the rest without a hole.

Knows no model and reads no weights.
Reference: https://github.com/huggingface/safetensors, README.md and safetensors/src/tensor.rs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from app.models.bounded_file import BoundedFile
from app.models.bounded_json import check_values, decode_typed
from app.models.byte_source import ByteSource, HeaderError
from app.models.gguf_checks import shown
from backends.errors import ErrorCode

MAX_HEADER_BYTES = 100_000_000  # the format's own limit
MAX_TENSORS = 131_072
MAX_NAME_BYTES = 1_024
MAX_DIMS = 16
MAX_SIZE = 2**63 - 1
_MAX_VALUES = 16 * MAX_TENSORS
_LENGTH_BYTES = 8
_METADATA = "__metadata__"

# Bits of one element. In F4 and the two F6 several elements share bytes.
DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "BOOL": 8,
        "F4": 4,
        "F6_E2M3": 6,
        "F6_E3M2": 6,
        "U8": 8,
        "I8": 8,
        "F8_E5M2": 8,
        "F8_E4M3": 8,
        "F8_E8M0": 8,
        "F8_E4M3FNUZ": 8,
        "F8_E5M2FNUZ": 8,
        "I16": 16,
        "U16": 16,
        "F16": 16,
        "BF16": 16,
        "I32": 32,
        "U32": 32,
        "F32": 32,
        "C64": 64,
        "F64": 64,
        "I64": 64,
        "U64": 64,
    }
)


@dataclass(frozen=True, slots=True)
class SafeTensor:
    """One tensor of a safetensors file.

    Attributes:
        name: such as "model.layers.0.self_attn.q_proj.weight".
        dtype: how its elements are stored, as the file says it, such as "BF16".
        dims: the number of elements along each axis, slowest first, as the file has it; () for a single number.
        size_bytes: what it takes.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    size_bytes: int

    @property
    def elements(self) -> int:
        """The number of elements; packed weights count as what they are packed in."""
        product = 1
        for dim in self.dims:
            product *= dim
        return product


class _Entry(msgspec.Struct):
    """What the header says of one tensor."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


_NAMES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)
_TEXTS = msgspec.json.Decoder(dict[str, str])


def read_tensors(source: ByteSource) -> tuple[SafeTensor, ...]:
    """Return the tensors of one file in the order of their places; the caller closes the source.

    Raises:
        HeaderError: this is no safetensors file, or its header cannot be true.
        AppError: what the source itself raises.
    """
    file = BoundedFile(source, _LENGTH_BYTES + MAX_HEADER_BYTES)
    if file.file_bytes < _LENGTH_BYTES + 2:
        raise HeaderError("The file is too short for a safetensors file.", ErrorCode.NOT_A_MODEL)
    length = file.u64()
    if not 2 <= length <= MAX_HEADER_BYTES:
        raise HeaderError(
            f"This is not a safetensors file: its header would take {length:,} bytes.", ErrorCode.NOT_A_MODEL
        )
    data = file.take(length)
    if data[:1] != b"{":
        raise HeaderError("This is not a safetensors file: no header follows its length.", ErrorCode.NOT_A_MODEL)
    check_values(data, "The header", _MAX_VALUES)
    entries = decode_typed(data, "The header", _NAMES)
    if _METADATA in entries:
        decode_typed(bytes(entries.pop(_METADATA)), "The metadata of the header", _TEXTS)
    if len(entries) > MAX_TENSORS:
        raise HeaderError(f"The header claims {len(entries):,} tensors; at most {MAX_TENSORS:,} are allowed.")
    placed = [_tensor(name, raw) for name, raw in entries.items()]
    placed.sort(key=lambda one: one[:2])
    return _checked_places(placed, file.file_bytes - file.position)


def _tensor(name: str, raw: msgspec.Raw) -> tuple[int, int, SafeTensor]:
    """Return begin, end and the tensor; its shape agrees with its size."""
    if not name or len(name) > MAX_NAME_BYTES or not name.isprintable():
        raise HeaderError(f"The name of a tensor is empty, too long or not plain text: {shown(name)}.")
    entry = decode_typed(bytes(raw), f"The entry of the tensor {shown(name)}", _ENTRY)
    bits = DTYPE_BITS.get(entry.dtype)
    if bits is None:
        raise HeaderError(f"The tensor {shown(name)} is stored in the unknown type {shown(entry.dtype)}.")
    if len(entry.shape) > MAX_DIMS:
        raise HeaderError(f"The tensor {shown(name)} claims {len(entry.shape):,} dimensions.")
    elements = 1
    for dim in entry.shape:
        elements *= dim
        if not (0 <= dim <= MAX_SIZE and elements <= MAX_SIZE):
            raise HeaderError(f"The tensor {shown(name)} has an impossible shape.")
    begin, end = entry.data_offsets
    if not 0 <= begin <= end <= MAX_SIZE:
        raise HeaderError(f"The tensor {shown(name)} ends before it begins.")
    if elements * bits != 8 * (end - begin):
        raise HeaderError(f"The tensor {shown(name)} takes {end - begin:,} bytes, which is not what its shape needs.")
    return begin, end, SafeTensor(name, entry.dtype, tuple(entry.shape), end - begin)


def _checked_places(placed: list[tuple[int, int, SafeTensor]], data_bytes: int) -> tuple[SafeTensor, ...]:
    """Refuse overlaps, also of tensors without elements, and holes; nothing may follow the last tensor."""
    expected = 0
    for begin, end, tensor in placed:
        if end > data_bytes:
            raise HeaderError(
                f"The tensor {shown(tensor.name)} reaches beyond the end of the file, which is cut short or damaged."
            )
        if begin < expected:
            raise HeaderError(f"The tensor {shown(tensor.name)} lies upon the one before it.")
        if begin > expected:
            raise HeaderError(f"There is a hole in front of the tensor {shown(tensor.name)}.")
        expected = end
    if expected != data_bytes:
        raise HeaderError(f"{data_bytes - expected:,} bytes follow the last tensor, which the format does not allow.")
    return tuple(tensor for _begin, _end, tensor in placed)
