"""Tiny GGUF files, honest or hostile, and mutations of a real one.

Knows the format's bytes on its own and shares no code with app/models, so that it can judge it.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

U8, U16, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 2, 4, 5, 6, 7, 8, 9, 10
TYPE_F32, TYPE_Q4_0, TYPE_Q4_K = 0, 2, 12
ALIGNMENT = 32
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def u32(number: int) -> bytes:
    """Return 4 little-endian bytes."""
    return struct.pack("<I", number)


def u64(number: int) -> bytes:
    """Return 8 little-endian bytes."""
    return struct.pack("<Q", number)


def text(words: str | bytes) -> bytes:
    """Return a text behind its length."""
    raw = words.encode() if isinstance(words, str) else words
    return u64(len(raw)) + raw


def entry(key: str | bytes, value_type: int, payload: bytes) -> bytes:
    """Return one metadata entry with a payload taken as it is."""
    return text(key) + u32(value_type) + payload


def string_entry(key: str, words: str | bytes) -> bytes:
    """Return a metadata entry that holds a text."""
    return entry(key, STRING, text(words))


def array_entry(key: str, element_type: int, length: int, payload: bytes) -> bytes:
    """Return a metadata entry that holds an array."""
    return entry(key, ARRAY, u32(element_type) + u64(length) + payload)


def tensor(name: str | bytes, dims: Sequence[int], type_number: int = TYPE_F32, offset: int = 0) -> bytes:
    """Return what the header says of one tensor."""
    return text(name) + u32(len(dims)) + b"".join(u64(dim) for dim in dims) + u32(type_number) + u64(offset)


ARCHITECTURE_ENTRY = string_entry("general.architecture", "llama")
ONE_TENSOR = (tensor("token_embd.weight", [8, 4]),)  # 128 bytes of F32


@dataclass(frozen=True)
class TinyGguf:
    """The parts of a small file; the defaults make an honest one.

    Attributes:
        metadata: entries after general.architecture.
        num_tensors: what the header claims; None for the truth. Likewise num_metadata.
        data_bytes: how many bytes follow the header and its padding.
    """

    metadata: Sequence[bytes] = ()
    tensors: Sequence[bytes] = ONE_TENSOR
    magic: bytes = b"GGUF"
    version: int = 3
    num_tensors: int | None = None
    num_metadata: int | None = None
    architecture: bytes = ARCHITECTURE_ENTRY
    data_bytes: int = 128

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        entries = [self.architecture, *self.metadata] if self.architecture else list(self.metadata)
        num_tensors = len(self.tensors) if self.num_tensors is None else self.num_tensors
        num_metadata = len(entries) if self.num_metadata is None else self.num_metadata
        head = self.magic + u32(self.version) + u64(num_tensors) + u64(num_metadata)
        head += b"".join(entries) + b"".join(self.tensors)
        return head + bytes(-len(head) % ALIGNMENT) + bytes(self.data_bytes)

    def write(self, path: Path) -> Path:
        """Write the file and return its path."""
        path.write_bytes(self.to_bytes())
        return path


def named_model(name: str, *metadata: bytes) -> TinyGguf:
    """Return a small honest model whose general.name is this."""
    return TinyGguf(metadata=(string_entry("general.name", name), *metadata))


def split_entries(part: int, num_parts: int, num_tensors: int) -> tuple[bytes, ...]:
    """Return what gguf-split writes into each part; the part counts from 0."""
    return (
        entry("split.no", U16, part.to_bytes(2, "little")),
        entry("split.count", U16, num_parts.to_bytes(2, "little")),
        entry("split.tensors.count", I32, num_tensors.to_bytes(4, "little", signed=True)),
    )


def split_model(num_parts: int = 3, *metadata: bytes) -> list[TinyGguf]:
    """Return an honest model in parts, one tensor each; like gguf-split's, only the first says what model it is."""
    return [
        TinyGguf(
            metadata=(*split_entries(part, num_parts, num_parts), *(metadata if part == 0 else ())),
            architecture=ARCHITECTURE_ENTRY if part == 0 else b"",
            tensors=(tensor(f"blk.{part}.attn_q.weight", [8, 4]),),
        )
        for part in range(num_parts)
    ]


def write_parts(folder: Path, parts: Sequence[TinyGguf], prefix: str = "model") -> list[Path]:
    """Write the parts of a set under their names and return the paths in order."""
    return [
        model.write(folder / f"{prefix}-{number:05d}-of-{len(parts):05d}.gguf") for number, model in enumerate(parts, 1)
    ]


