"""The inputs of a package: pinned by hash in packaging/locks, downloaded once, kept outside the tree.

A lock file has one line a file: `name==version --hash=sha256:…`, in pip's own format and without an address, so that
any index serves. Knows nothing of what is made of the files.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import bootstrap

LOCKS = bootstrap.ROOT / "packaging" / "locks"
_LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Pin:
    """One file that a package is made of.

    Attributes:
        name: the package's name, in lower case with hyphens.
        version: its version.
        sha256: of the file, in hexadecimal.
    """

    name: str
    version: str
    sha256: str


def read_lock(path: Path) -> list[Pin]:
    """Return the pins of a lock file in its order; raises SetupError for a line that is no pin."""
    pins = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise bootstrap.SetupError(f"{path.name} has a line that pins nothing: {text}")
        pins.append(Pin(plain_name(match["name"]), match["version"], match["sha256"]))
    return pins


def plain_name(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def input_folder() -> Path:
    """Return where the files are kept."""
    return bootstrap.cache_folder() / "inputs"


def fetch(pins: Sequence[Pin], folder: Path) -> dict[str, Path]:
    """Return each pin's file by the pin's name, downloaded if it is not in the folder yet; raises SetupError."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [pin for pin in pins if find(pin, folder) is None]
    if missing:
        bootstrap.say(f"Downloading {', '.join(pin.name for pin in missing)}")
        _download(missing, folder)
    found = {pin.name: find(pin, folder) for pin in pins}
    absent = [name for name, path in found.items() if path is None]
    if absent:
        raise bootstrap.SetupError(f"These were downloaded but are not what the lock file pins: {', '.join(absent)}.")
    return {name: path for name, path in found.items() if path is not None}


def find(pin: Pin, folder: Path) -> Path | None:
    """Return the file of this pin in the folder; None unless its hash is the pinned one."""
    beginning = f"{pin.name}-{pin.version}".replace("-", "_").lower()
    for path in sorted(folder.iterdir()):
        if path.name.replace("-", "_").lower().startswith(beginning) and file_sha256(path) == pin.sha256:
            return path
    return None


def file_sha256(path: Path) -> str:
    """Return a file's hash in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _download(pins: Sequence[Pin], folder: Path) -> None:
    lines = [f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256}" for pin in pins]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as lock:
        lock.write("\n".join(lines) + "\n")
        lock.flush()
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet"]
        command += ["--no-deps", "--require-hashes", "--requirement", lock.name, "--dest", str(folder)]
        command += ["--only-binary", ":all:", "--no-binary", bootstrap.ENGINE]  # the engine comes as source only
        if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            raise bootstrap.SetupError(
                "pip could not download what the package is made of; its own words are above. Is the network "
                "reachable? Repeat the command when it is: what was downloaded is kept."
            )


def _lock_lines(folder: Path) -> list[str]:
    """Return the lines of a new lock file for the files in the folder, in the order of the names."""
    lines = []
    for path in folder.iterdir():
        name, version = path.name.removesuffix(".tar.gz").split("-")[:2]
        lines.append(f"{plain_name(name)}=={version} --hash=sha256:{file_sha256(path)}")
    return sorted(lines)


if __name__ == "__main__":
    # `inputs.py FOLDER` prints a new lock file for what `pip download` left in the folder.
    sys.stdout.write("\n".join(_lock_lines(Path(sys.argv[1]))) + "\n")
