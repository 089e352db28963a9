"""The header of a GGUF file: read by skipping, and checked before any engine may see the file.

Knows no weights and keeps no vocabulary: arrays are passed over, so a header of any size costs milliseconds and
little memory. Every number in the file is taken for a lie until the file's own size agrees with it. The sentences of
HeaderError stay English; they are details inside the translated messages of app/errors.py.
References: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and gguf.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import struct
from pathlib import Path
from types import MappingProxyType

from app.models.bounded_file import BoundedFile, HeaderError, open_bounded
from app.models.byte_source import ByteSource
from app.models.ggml_types import ARRAY, BOOL, GGML_TYPES, SCALAR_TYPES, STRING
from app.models.gguf_checks import check_metadata, check_names, check_places, check_type, describe_stranger, shown
from app.models.gguf_facts import ArrayNote, GgufHeader, Scalar, TensorInfo, Value
from backends.errors import ErrorCode

__all__ = ["ArrayNote", "GgufHeader", "HeaderError", "TensorInfo", "read_header", "read_header_from", "read_part"]

MAX_TENSORS = 65_536
MAX_METADATA = 65_536
MAX_KEY_BYTES = 65_535
MAX_TEXT_BYTES = 64 * 2**20
MAX_NAME_BYTES = 63  # GGML_MAX_NAME with its closing zero
MAX_DIMS = 4
MAX_ELEMENTS = 2**63 - 1
# The largest vocabularies have 0.3 million tokens and 0.6 million merges, in 30 MB. These two bound the time.
MAX_HEADER_BYTES = 256 * 2**20
MAX_TEXTS = 4_000_000
# What is kept: scalars, texts such as chat templates, and short arrays such as head counts per layer.
KEPT_ELEMENTS = 4_096
KEPT_TEXT_BYTES = 4 * 2**20
KEPT_TOTAL_BYTES = 32 * 2**20
KEPT_KEYS_BYTES = 16 * 2**20
KEPT_TOTAL_ELEMENTS = 1_000_000  # a number in a tuple takes up to 36 bytes, whatever it takes in the file


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file that an engine may be given.

    Of a set in several parts that is the first; app/models/split_set.py reads them all.

    Raises:
        HeaderError: there is no such file, it cannot be read, it is no GGUF, or its header cannot be true.
    """
    with open_bounded(path, MAX_HEADER_BYTES) as file:
        return _HeaderReader(file).read(is_part_enough=False)


def read_part(path: Path) -> GgufHeader:
    """Return the header of one part of a split set, of which only the first says what model it is.

    Raises:
        HeaderError: see read_header().
    """
    with open_bounded(path, MAX_HEADER_BYTES) as file:
        return _HeaderReader(file).read(is_part_enough=True)


def read_header_from(source: ByteSource, *, is_part_enough: bool = False) -> GgufHeader:
    """Return the header of a GGUF from wherever its bytes come; the caller closes the source.

    Args:
        source: the whole file; only its beginning is read.
        is_part_enough: whether a later part of a split set will do, as in read_part().

    Raises:
        HeaderError: see read_header().
        AppError: what the source itself raises.
    """
    return _HeaderReader(BoundedFile(source, MAX_HEADER_BYTES)).read(is_part_enough=is_part_enough)


