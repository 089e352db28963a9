"""What the program and the scan child say to each other, and what a scan tells the library.

Messages are msgpack behind their length, validated on arrival. Paths travel as the system's own bytes: a file's name
need not be text. Knows no folder and no file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

import msgspec

from app.models.entry import FoundModel

# One message of the child: at most _MODELS_A_MESSAGE models, each with a shape of at most 512 layers.
MAX_MESSAGE_BYTES = 64 * 2**20
# What is known of a library of a million files.
MAX_REQUEST_BYTES = 512 * 2**20
_LENGTH_BYTES = 4


class ScanMessageError(Exception):
    """What came is torn, too long, or no message."""


class ScanLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how far a scan goes.

    Attributes:
        file_s: for looking at one file.
        silence_s: for the next entry of a folder; a drive that is slower does not answer.
        root_s: for one root.
        stuck_files: after so many files that took too long, the rest of a root is left out.
        depth: folders below a root.
        entries: files and folders of a root.
        models: of a root.
    """

    file_s: float = 5.0
    silence_s: float = 10.0
    root_s: float = 900.0
    stuck_files: int = 3
    depth: int = 12
    entries: int = 2_000_000
    models: int = 100_000


class ScanRoot(msgspec.Struct, frozen=True, kw_only=True):
    """A folder to look through; see Source."""

    folder: bytes
    origin: str
    layout: str
    must_exist: bool = False


class ScanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The one thing that the child is asked.

    Attributes:
        roots: in their order; a file in two of them is told once, for the first.
        known: the stamp of each model that need not be read again, by path.
        limits: see ScanLimits.
        language: of the words; "" for the system's.
    """

    roots: tuple[ScanRoot, ...]
    known: dict[bytes, str]
    limits: ScanLimits
    language: str = ""


class FoundOnDisk(msgspec.Struct, frozen=True, array_like=True):
    """A FoundModel whose paths stand beside it, as bytes."""

    path: bytes
    parts: tuple[bytes, ...]
    projector_path: bytes
    model: FoundModel


class ModelsSeen(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Some models were looked at.

    Attributes:
        root: the number of the root they lie in.
        models: new or changed.
        unchanged: the paths of those whose stamp is the known one.
        looked_count: how many of this root were looked at so far.
        listed_count: of how many.
    """

    root: int
    models: tuple[FoundOnDisk, ...] = ()
    unchanged: tuple[bytes, ...] = ()
    looked_count: int = 0
    listed_count: int = 0


class ScanFinished(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The child's last word; see ScanSummary."""

    found_count: int
    unchanged_count: int
    skipped_count: int
    complete_roots: tuple[int, ...]
    problems: tuple[str, ...]


Told = ModelsSeen | ScanFinished


@dataclass(frozen=True, slots=True)
class ScanBatch:
    """Some models of one root.

    Attributes:
        folder: the root.
        models: new or changed.
        unchanged: the paths of those whose stamp is the known one; their files were not opened.
        looked_count: how many of this root were looked at so far.
        listed_count: of how many.
    """

    folder: str
    models: tuple[FoundModel, ...]
    unchanged: tuple[str, ...]
    looked_count: int
    listed_count: int


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """How a scan went.

    Attributes:
        found_count: models told that were new or changed.
        unchanged_count: models whose stamp was the known one.
        skipped_count: what was passed over: links that lead elsewhere, folders that cannot be opened, lone projectors.
        seconds: it took.
        complete_roots: the folders that were looked through to the end. What was known in one of them and was not told
            is gone; of the others nothing can be said.
        problems: a sentence each.
        is_cancelled: whether it was ended early because that was asked.
    """

    found_count: int = 0
    unchanged_count: int = 0
    skipped_count: int = 0
    seconds: float = 0.0
    complete_roots: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    is_cancelled: bool = False


# ------------------------------------------------------------------------------------------------ on the wire


def to_disk(model: FoundModel) -> FoundOnDisk:
    """Return a model as it can travel."""
    bare = msgspec.structs.replace(model, path="", parts=(), projector_path="")
    parts = tuple(os.fsencode(part) for part in model.parts)
    return FoundOnDisk(os.fsencode(model.path), parts, os.fsencode(model.projector_path), bare)


def from_disk(found: FoundOnDisk) -> FoundModel:
    """Return a model as it was before it travelled."""
    return msgspec.structs.replace(
        found.model,
        path=os.fsdecode(found.path),
        parts=tuple(os.fsdecode(part) for part in found.parts),
        projector_path=os.fsdecode(found.projector_path),
    )


def known_on_disk(known: Mapping[str, str]) -> dict[bytes, str]:
    """Return what is known by path as it can travel; a path that this system cannot have is left out."""
    travelling = {}
    for path, stamp in known.items():
        try:
            travelling[os.fsencode(path)] = stamp
        except UnicodeEncodeError:
            continue
    return travelling


def write_message(stream: IO[bytes], message: ScanRequest | Told) -> None:
    """Write one message and flush it; raises OSError when nobody reads any more."""
    data = msgspec.msgpack.encode(message)
    stream.write(len(data).to_bytes(_LENGTH_BYTES, "little") + data)
    stream.flush()


def read_request(stream: IO[bytes]) -> ScanRequest:
    """Return what the child is asked; raises ScanMessageError."""
    data = _read_frame(stream, MAX_REQUEST_BYTES)
    try:
        return msgspec.msgpack.decode(data or b"", type=ScanRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScanMessageError(str(error)) from error


def read_told(stream: IO[bytes]) -> Told | None:
    """Return the child's next word; None at the end of the stream. Raises ScanMessageError."""
    data = _read_frame(stream, MAX_MESSAGE_BYTES)
    if data is None:
        return None
    try:
        return msgspec.msgpack.decode(data, type=Told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScanMessageError(str(error)) from error


def _read_frame(stream: IO[bytes], limit_bytes: int) -> bytes | None:
    head = stream.read(_LENGTH_BYTES)
    if not head:
        return None
    length = int.from_bytes(head, "little")
    if len(head) < _LENGTH_BYTES or length > limit_bytes:
        raise ScanMessageError("a message that is torn or over the size limit")
    data = stream.read(length)
    if len(data) < length:
        raise ScanMessageError("a torn message")
    return data
