"""Builds llama.cpp for every processor of a kind, from the source that llama-cpp-python pins, once.

A library for each generation of processors, of which ggml loads the best at run time: a build for one runs nowhere
older, and a build for all of them is several times slower. Kept outside the tree under a name that says what it was
built from and how. Knows nothing of packages.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import bootstrap

_FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    "-DGGML_NATIVE=OFF",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_CPU_ALL_VARIANTS=ON",
    "-DGGML_OPENMP=ON",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_COMMON=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_TOOLS=OFF",
    "-DLLAMA_BUILD_SERVER=OFF",
    "-DLLAMA_BUILD_APP=OFF",  # does not compile from this source
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    "-DCMAKE_INSTALL_RPATH=$ORIGIN",  # the one ggml is the one beside it
    # Otherwise the state of whatever repository the folder lies in.
    "-DLLAMA_BUILD_COMMIT=release",
    "-DLLAMA_BUILD_NUMBER=0",
    "-DGGML_BUILD_COMMIT=release",
    "-DGGML_BUILD_NUMBER=0",
)
_COMMANDS = {**bootstrap.BUILD_COMMANDS, "strip": "binutils"}
_JOBS = 2
_VARIANT = re.compile(r"^bin/libggml-cpu-\w+\.so(?=:)", re.MULTILINE)
_FEWEST_VARIANTS = 10  # of x86; a build with fewer was configured wrongly


def engine_folder(version: str) -> Path:
    """Return where the libraries of this version lie or will lie."""
    compiler = _output(["c++", "--version"]).splitlines()[:1]
    recipe = "\n".join([version, platform.machine(), *compiler, *_FLAGS])
    name = f"llama-cpu-{version}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    return bootstrap.cache_folder() / "engines" / name


def built_engine(source: Path, version: str) -> Path:
    """Return the folder of the libraries, built now if need be; raises SetupError.

    Args:
        source: llama-cpp-python's source archive.
        version: its version.
    """
    missing = sorted({package for command, package in _COMMANDS.items() if shutil.which(command) is None})
    if missing:
        bootstrap.install_system_packages(missing)
    folder = engine_folder(version)
    if folder.is_dir():
        return folder
    bootstrap.say("Building llama.cpp for every processor. This takes a quarter of an hour, once.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
        building = Path(temporary)
        unpack(source, building / "source")
        _build(building / "source" / "vendor" / "llama.cpp", building / "build", folder.with_suffix(".log"))
        collect(building / "build" / "bin", building / "libraries")
        (building / "libraries").rename(folder)
    return folder


def unpack(source: Path, target: Path) -> None:
    """Unpack a source archive without its outermost folder."""
    with tarfile.open(source) as archive:
        archive.extractall(target.with_suffix(".unpacked"), filter="data")
    (inner,) = target.with_suffix(".unpacked").iterdir()
    inner.rename(target)


def _build(source: Path, build: Path, log: Path) -> None:
    mapped = f"-ffile-prefix-map={source}=."  # no path of this machine in the libraries
    flags = [*_FLAGS, f"-DCMAKE_C_FLAGS={mapped}", f"-DCMAKE_CXX_FLAGS={mapped}"]
    with log.open("w", encoding="utf-8") as output:
        _run(["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), *flags], output.fileno(), log)
        variants = _VARIANT.findall(_output(["ninja", "-C", str(build), "-t", "targets", "all"]))
        if platform.machine() == "x86_64" and len(variants) < _FEWEST_VARIANTS:
            raise bootstrap.SetupError(f"llama.cpp offers {len(variants)} builds for processors only. See {log}.")
        _run(["ninja", "-C", str(build), "-j", str(_JOBS), "llama", "ggml", *variants], output.fileno(), log)


def collect(build: Path, target: Path) -> None:
    """Copy the libraries under the names by which they are looked for, without symbols for debugging.

    Args:
        build: the folder that the linker wrote to, with versioned files and links to them.
        target: made here; each library is in it once.
    """
    target.mkdir()
    for path in sorted(build.glob("lib*.so")):
        soname = _soname(path)
        library = target / soname
        shutil.copyfile(path.resolve(), library)
        subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)
        if soname != path.name:
            (target / path.name).symlink_to(soname)


def _soname(path: Path) -> str:
    match = re.search(r"SONAME.*\[(.+)\]", _output(["readelf", "--dynamic", "--wide", str(path)]))
    return match.group(1) if match else path.name


def _output(command: Sequence[str]) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def _run(command: Sequence[str], output: int, log: Path) -> None:
    nice = ["nice", "-n", "15"]  # a quarter of an hour in which the machine should stay usable
    result = subprocess.run([*nice, *command], stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        tail = "\n".join(text.splitlines()[-15:])
        hint = bootstrap.build_hint(text)
        raise bootstrap.SetupError(f"{tail}\n\nllama.cpp could not be built. {hint}\nThe whole log: {log}")