class _HeaderReader:
    """Reads one header and keeps the budgets that bound its time and memory.

    Attributes:
        _texts_left: how many texts in arrays may still be passed over.
        _kept_left: how many bytes of values may still be kept; the others are noted.
        _elements_left: how many elements of arrays may still be kept.
        _keys_left: how many bytes of keys may still come.
    """

    def __init__(self, file: BoundedFile) -> None:
        self._file = file
        self._texts_left = MAX_TEXTS
        self._kept_left = KEPT_TOTAL_BYTES
        self._elements_left = KEPT_TOTAL_ELEMENTS
        self._keys_left = KEPT_KEYS_BYTES

    def read(self, is_part_enough: bool) -> GgufHeader:
        """Read and check everything in front of the weights."""
        version = self._read_version()
        num_tensors = self._read_count("tensors", MAX_TENSORS)
        metadata = self._read_metadata(self._read_count("metadata entries", MAX_METADATA))
        alignment = check_metadata(metadata, is_part_enough)
        read = [self._read_tensor_info() for _ in range(num_tensors)]
        check_names(read, metadata)
        data_offset = -(-self._file.position // alignment) * alignment
        check_places(read, alignment, self._file.file_bytes - data_offset)
        return GgufHeader(
            version, alignment, MappingProxyType(metadata), tuple(read), data_offset, self._file.file_bytes
        )

    def _read_version(self) -> int:
        head = self._file.take(min(8, self._file.file_bytes))
        if head[:4] != b"GGUF":
            raise HeaderError(describe_stranger(head), ErrorCode.NOT_A_MODEL)
        if len(head) < 8:
            raise HeaderError("The file ends right after its first bytes.")
        version = int.from_bytes(head[4:], "little")
        if version in (2, 3):
            return version
        if version == 1:
            raise HeaderError("This is a GGUF of version 1, which no current engine reads; get a newer file.")
        if int.from_bytes(head[4:], "big") in (1, 2, 3):
            raise HeaderError("This GGUF was made for big-endian machines; get the ordinary file of this model.")
        raise HeaderError(f"This GGUF says it is of version {version:,}; only 2 and 3 can be read.")

    def _read_count(self, of_what: str, limit: int) -> int:
        count = self._file.u64()
        if count > limit:
            raise HeaderError(f"The header claims {count:,} {of_what}; at most {limit:,} are allowed.")
        return count

    def _read_text(self, of_what: str, limit_bytes: int) -> str:
        length = self._file.u64()
        if length > limit_bytes:
            raise HeaderError(f"{of_what} claims {length:,} bytes; at most {limit_bytes:,} are allowed.")
        try:
            return self._file.take(length).decode()
        except UnicodeDecodeError as error:
            raise HeaderError(f"{of_what} is not valid text.") from error

    def _read_metadata(self, count: int) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        for _ in range(count):
            key = self._read_text("A metadata key", MAX_KEY_BYTES)
            if not key or not key.isascii() or not key.isprintable():
                raise HeaderError(f"A metadata key is empty or not plain text: {key[:80]!a}.")
            if key in metadata:
                raise HeaderError(f"The metadata key {shown(key)} stands twice in the header.")
            self._keys_left -= len(key)
            if self._keys_left < 0:
                raise HeaderError("The metadata keys are longer than any model needs.")
            value_type = self._file.u32()
            check_type(key, value_type)
            metadata[key] = self._read_value(key, value_type)
        return metadata

    def _read_value(self, key: str, value_type: int) -> Value:
        if value_type == STRING:
            return self._read_string(key)
        if value_type == ARRAY:
            return self._read_array(key, self._file.u32(), self._file.u64())
        if value_type not in SCALAR_TYPES:
            raise HeaderError(f"The metadata of {shown(key)} is of the unknown type {value_type:,}.")
        return self._read_scalars(key, value_type, 1)[0]

    def _read_string(self, key: str) -> Value:
        length = self._file.u64()
        if length > MAX_TEXT_BYTES:
            raise HeaderError(
                f"The text of {shown(key)} claims {length:,} bytes; at most {MAX_TEXT_BYTES:,} are allowed."
            )
        if length > KEPT_TEXT_BYTES or length > self._kept_left:
            self._file.skip(length)
            return ArrayNote("text", length)
        self._kept_left -= length
        return self._file.take(length).decode(errors="replace")

    def _read_array(self, key: str, element_type: int, length: int) -> Value:
        if element_type == ARRAY:
            raise HeaderError(f"The array of {shown(key)} holds arrays, which no model needs.")
        if element_type == STRING:
            self._texts_left -= length
            if self._texts_left < 0 or length * 8 > self._file.remaining_bytes:
                raise HeaderError(f"The array of {shown(key)} claims {length:,} texts, more than can be there.")
            self._file.skip_texts(length, MAX_TEXT_BYTES)
            return ArrayNote("string", length)
        if element_type not in SCALAR_TYPES:
            raise HeaderError(f"The array of {shown(key)} is of the unknown type {element_type:,}.")
        name, code = SCALAR_TYPES[element_type]
        total_bytes = length * struct.calcsize(code)
        if total_bytes > self._file.remaining_bytes:
            raise HeaderError(f"The array of {shown(key)} claims {length:,} elements, more than can be there.")
        if length <= min(KEPT_ELEMENTS, self._elements_left) and total_bytes <= self._kept_left:
            self._kept_left -= total_bytes
            self._elements_left -= length
            return self._read_scalars(key, element_type, length)
        if element_type == BOOL:
            self._check_bools(key, length)
        else:
            self._file.skip(total_bytes)
        return ArrayNote(name, length)

    def _read_scalars(self, key: str, value_type: int, count: int) -> tuple[Scalar, ...]:
        _name, code = SCALAR_TYPES[value_type]
        layout = struct.Struct(f"<{count}{code}")
        values: tuple[Scalar, ...] = layout.unpack(self._file.take(layout.size))
        if value_type != BOOL:
            return values
        if any(value > 1 for value in values):
            raise HeaderError(f"A yes-or-no value of {shown(key)} is neither.")
        return tuple(bool(value) for value in values)

    def _check_bools(self, key: str, count: int) -> None:
        while count > 0:
            piece = self._file.take(min(count, 65_536))
            if piece.strip(b"\0\1"):  # nothing is left of a piece of zeros and ones
                raise HeaderError(f"A yes-or-no value of {shown(key)} is neither.")
            count -= len(piece)

    def _read_tensor_info(self) -> TensorInfo:
        name = self._read_text("The name of a tensor", MAX_NAME_BYTES)
        if not name or not name.isprintable():
            raise HeaderError(f"The name of a tensor is empty or not plain text: {name!a}.")
        num_dims = self._file.u32()
        if not 1 <= num_dims <= MAX_DIMS:
            raise HeaderError(f"The tensor {shown(name)} claims {num_dims:,} dimensions; 1 to {MAX_DIMS} are allowed.")
        dims = tuple(self._file.u64() for _ in range(num_dims))
        elements = 1
        for dim in dims:
            elements *= dim
        if not 0 < elements <= MAX_ELEMENTS:
            raise HeaderError(f"The tensor {shown(name)} has an impossible shape.")
        type_number = self._file.u32()
        ggml_type = GGML_TYPES.get(type_number)
        if ggml_type is None:
            raise HeaderError(f"The tensor {shown(name)} is stored in the unknown type {type_number:,}.")
        if dims[0] % ggml_type.block_elements:
            raise HeaderError(f"The rows of the tensor {shown(name)} are no whole blocks of {ggml_type.name}.")
        return TensorInfo(name, dims, ggml_type.name, self._file.u64(), ggml_type.size_bytes(elements))
