"""Copies the Python that runs this script to a place of its own, with the libraries it needs, so that it runs anywhere.

A real Python and not a frozen one: engines that are installed later need modules which nobody can foresee. Knows no
packages; a small file in the copy puts the packages and the program beside it on its path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import bootstrap
import elf

VERSION = (3, 11)  # the lock file pins packages for this one
NAME = f"python{VERSION[0]}.{VERSION[1]}"

# Of the standard library: for building, for testing, or with windows of another kind.
_FOLDERS_LEFT_OUT = {
    *("__pycache__", "ensurepip", "idlelib", "lib2to3", "site-packages", "dist-packages", "test", "tests", "tkinter"),
    *("turtledemo", "pydoc_data"),
}
_FILES_LEFT_OUT = {"turtle.py", "sitecustomize.py", "usercustomize.py", "EXTERNALLY-MANAGED"}
_MODULES_LEFT_OUT = re.compile(
    r"(_test\w*|_ctypes_test|_xxtestfuzz|_xxsubinterpreters|xxlimited\w*|_tkinter|_curses\w*|_dbm|_gdbm|_crypt|spwd|nis"
    r"|ossaudiodev)\."
)
# Every system has these; a second copy of the C library would not even start. Readline is the system's or nobody's.
_SYSTEM_LIBRARIES = re.compile(
    r"(linux-vdso|ld-linux[\w-]*|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+|libreadline|libtinfo)\.so"
)
_LDD_LINE = re.compile(r"^\s+(?P<name>\S+) => (?P<path>/\S+)", re.MULTILINE)

# Run by every Python of the program, the isolated ones of workers too: -I keeps the rest of the system out, not this.
_SITE = '''"""Puts the program and its packages, which lie beside this Python, on its path."""

import os.path
import sys

_PROGRAM = os.path.dirname(sys.prefix)
sys.path += [os.path.join(_PROGRAM, "app_packages"), _PROGRAM]
'''


def copy_runtime(target: Path) -> list[Path]:
    """Copy Python to this folder and return the system's libraries that were put beside it; raises SetupError."""
    if sys.version_info[:2] != VERSION:
        raise bootstrap.SetupError(
            f"The package is made with Python {VERSION[0]}.{VERSION[1]}, and .venv holds another. "
            f"Install {NAME}, remove .venv and repeat the command."
        )
    library = target / "lib" / NAME
    _copy_standard_library(Path(sysconfig.get_path("stdlib")), library)
    (library / "sitecustomize.py").write_text(_SITE, encoding="utf-8")
    interpreter = target / "bin" / "python3"
    interpreter.parent.mkdir(parents=True)
    shutil.copyfile(Path(os.path.realpath(sys.executable)), interpreter)
    originals = [Path(os.path.realpath(sys.executable)), *Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so")]
    copied = {path.name for path in (library / "lib-dynload").iterdir()}
    bundled = libraries_of(path for path in originals if path.name in copied or path == originals[0])
    for name, path in bundled.items():
        shutil.copyfile(path, target / "lib" / name)
    _make_relocatable(target, library, interpreter)
    return sorted(path for name, path in bundled.items() if not name.startswith("libpython"))


def _copy_standard_library(source: Path, target: Path) -> None:
    def left_out(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).name
        return {
            name
            for name in names
            if name in _FOLDERS_LEFT_OUT
            or name in _FILES_LEFT_OUT
            or name.startswith("config-")
            or name.endswith((".pyc", ".a"))
            or (inside == "lib-dynload" and _MODULES_LEFT_OUT.match(name))
        }

    shutil.copytree(source, target, ignore=left_out, ignore_dangling_symlinks=True)


def libraries_of(files: Iterable[Path]) -> dict[str, Path]:
    """Return the libraries that these files load and that not every system has, by the name they are asked for."""
    found: dict[str, Path] = {}
    for file in files:
        if file.name in elf.OPTIONAL_FILES:
            continue
        environment = {**os.environ, "LC_ALL": "C"}
        result = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False, env=environment)
        for match in _LDD_LINE.finditer(result.stdout):
            if not _SYSTEM_LIBRARIES.match(match["name"]):
                found[match["name"]] = Path(match["path"]).resolve()
    return dict(sorted(found.items()))


def _make_relocatable(target: Path, library: Path, interpreter: Path) -> None:
    """Strip everything, and have it look for libraries relative to its own place only."""
    places = {interpreter: "$ORIGIN/../lib"}
    places |= dict.fromkeys((library / "lib-dynload").glob("*.so"), "$ORIGIN/../..")
    places |= dict.fromkeys((target / "lib").glob("*.so*"), "$ORIGIN")
    for path, place in sorted(places.items()):
        path.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
        subprocess.run(["patchelf", "--set-rpath", place, str(path)], check=True)
