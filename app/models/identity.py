"""Which model a file is, told by its bytes and not by its name or place.

A provisional identity costs two reads of at most 1 MiB; a full one reads everything. Regular files only are opened,
and never for writing. Knows no library.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from app.models.bounded_file import HeaderError, open_bounded
from backends.errors import ErrorCode

PROVISIONAL = "provisional:"
FULL = "sha256:"

_WEIGHTS = (".gguf", ".safetensors")
_SAMPLE_BYTES = 2**20
# Large enough that the hash, which lets other threads run meanwhile, is most of the work.
_CHUNK_BYTES = 2**20
_ANY_SIZE = 2**63


def provisional_identity(paths: Sequence[Path]) -> str:
    """Return "provisional:" and a hash of the size of all files, the first one's head and the last one's tail.

    Equal for copies, wherever they lie and whatever they are called. Two files may share it and still differ in the
    middle: only a full identity is proof.

    Args:
        paths: every file of one model, in the order of its parts.

    Raises:
        HeaderError: a file is not there, cannot be read, is empty or is no regular file.
    """
    sizes = [_size_bytes(path) for path in paths]
    digest = hashlib.sha256(sum(sizes).to_bytes(16, "little"))
    with open_bounded(paths[0], _ANY_SIZE) as first:
        digest.update(first.take(min(_SAMPLE_BYTES, first.file_bytes)))
    with open_bounded(paths[-1], _ANY_SIZE) as last:
        count = min(_SAMPLE_BYTES, last.file_bytes)
        last.skip(last.file_bytes - count)
        digest.update(last.take(count))
    return PROVISIONAL + digest.hexdigest()


def full_identity(paths: Sequence[Path], on_progress: Callable[[int], bool] | None = None) -> str | None:
    """Return "sha256:" and the SHA-256 of a file; for several parts that of their digests, one after the other.

    Args:
        paths: every file of one model, in the order of its parts.
        on_progress: asked with the bytes read so far, of all parts together; False ends it.

    Returns:
        The identity, or None when on_progress ended it.

    Raises:
        HeaderError: a file cannot be read to its end.
    """
    digests: list[bytes] = []
    done_bytes = 0
    for path in paths:
        digest = hashlib.sha256()
        with open_bounded(path, _ANY_SIZE) as file:
            while count := min(_CHUNK_BYTES, file.file_bytes - file.position):
                digest.update(file.take(count))
                done_bytes += count
                if on_progress is not None and not on_progress(done_bytes):
                    return None
        digests.append(digest.digest())
    whole = digests[0] if len(digests) == 1 else hashlib.sha256(b"".join(digests)).digest()
    return FULL + whole.hex()


def weight_files(parts: Sequence[Path]) -> tuple[Path, ...]:
    """Return which of a model's files make up its identity: the weights, not what describes them."""
    return tuple(path for path in parts if path.suffix.lower() in _WEIGHTS) or tuple(parts)


def _size_bytes(path: Path) -> int:
    """Return a file's size without opening it."""
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError) as error:
        raise HeaderError("There is no such file.", ErrorCode.FILE_MISSING) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HeaderError(f"The file could not be read: {reason}.", ErrorCode.FILE_UNREADABLE) from error
