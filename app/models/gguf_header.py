"""The header of a GGUF file: read by skipping, and checked before any engine may see the file.

Knows no weights and keeps no vocabulary: arrays are passed over, so a header of any size costs milliseconds and
little memory. Every number in the file is taken for a lie until the file's own size agrees with it. The sentences of
HeaderError stay English; they are details inside the translated messages of app/errors.py.
References: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and gguf.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from app.models.bounded_file import BoundedFile, HeaderError, open_bounded
from app.models.ggml_types import ARRAY, BOOL, FILE_TYPES, GGML_TYPES, SCALAR_TYPES, STRING
from backends.errors import ErrorCode

__all__ = ["ArrayNote", "GgufHeader", "HeaderError", "TensorInfo", "read_header"]

MAX_TENSORS = 65_536
MAX_METADATA = 65_536
MAX_KEY_BYTES = 65_535
MAX_TEXT_BYTES = 64 * 2**20
MAX_NAME_BYTES = 63  # GGML_MAX_NAME with its closing zero
MAX_DIMS = 4
MAX_ELEMENTS = 2**63 - 1
MAX_ALIGNMENT = 2**20
MAX_BLOCKS = 512  # LLAMA_MAX_LAYERS: llama.cpp aborts above it
# The largest vocabularies have 0.3 million tokens and 0.6 million merges, in 30 MB. These two bound the time.
MAX_HEADER_BYTES = 256 * 2**20
MAX_TEXTS = 4_000_000
# What is kept: scalars, texts such as chat templates, and short arrays such as head counts per layer.
KEPT_ELEMENTS = 4_096
KEPT_TEXT_BYTES = 4 * 2**20
KEPT_TOTAL_BYTES = 32 * 2**20
KEPT_KEYS_BYTES = 16 * 2**20

_DEFAULT_ALIGNMENT = 32
_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_GUESSED_FILE_TYPE = 1024  # a flag of llama.cpp on top of the file type

Scalar = bool | int | float


@dataclass(frozen=True, slots=True)
class ArrayNote:
    """A value that was passed over.

    Attributes:
        type: the type of its elements, such as "string"; "text" for one very long text.
        length: the number of elements, or the bytes of the text.
    """

    type: str
    length: int


Value = Scalar | str | tuple[Scalar, ...] | ArrayNote


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file.

    Attributes:
        name: such as "blk.0.attn_q.weight".
        dims: the number of weights along each axis, row length first, as the file has it.
        type_name: how its weights are stored, such as "Q4_K".
        offset: where it begins, counted from the header's data_offset.
        size_bytes: what it takes.
    """

    name: str
    dims: tuple[int, ...]
    type_name: str
    offset: int
    size_bytes: int

    @property
    def elements(self) -> int:
        """The number of weights."""
        product = 1
        for dim in self.dims:
            product *= dim
        return product


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself, checked against the size of the file.

    Attributes:
        version: of the format, 2 or 3.
        alignment: tensors begin at multiples of it.
        metadata: the keys and values; long ones are an ArrayNote.
        tensors: in the order of the file.
        data_offset: where in the file the tensors begin.
        file_bytes: the size of the file.
    """

    version: int
    alignment: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    file_bytes: int

    @property
    def architecture(self) -> str:
        """The model's architecture, such as "llama"."""
        return self.text("general.architecture")

    @property
    def name(self) -> str:
        """The model's own name as its maker wrote it; "" without one."""
        return self.text("general.name")

    @property
    def context_length(self) -> int:
        """The tokens the model was trained for; 0 when the file does not say."""
        return self.number(f"{self.architecture}.context_length")

    @property
    def block_count(self) -> int:
        """The number of layers; 0 when the file does not say."""
        return self.number(f"{self.architecture}.block_count")

    @property
    def chat_template(self) -> str:
        """The Jinja chat template; "" without one."""
        return self.text("tokenizer.chat_template")

    @property
    def parameters_count(self) -> int:
        """The number of weights in all tensors."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """What all tensors take in the file, without the gaps of the alignment."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def quantization(self) -> str:
        """How the weights are stored: the file's own label, else the type that holds most of the weights."""
        label = FILE_TYPES.get(self.number("general.file_type", absent=-1) & ~_GUESSED_FILE_TYPE)
        if label:
            return label
        weights: Counter[str] = Counter()
        for tensor in self.tensors:
            weights[tensor.type_name] += tensor.elements
        return weights.most_common(1)[0][0] if weights else ""

    def text(self, key: str) -> str:
        """Return the text under this key; "" when there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, absent: int = 0) -> int:
        """Return the whole number under this key; `absent` when there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else absent


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file that an engine may be given.

    Raises:
        HeaderError: there is no such file, it cannot be read, it is no GGUF, or its header cannot be true.
    """
    with open_bounded(path, MAX_HEADER_BYTES) as file:
        return _HeaderReader(file).read()


class _HeaderReader:
    """Reads one header and keeps the budgets that bound its time and memory.

    Attributes:
        _texts_left: how many texts in arrays may still be passed over.
        _kept_left: how many bytes of values may still be kept; the others are noted.
        _keys_left: how many bytes of keys may still come.
    """

    def __init__(self, file: BoundedFile) -> None:
        self._file = file
        self._texts_left = MAX_TEXTS
        self._kept_left = KEPT_TOTAL_BYTES
        self._keys_left = KEPT_KEYS_BYTES

    def read(self) -> GgufHeader:
        """Read and check everything in front of the weights."""
        version = self._read_version()
        num_tensors = self._read_count("tensors", MAX_TENSORS)
        metadata = self._read_metadata(self._read_count("metadata entries", MAX_METADATA))
        alignment = _check_metadata(metadata)
        read = [self._read_tensor_info() for _ in range(num_tensors)]
        _check_names(read, metadata)
        data_offset = -(-self._file.position // alignment) * alignment
        _check_places(read, alignment, self._file.file_bytes - data_offset)
        return GgufHeader(
            version, alignment, MappingProxyType(metadata), tuple(read), data_offset, self._file.file_bytes
        )

    def _read_version(self) -> int:
        head = self._file.take(min(8, self._file.file_bytes))
        if head[:4] != b"GGUF":
            raise HeaderError(_describe_stranger(head), ErrorCode.NOT_A_MODEL)
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
                raise HeaderError(f"The metadata key {_shown(key)} stands twice in the header.")
            self._keys_left -= len(key)
            if self._keys_left < 0:
                raise HeaderError("The metadata keys are longer than any model needs.")
            metadata[key] = self._read_value(key, self._file.u32())
        return metadata

    def _read_value(self, key: str, value_type: int) -> Value:
        if value_type == STRING:
            return self._read_string(key)
        if value_type == ARRAY:
            return self._read_array(key, self._file.u32(), self._file.u64())
        if value_type not in SCALAR_TYPES:
            raise HeaderError(f"The metadata of {_shown(key)} is of the unknown type {value_type:,}.")
        return self._read_scalars(key, value_type, 1)[0]

    def _read_string(self, key: str) -> Value:
        length = self._file.u64()
        if length > MAX_TEXT_BYTES:
            raise HeaderError(
                f"The text of {_shown(key)} claims {length:,} bytes; at most {MAX_TEXT_BYTES:,} are allowed."
            )
        if length > KEPT_TEXT_BYTES or length > self._kept_left:
            self._file.skip(length)
            return ArrayNote("text", length)
        self._kept_left -= length
        return self._file.take(length).decode(errors="replace")

    def _read_array(self, key: str, element_type: int, length: int) -> Value:
        if element_type == ARRAY:
            raise HeaderError(f"The array of {_shown(key)} holds arrays, which no model needs.")
        if element_type == STRING:
            self._texts_left -= length
            if self._texts_left < 0 or length * 8 > self._file.remaining_bytes:
                raise HeaderError(f"The array of {_shown(key)} claims {length:,} texts, more than can be there.")
            self._file.skip_texts(length, MAX_TEXT_BYTES)
            return ArrayNote("string", length)
        if element_type not in SCALAR_TYPES:
            raise HeaderError(f"The array of {_shown(key)} is of the unknown type {element_type:,}.")
        name, code = SCALAR_TYPES[element_type]
        total_bytes = length * struct.calcsize(code)
        if total_bytes > self._file.remaining_bytes:
            raise HeaderError(f"The array of {_shown(key)} claims {length:,} elements, more than can be there.")
        if length <= KEPT_ELEMENTS and total_bytes <= self._kept_left:
            self._kept_left -= total_bytes
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
            raise HeaderError(f"A yes-or-no value of {_shown(key)} is neither.")
        return tuple(bool(value) for value in values)

    def _check_bools(self, key: str, count: int) -> None:
        while count > 0:
            piece = self._file.take(min(count, 65_536))
            if piece.strip(b"\0\1"):  # nothing is left of a piece of zeros and ones
                raise HeaderError(f"A yes-or-no value of {_shown(key)} is neither.")
            count -= len(piece)

    def _read_tensor_info(self) -> TensorInfo:
        name = self._read_text("The name of a tensor", MAX_NAME_BYTES)
        if not name or not name.isprintable():
            raise HeaderError(f"The name of a tensor is empty or not plain text: {name!a}.")
        num_dims = self._file.u32()
        if not 1 <= num_dims <= MAX_DIMS:
            raise HeaderError(f"The tensor {_shown(name)} claims {num_dims:,} dimensions; 1 to {MAX_DIMS} are allowed.")
        dims = tuple(self._file.u64() for _ in range(num_dims))
        elements = 1
        for dim in dims:
            elements *= dim
        if not 0 < elements <= MAX_ELEMENTS:
            raise HeaderError(f"The tensor {_shown(name)} has an impossible shape.")
        type_number = self._file.u32()
        ggml_type = GGML_TYPES.get(type_number)
        if ggml_type is None:
            raise HeaderError(f"The tensor {_shown(name)} is stored in the unknown type {type_number:,}.")
        if dims[0] % ggml_type.block_elements:
            raise HeaderError(f"The rows of the tensor {_shown(name)} are no whole blocks of {ggml_type.name}.")
        return TensorInfo(name, dims, ggml_type.name, self._file.u64(), ggml_type.size_bytes(elements))


def _check_metadata(metadata: Mapping[str, Value]) -> int:
    """Refuse values an engine would trust blindly; return the alignment of the tensors."""
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise HeaderError("The alignment of the tensors is no power of two between 8 bytes and 1 MiB.")
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str) or not _ARCHITECTURE.fullmatch(architecture):
        raise HeaderError("The header does not name the model's architecture in a plain word.")
    blocks = metadata.get(f"{architecture}.block_count", 1)
    if type(blocks) is not int or not 1 <= blocks <= MAX_BLOCKS:
        raise HeaderError(f"The number of layers is not between 1 and {MAX_BLOCKS}.")
    tokens = metadata.get("tokenizer.ggml.tokens")
    num_tokens = tokens.length if isinstance(tokens, ArrayNote) else 0
    for key in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        facts = metadata.get(key)
        num_facts = facts.length if isinstance(facts, ArrayNote) else len(facts) if isinstance(facts, tuple) else None
        if num_facts is not None and num_facts < num_tokens:
            raise HeaderError(f"The vocabulary has {num_tokens:,} tokens and only {num_facts:,} entries of {key}.")
    return alignment


def _check_names(tensors: list[TensorInfo], metadata: Mapping[str, Value]) -> None:
    names = Counter(tensor.name for tensor in tensors)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise HeaderError(f"The tensor {_shown(twice)} stands twice in the header.")
    if not tensors and "split.count" not in metadata:  # the first part of a split model may hold none
        raise HeaderError("The file holds no weights, only a vocabulary.")


def _check_places(tensors: list[TensorInfo], alignment: int, data_bytes: int) -> None:
    """Refuse tensors outside the file, upon another or off their place; llama.cpp wants them without gaps."""
    expected = 0
    for tensor in tensors:
        if tensor.offset + tensor.size_bytes > data_bytes:
            raise HeaderError(
                f"The tensor {_shown(tensor.name)} reaches beyond the end of the file, which is cut short or damaged."
            )
        if tensor.offset % alignment:
            raise HeaderError(f"The tensor {_shown(tensor.name)} does not begin at a multiple of {alignment:,} bytes.")
        if tensor.offset < expected:
            raise HeaderError(f"The tensor {_shown(tensor.name)} lies upon the one before it.")
        if tensor.offset > expected:
            raise HeaderError(f"There is a gap in front of the tensor {_shown(tensor.name)}.")
        expected = -(-(tensor.offset + tensor.size_bytes) // alignment) * alignment


def _describe_stranger(head: bytes) -> str:
    """Say what a file is that is no GGUF, where its first bytes tell."""
    if head[:4] in (b"lmgg", b"tjgg", b"fmgg", b"algg"):
        return "This is a model in the format before GGUF, which no current engine reads; get a newer file."
    if head[:4] == b"PK\3\4":
        return "This is a ZIP archive or a PyTorch file, not a GGUF model file."
    if head == b"version ":
        return "This is a Git LFS pointer, a note in place of the model file; download the file itself."
    if head[:1] == b"<":
        return "This is a web page, not a model file; the download went wrong."
    if not head.strip(b"\0"):
        return "The file begins with zeros only, as an unfinished download does."
    return "This is not a GGUF model file: its first bytes are not those of one."


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else name[:79] + "…")
