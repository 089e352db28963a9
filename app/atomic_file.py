"""Writing a file as a whole or not at all: a temporary file beside it, fsync, rename.

Whatever happens meanwhile, the name holds the old content or the new one, and nothing is left behind.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes) -> None:
    """Write the data to the file. A link stays a link: what it points to is replaced.

    Raises:
        OSError: it could not be written, or its folder is not there; what was there is as it was.
    """
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)  # still there only when something failed
    keep_names(target.parent)


def keep_names(folder: Path) -> None:
    """Make new names in a folder last through a power cut, on the file systems that can."""
    if os.name == "posix":
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
