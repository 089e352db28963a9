"""The bytes of a test hub's files: given, on disk, or made from a seed; and the hashes that git and LFS give them.

Any range of any content is had without the rest of it. Knows neither repos nor HTTP, and shares no code with app/.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

PIECE_BYTES = 1 << 20
# As the hub's own .gitattributes decide: these are LFS files, and so is whatever is large.
LFS_SUFFIXES = (".gguf", ".safetensors", ".bin", ".pt", ".onnx", ".imatrix")
LFS_FROM_BYTES = 10_000_000
_HOLE_BYTES = 500_000_000
# Names that a hostile repo may list; trust.md S-24. None of them may name a place outside the folder of models.
HOSTILE_NAMES = (
    "../escape.gguf",
    "../../../../escape.gguf",
    "folder/../../escape.gguf",
    "/absolute.gguf",
    "//host/share/absolute.gguf",
    "C:\\absolute.gguf",
    "C:relative.gguf",
    "a\\..\\..\\escape.gguf",
    "\\\\host\\share\\absolute.gguf",
    "CON",
    "NUL.gguf",
    "com1.gguf",
    "folder/aux/model.gguf",
    "dot.gguf.",
    "space.gguf ",
    " leading.gguf",
    "n" * 300 + ".gguf",
    "/".join(["deep"] * 200) + "/model.gguf",
    "cafe\u0301.gguf",  # the same name twice: decomposed and composed
    "caf\u00e9.gguf",
    "Twin.gguf",
    "twin.GGUF",
    "model.gguf:stream",
    "bidi\u202efugg.exe",
    "zero\u200bwidth.gguf",
    "line\nbreak.gguf",
    "tab\tand\x1b[31mescape.gguf",
    "nul\x00byte.gguf",
    "",
    ".",
    "..",
    "a//b.gguf",
    "-rf.gguf",
    "~/home.gguf",
    "$HOME/%TEMP%.gguf",
    ".git/config",
)


class Content:
    """The bytes of a file.

    Attributes:
        size_bytes: how many there are.
    """

    size_bytes = 0

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield the bytes from start up to end in pieces of at most PIECE_BYTES."""
        raise NotImplementedError

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes from start up to end at once."""
        return b"".join(self.pieces(start, end))

    @cached_property
    def sha256(self) -> str:
        """The hash of all of them, computed when it is first asked for."""
        digest = hashlib.sha256()
        for piece in self.pieces(0, self.size_bytes):
            digest.update(piece)
        return digest.hexdigest()


class Given(Content):
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self.size_bytes = len(data)

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield slices of the memory."""
        for place in range(start, end, PIECE_BYTES):
            yield self._data[place : min(end, place + PIECE_BYTES)]


class OnDisk(Content):
    """A file of this machine, sparse or not; sent by the kernel where that is possible.

    Args:
        path: where it is.
        claimed_sha256: told instead of the real hash, which costs a reading of the whole file. A large file that is
            nearly all hole, such as those of shape_files.py, is never read: it gets a hash made of its name and size.
    """

    def __init__(self, path: Path, claimed_sha256: str = "") -> None:
        self.path = path
        facts = path.stat()
        self.size_bytes = facts.st_size
        on_disk_bytes = 512 * getattr(facts, "st_blocks", self.size_bytes)
        if not claimed_sha256 and self.size_bytes > max(_HOLE_BYTES, 10 * on_disk_bytes):
            claimed_sha256 = hashlib.sha256(f"{path.name} {self.size_bytes}".encode()).hexdigest()
        if claimed_sha256:
            self.__dict__["sha256"] = claimed_sha256

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield what is read from the disk."""
        with self.path.open("rb") as file:
            file.seek(start)
            while start < end and (piece := file.read(min(PIECE_BYTES, end - start))):
                start += len(piece)
                yield piece


class Generated(Content):
    """Bytes that follow from a seed; of any size and without a disk.

    They repeat after a mebibyte, but each mebibyte begins with its own number, so that no two are the same.

    Args:
        size_bytes: how many.
        seed: another one gives other bytes.
        head: what the first of them are, such as a real header.
    """

    def __init__(self, size_bytes: int, seed: int = 0, head: bytes = b"GGUF") -> None:
        self.size_bytes = size_bytes
        self._seed = seed
        self._head = head[:size_bytes]

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield the head, then block after block."""
        if start < len(self._head):
            yield self._head[start:end]
            start = min(end, len(self._head))
        while start < end:
            number, place = divmod(start, PIECE_BYTES)
            last = min(PIECE_BYTES, place + end - start)
            block = bytearray(_random_block(self._seed))
            block[:8] = number.to_bytes(8, "little")
            yield memoryview(block)[place:last]
            start += last - place


@lru_cache(maxsize=8)
def _random_block(seed: int) -> bytes:
    return random.Random(seed).randbytes(PIECE_BYTES)


