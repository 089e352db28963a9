"""A safetensors model in more files than are worth a request each: its index and some of them tell of all.

A model's layers are alike: tensors whose names differ in their numbers alone are of one type and shape. So the files
that are read are chosen to hold one tensor of each kind, and the others are filled in from the index. Whether that is
right shows in the sizes that the hub lists: a file holds its header and its tensors and nothing else. Pure; knows no
network.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.models.byte_source import HeaderError
from app.models.gguf_checks import shown
from app.models.safetensors_tensors import SafeTensor

_NUMBER = re.compile(r"\d+")
# What a header says of one tensor besides its name: type, shape, offsets, and spaces.
_ENTRY_BYTES = (40, 400)
_SLACK_BYTES = 2**20  # metadata, and the spaces that fill a header up


@dataclass(frozen=True, slots=True)
class Filled:
    """The tensors of all files.

    Attributes:
        tensors: those that were read, and the others as they must be.
        is_exact: whether they agree with the sizes of all files.
    """

    tensors: tuple[SafeTensor, ...]
    is_exact: bool


def check_index(places: Mapping[str, str], names: Iterable[str]) -> None:
    """Refuse an index that speaks of other files than there are.

    Args:
        places: the file of each tensor.
        names: of the files.

    Raises:
        HeaderError: it does.
    """
    listed, there = set(places.values()), set(names)
    if listed != there:
        other = min(listed ^ there)
        raise HeaderError(f"The list of the model's parts and the parts do not agree: {shown(other)}.")


def files_to_read(places: Mapping[str, str], most: int) -> list[str]:
    """Return files that together hold a tensor of each kind, as few as is easily found.

    Args:
        places: the file of each tensor.
        most: how many files at most; kinds that are left out then are not known.
    """
    kinds: dict[str, set[str]] = defaultdict(set)
    for tensor, name in places.items():
        kinds[name].add(_kind(tensor))
    missing = set().union(*kinds.values())
    chosen: list[str] = []
    while missing and len(chosen) < most:
        best = min(kinds, key=lambda name: (-len(kinds[name] & missing), name))
        chosen.append(best)
        missing -= kinds.pop(best)
    return chosen


def fill_in(places: Mapping[str, str], read: Mapping[str, Sequence[SafeTensor]], sizes: Mapping[str, int]) -> Filled:
    """Return the tensors of all files, by those of the files that were read.

    Args:
        places: the file of each tensor.
        read: the tensors of the files that were read.
        sizes: of all files, as the hub lists them.

    Raises:
        HeaderError: a file that was read holds other tensors than the index says.
    """
    said: dict[str, set[str]] = defaultdict(set)
    for tensor_name, name in places.items():
        said[name].add(tensor_name)
    for name, tensors in read.items():
        if said[name] != {tensor.name for tensor in tensors}:
            raise HeaderError(f"The list of the model's parts does not say what is in {shown(name)}.")
    votes: dict[str, Counter[tuple[str, tuple[int, ...], int]]] = defaultdict(Counter)
    for tensors in read.values():
        for tensor in tensors:
            votes[_kind(tensor.name)][tensor.dtype, tensor.dims, tensor.size_bytes] += 1
    usual = {kind: found.most_common(1)[0][0] for kind, found in votes.items()}
    known = [tensor for tensors in read.values() for tensor in tensors]
    held: dict[str, list[SafeTensor]] = defaultdict(list)
    is_exact = True
    for tensor_name, name in places.items():
        like = usual.get(_kind(tensor_name))
        if like is None:
            is_exact = False
        elif name not in read:
            held[name].append(SafeTensor(tensor_name, *like))
    for name, tensors in held.items():
        is_exact = is_exact and _agrees(tensors, sizes.get(name, 0))
        known += tensors
    return Filled(tuple(known), is_exact)


def _agrees(tensors: Sequence[SafeTensor], file_bytes: int) -> bool:
    """Whether a file of this size may hold these tensors: what is left is its header."""
    header_bytes = file_bytes - sum(tensor.size_bytes for tensor in tensors)
    names_bytes = sum(len(tensor.name.encode()) for tensor in tensors)
    least, most = (names_bytes + count * len(tensors) for count in _ENTRY_BYTES)
    return least <= header_bytes <= most + _SLACK_BYTES


def _kind(name: str) -> str:
    """Return what names have in common that differ in their numbers alone."""
    return _NUMBER.sub("#", name)
