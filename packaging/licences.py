"""Collects the licence of everything in a staged tree into one folder of it. Raises where one is missing.

Knows where Python packages, the system's libraries and Python itself keep theirs; knows no law.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import bootstrap

_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_COMMON_LICENCES = Path("/usr/share/common-licenses")
# Packages that name their licence without its text -> the text; Qt may be taken under any of three.
_NAMED_ONLY = {
    "pyside6-essentials": ("LGPL-3", "GPL-3", "GPL-2"),
    "shiboken6": ("LGPL-3", "GPL-3", "GPL-2"),
    "nvidia-ml-py": ("BSD",),
}


def collect_python_licences(packages: Path, target: Path) -> None:
    """Copy each installed package's licence, by the package's name; raises SetupError for one that has none."""
    for information in sorted(packages.glob("*.dist-info")):
        name = re.sub(r"[-_.]+", "-", information.name.rpartition(".dist-info")[0].split("-")[0]).lower()
        copied = [_copy(path, target / name, information) for path in _licence_files(information)]
        for common in _NAMED_ONLY.get(name, ()):
            copied.append(_copy(_COMMON_LICENCES / common, target / name, _COMMON_LICENCES))
        if not copied:
            raise bootstrap.SetupError(f"{information.name} holds no licence. Find it and name it in licences.py.")


def _licence_files(information: Path) -> list[Path]:
    return [
        path
        for path in sorted(information.rglob("*"))
        if path.is_file() and _LICENCE_FILE.search(path.relative_to(information).as_posix())
    ]


def _copy(path: Path, target: Path, base: Path) -> Path:
    """Copy a file below the target, at its place below the base."""
    place = target / path.relative_to(base)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
    return place


def collect_system_licences(libraries: Sequence[Path], target: Path) -> None:
    """Copy the licence of each system library that the tree bundles; raises SetupError for one that has none."""
    for package in sorted({debian_package(path) for path in libraries}):
        licence = Path("/usr/share/doc") / package / "copyright"
        if not licence.is_file():
            raise bootstrap.SetupError(f"{licence} is missing: the tree bundles a library of {package}.")
        _copy(licence, target / package, licence.parent)
        for common in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", licence.read_text(encoding="utf-8")):
            if (_COMMON_LICENCES / common).is_file():  # named there and not repeated
                _copy(_COMMON_LICENCES / common, target / package, _COMMON_LICENCES)


def debian_package(library: Path) -> str:
    """Return the installed Debian package that a library belongs to; raises SetupError if none."""
    places = [library, Path("/usr") / library.relative_to("/"), Path("/", *library.parts[2:])]
    for place in places:  # dpkg may know /usr/lib/x as /lib/x
        result = subprocess.run(["dpkg-query", "--search", str(place)], capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return result.stdout.split(":")[0]
    raise bootstrap.SetupError(f"No Debian package is known for {library}, which the tree bundles.")


def collect_files(files: dict[str, Path], target: Path) -> None:
    """Copy single licence files, by the name of what they cover; raises SetupError for one that is missing."""
    for name, path in sorted(files.items()):
        if not path.is_file():
            raise bootstrap.SetupError(f"The licence of {name} is missing: there is no {path}.")
        _copy(path, target / name, path.parent)
