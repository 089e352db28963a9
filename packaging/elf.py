"""What the compiled files of a tree ask of the system: libraries, their Debian packages, the C library's version.

Knows nothing of what the files do.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import bootstrap

_NEEDED = re.compile(r"\(NEEDED\).*\[(?P<name>.+)\]")
_GLIBC = re.compile(r"\bGLIBC_(\d+)\.(\d+)")
_MAGIC = b"\x7fELF"

# Library -> Debian package. What is not here and not in the tree is a library that was forgotten.
DEBIAN_PACKAGES = {
    "ld-linux-x86-64.so.2": "libc6",
    "libc.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libm.so.6": "libc6",
    "libpthread.so.0": "libc6",
    "libresolv.so.2": "libc6",
    "librt.so.1": "libc6",
    "libutil.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
    "libgomp.so.1": "libgomp1",
    "libstdc++.so.6": "libstdc++6",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libbrotlicommon.so.1": "libbrotli1",
    "libbrotlidec.so.1": "libbrotli1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libdrm.so.2": "libdrm2",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libgbm.so.1": "libgbm1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libxcb-glx0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xinput.so.0": "libxcb-xinput0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
# These do without what they ask for: they fail to load, and the program goes on.
OPTIONAL_FILES = {
    "libqgtk3.so": "the GTK dialogs, where GTK is there",
    "readline.cpython-311-x86_64-linux-gnu.so": "line editing in the terminal, where the system has it",
}


def elf_files(folder: Path) -> Iterator[Path]:
    """Yield every compiled file below a folder by name, links left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) == _MAGIC:
                    yield path


def needed_libraries(path: Path) -> list[str]:
    """Return the names of the libraries that a file asks the loader for."""
    return _NEEDED.findall(_readelf("--dynamic", path))


def system_needs(folder: Path) -> dict[str, set[str]]:
    """Return the libraries that a tree asks of the system, each with the files that ask, relative to the folder.

    A library counts as the tree's own only for files of the same top folder: Python's libz is none that Qt would find.
    """
    places: dict[str, set[str]] = {}
    for path in folder.rglob("*.so*"):
        places.setdefault(path.relative_to(folder).parts[0], set()).add(path.name)
    needs: dict[str, set[str]] = {}
    for path in elf_files(folder):
        if path.name in OPTIONAL_FILES:
            continue
        inside = path.relative_to(folder)
        for name in needed_libraries(path):
            if name not in places.get(inside.parts[0], ()):
                needs.setdefault(name, set()).add(inside.as_posix())
    return needs


def debian_packages(folder: Path) -> list[str]:
    """Return what a Debian package of this tree depends on, sorted; raises SetupError for an unknown library."""
    needs = system_needs(folder)
    unknown = {name: sorted(files)[0] for name, files in needs.items() if name not in DEBIAN_PACKAGES}
    if unknown:
        listed = ", ".join(f"{name} (for {file})" for name, file in sorted(unknown.items()))
        raise bootstrap.SetupError(f"The tree lacks libraries that no package is known for: {listed}.")
    packages = {DEBIAN_PACKAGES[name] for name in needs} - {"libc6"}
    major, minor = glibc_version(folder)
    return sorted([*packages, f"libc6 (>= {major}.{minor})"])


def glibc_version(folder: Path) -> tuple[int, int]:
    """Return the newest version of the C library that any file asks for."""
    versions = {(0, 0)}
    for path in elf_files(folder):
        versions.update((int(major), int(minor)) for major, minor in _GLIBC.findall(_readelf("--version-info", path)))
    return max(versions)


def _readelf(option: str, path: Path) -> str:
    command = ["readelf", option, "--wide", str(path)]
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
