"""A model in several GGUF files, `NAME-00001-of-00003.gguf` and so on, or in one: all parts found and checked together.

Knows names and headers, no weights.
References: llama_split_path() of llama.cpp, the constructor of llama_model_loader in llama-model-loader.cpp and
gguf-split.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.models.byte_source import HeaderError
from app.models.gguf_checks import shown
from app.models.gguf_header import MAX_TENSORS, GgufHeader, read_header, read_part
from backends.errors import ErrorCode

MAX_PARTS = 1_000  # llama.cpp's own limit is 65,535; the largest sets have some dozens
_NAME = re.compile(r"(?P<prefix>.+)-(?P<part>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SplitSet:
    """A whole GGUF model, in one file or in several.

    Attributes:
        header: the first part's, with the tensors of all parts in the order of the parts. The offsets of tensors
            stay those of the part they lie in, counted from that part's own beginning of the tensors; file_bytes is
            the size of all parts together.
        parts: every file, the first one first; that is the one an engine is given.
        size_bytes: of all parts together.
    """

    header: GgufHeader
    parts: tuple[Path, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PartName:
    """What the name of a part says.

    Attributes:
        prefix: the name in front of the numbers.
        part: counted from 1.
        num_parts: of the whole set.
    """

    prefix: str
    part: int
    num_parts: int

    def of_part(self, part: int) -> str:
        """Return the file name of another part of the set."""
        return f"{self.prefix}-{part:05d}-of-{self.num_parts:05d}.gguf"


def part_name(file_name: str) -> PartName | None:
    """Return what a file name says of its set; None when it is not that of a part."""
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    name = PartName(match["prefix"], int(match["part"]), int(match["count"]))
    return name if 1 <= name.part <= name.num_parts else None


def is_later_part(path: Path) -> bool:
    """Return whether a scan may pass over this file, since it meets an earlier part of the same set anyway.

    Asks only for names. Where the first part is missing, the first that is there stands for the set and its fault.
    """
    name = part_name(path.name)
    if name is None or name.num_parts > MAX_PARTS:
        return False
    return any(os.path.lexists(path.with_name(name.of_part(part))) for part in range(1, name.part))


def read_set(path: Path) -> SplitSet:
    """Return the whole model that this file is, or is a part of.

    Raises:
        HeaderError: a header is not to be trusted, a part is missing, or the parts do not fit together.
    """
    name = part_name(path.name)
    if name is None:
        return _single(path, read_header(path))
    given = read_part(path)
    if given.number("split.count") < 2:  # llama.cpp goes by the header alone
        return _single(path, given)
    if given.number("split.count") != name.num_parts:
        raise HeaderError(
            f"The name of the file says {name.num_parts:,} parts, its header {given.number('split.count'):,}."
        )
    if name.num_parts > MAX_PARTS:
        raise HeaderError(f"The model is in {name.num_parts:,} parts; at most {MAX_PARTS:,} are allowed.")
    paths = [path.with_name(name.of_part(part)) for part in range(1, name.num_parts + 1)]
    _check_all_there(paths)
    headers = [given if part == name.part - 1 else _read_named(part, paths) for part in range(name.num_parts)]
    for part, header in enumerate(headers):
        _check_part(part, header, paths, headers[0])
    return SplitSet(_merged(headers), tuple(paths), sum(header.file_bytes for header in headers))


def _single(path: Path, header: GgufHeader) -> SplitSet:
    if header.number("split.count") > 1:
        raise HeaderError(
            f"The model is in {header.number('split.count'):,} parts, but the file's name does not say which it is; "
            "give it the name it had."
        )
    return SplitSet(header, (path,), header.file_bytes)


def _check_all_there(paths: Sequence[Path]) -> None:
    missing = [number for number, path in enumerate(paths, 1) if not os.path.exists(path)]  # noqa: PTH110 - Path.exists() may raise
    if not missing:
        return
    first = paths[missing[0] - 1].name
    if len(missing) == 1:
        raise HeaderError(f"Part {missing[0]:,} of {len(paths):,} is missing: {shown_file(first)}.")
    raise HeaderError(
        f"{len(missing):,} of {len(paths):,} parts are missing; the first is part {missing[0]:,}: {shown_file(first)}."
    )


def _read_named(part: int, paths: Sequence[Path]) -> GgufHeader:
    """Return the header of a part, whose faults name it."""
    try:
        return read_part(paths[part])
    except HeaderError as error:
        # The set is what is damaged, also where one part of it is no GGUF at all.
        code = error.code if error.code is ErrorCode.FILE_UNREADABLE else ErrorCode.HEADER_INVALID
        raise HeaderError(f"{_named(part, paths)}: {error}", code) from error


def _check_part(part: int, header: GgufHeader, paths: Sequence[Path], first: GgufHeader) -> None:
    if header.number("split.count") != len(paths):
        raise HeaderError(f"{_named(part, paths)} says that it is one of {header.number('split.count'):,} parts.")
    if header.number("split.no", absent=-1) != part:
        raise HeaderError(f"{_named(part, paths)} says that it is part {header.number('split.no', absent=-1) + 1:,}.")
    if header.architecture and header.architecture != first.architecture:
        raise HeaderError(
            f"{_named(part, paths)} is of the architecture {shown(header.architecture)}, the first part of "
            f"{shown(first.architecture)}."
        )


def _merged(headers: Sequence[GgufHeader]) -> GgufHeader:
    """Return the first header with everybody's tensors."""
    first = headers[0]
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    if len(tensors) > MAX_TENSORS:
        raise HeaderError(f"The parts hold {len(tensors):,} tensors; at most {MAX_TENSORS:,} are allowed.")
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise HeaderError(f"The tensor {shown(tensor.name)} stands in two parts.")
        seen.add(tensor.name)
    claimed = first.number("split.tensors.count", absent=-1)
    if claimed != len(tensors):
        says = "does not say how many tensors there are" if claimed < 0 else f"promises {claimed:,} tensors"
        raise HeaderError(f"The first part {says}; all parts hold {len(tensors):,}.")
    if not tensors:
        raise HeaderError("The parts hold no weights, only a vocabulary.")
    return dataclasses.replace(first, tensors=tensors, file_bytes=sum(header.file_bytes for header in headers))


def _named(part: int, paths: Sequence[Path]) -> str:
    return f"Part {part + 1:,} of {len(paths):,} ({shown_file(paths[part].name)})"


def shown_file(name: str) -> str:
    """Return a file name as it may stand in a sentence; app/errors.py makes it visible text."""
    return name if len(name) <= 120 else name[:119] + "…"