# ------------------------------------------------------------------------------------- where things are in a file


@dataclass(frozen=True)
class Layout:
    """Where the fields of an honest header are, as byte offsets.

    Attributes:
        counts: the numbers of 8 bytes that count tensors, entries and array elements.
        lengths: the lengths of 8 bytes in front of texts outside arrays.
        word_lengths: those in front of texts inside arrays, such as the vocabulary.
        types: the numbers of 4 bytes that name the type of a value, an element or a tensor.
        dims: the numbers of 8 bytes of the shapes.
        offsets: the numbers of 8 bytes that place the tensors.
        keys: start and end of the metadata keys and tensor names.
        data_offset: where the tensors begin.
    """

    counts: tuple[int, ...]
    lengths: tuple[int, ...]
    word_lengths: tuple[int, ...]
    types: tuple[int, ...]
    dims: tuple[int, ...]
    offsets: tuple[int, ...]
    keys: tuple[tuple[int, int], ...]
    data_offset: int


class _Walk:
    """Walks an honest header the obvious way and notes where everything is."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 4 + 4
        self.notes: dict[str, list[int]] = {
            name: [] for name in ("counts", "lengths", "word_lengths", "types", "dims", "offsets")
        }
        self.keys: list[tuple[int, int]] = []

    def number(self, kind: str, width: int) -> int:
        self.notes[kind].append(self.at)
        self.at += width
        return int.from_bytes(self.data[self.at - width : self.at], "little")

    def text(self, kind: str) -> tuple[int, int]:
        length = self.number(kind, 8)
        self.at += length
        return self.at - length, self.at

    def value(self) -> None:
        value_type = self.number("types", 4)
        if value_type == STRING:
            self.text("lengths")
        elif value_type == ARRAY:
            element_type, length = self.number("types", 4), self.number("counts", 8)
            for _ in range(length if element_type == STRING else 0):
                self.text("word_lengths")
            self.at += 0 if element_type == STRING else length * _WIDTHS[element_type]
        else:
            self.at += _WIDTHS[value_type]

    def layout(self) -> Layout:
        num_tensors, num_metadata = self.number("counts", 8), self.number("counts", 8)
        for _ in range(num_metadata):
            self.keys.append(self.text("lengths"))
            self.value()
        for _ in range(num_tensors):
            self.keys.append(self.text("lengths"))
            for _ in range(self.number("types", 4)):  # the number of dimensions is as fragile as a type
                self.number("dims", 8)
            self.number("types", 4)
            self.number("offsets", 8)
        notes = {name: tuple(places) for name, places in self.notes.items()}
        return Layout(keys=tuple(self.keys), data_offset=self.at + -self.at % ALIGNMENT, **notes)


@functools.lru_cache(maxsize=2)
def layout_of(data: bytes) -> Layout:
    """Return where the fields are in an honest file, or in the beginning of one that holds the whole header."""
    return _Walk(data).layout()


# ------------------------------------------------------------------------------------------------- mutations


@dataclass(frozen=True)
class Mutation:
    """What to change in a file.

    Attributes:
        kind: which of KINDS it is.
        patches: offsets and the bytes to write there.
        file_bytes: the size the file is cut to.
    """

    kind: str
    patches: tuple[tuple[int, bytes], ...]
    file_bytes: int

    def describe(self) -> str:
        """Return it in words, for the report of a failed test."""
        places = ", ".join(f"{len(new)} at {place}" for place, new in self.patches[:4])
        return f"{self.kind}: {places or 'no bytes'}; {self.file_bytes} bytes long"


_HUGE = (2**64 - 1, 2**63, 2**63 - 1, 2**62, 2**40, 2**32, 2**31, 2**31 - 1, 65_537, 1_000_000, 0)
Patches = list[tuple[int, bytes]]


def _flip_header(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    places = draw.sample(range(4, layout.data_offset), draw.randint(1, 8))
    return [(place, bytes([header[place] ^ (1 << draw.randrange(8))])) for place in places]


def _zero_range(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    length = draw.choice((1, 8, 64, 512, 4_096))
    place = draw.randrange(layout.data_offset)
    return [(place, bytes(min(length, layout.data_offset - place)))]


def _huge_number(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    place = draw.choice(layout.counts + layout.dims)
    return [(place, u64(draw.choice(_HUGE)))]


def _random_type(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    places = draw.sample(layout.types, draw.randint(1, 3))
    return [(place, u32(draw.choice((draw.randrange(64), draw.randrange(2**32))))) for place in places]


def _move_tensor(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    place = draw.choice(layout.offsets)
    return [(place, u64(draw.choice((0, 1, 31, 64, 2**20, draw.randrange(2**40), *_HUGE))))]


def _wrong_length(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    place = draw.choice(draw.choice((layout.lengths, layout.word_lengths or layout.lengths)))
    true = int.from_bytes(header[place : place + 8], "little")
    return [(place, u64(draw.choice((true + 1, max(0, true - 1), draw.randrange(2**16), *_HUGE))))]


def _random_key(draw: random.Random, header: bytes, layout: Layout) -> Patches:
    patches = []
    for _ in range(draw.randint(1, 4)):
        start, end = draw.choice(layout.keys)
        patches.append((draw.randrange(start, end), bytes([draw.randrange(256)])))
    return patches


_MUTATORS: dict[str, Callable[[random.Random, bytes, Layout], Patches]] = {
    "flipped bits in the header": _flip_header,
    "a zeroed range in the header": _zero_range,
    "a huge count or dimension": _huge_number,
    "random type numbers": _random_type,
    "a moved tensor": _move_tensor,
    "a wrong text length": _wrong_length,
    "random bytes in keys": _random_key,
}
_TRUNCATED = "truncated"
KINDS = (_TRUNCATED, *_MUTATORS)


def mutation(header: bytes, file_bytes: int, seed: int) -> Mutation:
    """Return the mutation of this seed; the kinds take turns.

    Args:
        header: the honest file's beginning, at least up to its tensors.
        file_bytes: the honest file's size.
        seed: the same seed gives the same mutation.
    """
    draw = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    layout = layout_of(header)
    if kind == _TRUNCATED:
        cut = draw.choice((draw.randrange(layout.data_offset), draw.randrange(file_bytes)))
        return Mutation(kind, (), cut)
    return Mutation(kind, tuple(_MUTATORS[kind](draw, header, layout)), file_bytes)


def mutated_header(source_bytes: bytes, seed: int) -> bytes:
    """Return an honest file's beginning with the mutation of this seed."""
    changed = mutation(source_bytes, len(source_bytes), seed)
    data = bytearray(source_bytes)
    for place, new in changed.patches:
        data[place : place + len(new)] = new
    return bytes(data[: changed.file_bytes])