class Repeated(Content):
    """One unit over and over between a beginning and an end: a listing of any size without the memory for it."""

    def __init__(self, before: bytes, unit: bytes, count: int, after: bytes) -> None:
        self._before, self._unit, self._count, self._after = before, unit, count, after
        self.size_bytes = len(before) + len(unit) * count + len(after)

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield whole units together; a start within the content is not possible."""
        assert (start, end) == (0, self.size_bytes)
        at_once = max(1, PIECE_BYTES // len(self._unit))
        many, rest = divmod(self._count, at_once)
        block = self._unit * at_once
        yield self._before
        for _number in range(many):
            yield block
        yield self._unit * rest
        yield self._after


class Changed(Content):
    """A file as a fault gives it: bits flipped, its second half another one, or longer than it was.

    Args:
        original: the honest file.
        flipped_at: where one bit is flipped; none below zero.
        other_from: from where on every byte is another one; none below zero.
        extra_bytes: how many zeros follow the end.
    """

    def __init__(self, original: Content, flipped_at: int = -1, other_from: int = -1, extra_bytes: int = 0) -> None:
        self._original = original
        self._flipped_at, self._other_from = flipped_at, other_from
        self.size_bytes = original.size_bytes + extra_bytes

    def pieces(self, start: int, end: int) -> Iterator[bytes | memoryview]:
        """Yield the changed bytes."""
        place = start
        for piece in self._original.pieces(start, min(end, self._original.size_bytes)):
            changed = bytearray(piece)
            if 0 <= self._other_from < place + len(changed):
                kept = max(0, self._other_from - place)
                changed[kept:] = changed[kept:].translate(_INVERTED)
            if place <= self._flipped_at < place + len(changed):
                changed[self._flipped_at - place] ^= 0x10
            place += len(changed)
            yield memoryview(changed)
        while place < end:
            count = min(PIECE_BYTES, end - place)
            place += count
            yield bytes(count)


_INVERTED = bytes(255 - value for value in range(256))


def as_content(given: Content | bytes | str | Path) -> Content:
    """Return the content that a test names: bytes, text, or the path of a file."""
    if isinstance(given, Content):
        return given
    if isinstance(given, Path):
        return OnDisk(given)
    return Given(given.encode() if isinstance(given, str) else given)


@dataclass(frozen=True)
class HubFile:
    """One file of a revision.

    Attributes:
        path: in the repo.
        content: its bytes.
    """

    path: str
    content: Content

    @property
    def is_lfs(self) -> bool:
        """Whether git holds a pointer only."""
        return self.path.lower().endswith(LFS_SUFFIXES) or self.content.size_bytes > LFS_FROM_BYTES

    @property
    def pointer(self) -> bytes:
        """What git holds of an LFS file."""
        words = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.content.sha256}\n"
        return f"{words}size {self.content.size_bytes}\n".encode()

    @cached_property
    def oid(self) -> str:
        """The name of its git object."""
        return git_oid("blob", self.pointer if self.is_lfs else self.content.part(0, self.content.size_bytes))

    @property
    def etag(self) -> str:
        """What the hub calls this version of the bytes: the LFS hash, else the git object."""
        return self.content.sha256 if self.is_lfs else self.oid

    @property
    def cdn_etag(self) -> str:
        """What the CDN calls it: a storage's own name for an upload in parts, no hash of the bytes."""
        parts = self.content.size_bytes // (64 << 20) + 1
        return f"{hashlib.md5(self.content.sha256.encode(), usedforsecurity=False).hexdigest()}-{parts}"


def git_oid(kind: str, body: bytes) -> str:
    """Return the name that git gives an object of this kind."""
    return hashlib.sha1(f"{kind} {len(body)}\0".encode() + body, usedforsecurity=False).hexdigest()


def git_trees(files: Mapping[str, HubFile]) -> dict[str, str]:
    """Return each folder's git object by its path, "" for the whole tree."""
    folders: dict[str, dict[bytes, tuple[str, str]]] = {"": {}}
    for path, file in files.items():
        parent, _slash, name = path.rpartition("/")
        folders.setdefault(parent, {})[name.encode()] = ("100644", file.oid)
        while parent:
            above, _slash, _name = parent.rpartition("/")
            folders.setdefault(above, {})
            parent = above
    oids: dict[str, str] = {}
    for folder in sorted(folders, key=lambda path: (path.count("/") + bool(path), path), reverse=True):
        entries = sorted(folders[folder].items(), key=lambda item: item[0] + b"/" * (item[1][0] == "40000"))
        body = b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in entries)
        oids[folder] = git_oid("tree", body)
        if folder:
            parent, _slash, name = folder.rpartition("/")
            folders[parent][name.encode()] = ("40000", oids[folder])
    return oids
