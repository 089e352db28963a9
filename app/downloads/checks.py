"""Whether the bytes that came are those that the hub promised: their hash, and how they begin.

Knows no file and no server.
"""

from __future__ import annotations

import hashlib
import re

from app.downloads.types import FileRef

HEAD_BYTES = 9  # what begins_right() needs
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_OBJECT = re.compile(r"[0-9a-f]{40}")
_MAX_SAFETENSORS_HEADER_BYTES = 100_000_000  # the format's own limit


class Checksum:
    """The hash of one file, computed while its bytes come.

    It is the SHA-256 where the hub gives one, else the SHA-1 of the file as an object of git, which is what the hub
    calls small files by. Where it gives neither, nothing can be checked.

    Attributes:
        can_check: whether there is anything to compare with.
    """

    def __init__(self, file: FileRef) -> None:
        told = file.sha256.lower()
        if not _SHA256.fullmatch(told):
            told = file.etag.lower()
        self._told = told
        self._size_bytes = file.size_bytes
        self._is_git = bool(_GIT_OBJECT.fullmatch(told))
        self.can_check = self._is_git or bool(_SHA256.fullmatch(told))
        self.restart()

    def restart(self) -> None:
        """Forget every byte."""
        if self._is_git:  # no security rests on it: it is the name that git gives the bytes
            self._hash = hashlib.sha1(f"blob {self._size_bytes}\0".encode(), usedforsecurity=False)
        else:
            self._hash = hashlib.sha256()

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        self._hash.update(data)

    def is_right(self) -> bool:
        """Return whether all bytes together are what the hub promised; True where it promised nothing."""
        return not self.can_check or self._hash.hexdigest() == self._told


def begins_right(name: str, head: bytes, size_bytes: int) -> bool:
    """Return whether a file begins as its name says.

    Args:
        name: of the file; only .gguf and .safetensors promise anything.
        head: its first bytes, HEAD_BYTES of them or the whole file.
        size_bytes: of the whole file.
    """
    kind = name.lower().rpartition(".")[2]
    if kind == "gguf":
        return head[:4] == b"GGUF"
    if kind == "safetensors":
        header_bytes = int.from_bytes(head[:8], "little")
        return head[8:9] == b"{" and 2 <= header_bytes <= min(_MAX_SAFETENSORS_HEADER_BYTES, size_bytes - 8)
    return True