def mutate_model(source: Path, target: Path, seed: int) -> str:
    """Write a whole mutated copy of a model file, to be loaded by an engine; return what was changed, in words.

    The starter model takes some 0.1 s; ModelCopy is cheaper for many.
    """
    changed = mutation(header_of(source), source.stat().st_size, seed)
    shutil.copyfile(source, target)  # in the kernel, where it can be
    apply_mutation(target, changed)
    return changed.describe()


class ModelCopy:
    """One copy of a model file that takes one mutation after the other; nothing may have it open meanwhile.

    Attributes:
        path: the copy.
    """

    def __init__(self, source: Path, path: Path) -> None:
        self.path = path
        self._source = source
        self._file_bytes = source.stat().st_size
        self._changed = Mutation("", (), self._file_bytes)
        shutil.copyfile(source, path)

    def mutate(self, seed: int) -> str:
        """Take back the last mutation, make the one of this seed and return it in words."""
        self.restore()
        self._changed = mutation(header_of(self._source), self._file_bytes, seed)
        apply_mutation(self.path, self._changed)
        return self._changed.describe()

    def restore(self) -> None:
        """Make the copy equal to its source again."""
        header = header_of(self._source)
        with self._source.open("rb") as source, self.path.open("r+b") as copy:
            for place, new in self._changed.patches:
                copy.seek(place)
                copy.write(header[place : place + len(new)])
            for file in (source, copy):
                file.seek(self._changed.file_bytes)
            if self._changed.file_bytes < self._file_bytes:
                shutil.copyfileobj(source, copy, 2**20)


def apply_mutation(path: Path, changed: Mutation) -> None:
    """Change an honest copy in place."""
    with path.open("r+b") as file:
        for place, new in changed.patches:
            file.seek(place)
            file.write(new)
        file.truncate(changed.file_bytes)


@functools.lru_cache(maxsize=2)
def header_of(source: Path) -> bytes:
    """Return an honest model file's bytes up to its tensors; the header may fill 16 MiB."""
    with source.open("rb") as file:
        data = file.read(16 * 2**20)
    return data[: layout_of(data).data_offset]


def write_header_only(header: bytes, file_bytes: int, target: Path) -> Path:
    """Write a header in front of a hole, so that the file has its full size and takes no room."""
    target.write_bytes(header)
    os.truncate(target, file_bytes)
    return target
